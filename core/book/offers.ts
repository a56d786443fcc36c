/**
 * What makers could pay on each side of a market within the last seconds: a curve that was cut then may still be executed, even if they
 * have cancelled the orders since. Memory is bounded by MAX_PEAKS for each of the two sides that a maker has in each listed market.
 */
import { maxBig } from '../amounts.js';
import type { Address } from '../types.js';

/** Longer than the time between two cuts of a live book, so that no curve of an older cut is executable. */
export const OFFER_MEMORY_MS = 10_000;
/** Reductions within this time are remembered as one peak. */
const GRAIN_MS = 1_000;
/** Most peaks of a side: they begin at least a grain apart, the last one not after now, and each ends at most a grain after it began. */
export const MAX_PEAKS = OFFER_MEMORY_MS / GRAIN_MS + 1;

export interface Offers {
  /** The maker reduces or closes an order at `nowMs` on a side where its orders could pay `units` until then. */
  takenBack(maker: Address, sideKey: number, units: bigint, nowMs: number): void;
  /** A fill made the maker pay `units` on this side. */
  paid(maker: Address, sideKey: number, units: bigint): void;
  /**
   * Calls `visit` for each side with a reduction within the last OFFER_MEMORY_MS, with the most that the side could pay before it. Forgets
   * older peaks.
   */
  eachPeak(maker: Address, nowMs: number, visit: (sideKey: number, units: bigint) => void): void;
  /** How many peaks are remembered of the side. */
  peakCount(maker: Address, sideKey: number): number;
  clone(): Offers;
}

/** Orders were reduced between `fromMs` and `toMs`; before that they could pay `units`. */
interface Peak {
  fromMs: number;
  toMs: number;
  units: bigint;
}

type Sides = Map<number, Peak[]>;

/** Creates an empty memory, or one with the peaks of another. */
export function createOffers(initial: ReadonlyMap<Address, Sides> = new Map()): Offers {
  const makers = new Map<Address, Sides>(initial);

  /**
   * Peaks that count at `nowMs`, oldest first; each is above those after it. When the clock is set back, peaks far in its future are
   * dropped.
   */
  const living = (peaks: Peak[], nowMs: number): Peak[] => {
    const lives = ({ toMs }: Peak): boolean => Math.abs(nowMs - toMs) < OFFER_MEMORY_MS;
    return peaks.every(lives) ? peaks : peaks.filter(lives);
  };

  return {
    takenBack(maker, sideKey, units, nowMs) {
      let sides = makers.get(maker);
      if (sides === undefined) {
        sides = new Map();
        makers.set(maker, sides);
      }
      const peaks = living(sides.get(sideKey) ?? [], nowMs);
      let fromMs = nowMs;
      while (peaks.length > 0 && peaks.at(-1)!.units <= units) fromMs = peaks.pop()!.fromMs;
      const last = peaks.at(-1);
      if (last !== undefined && nowMs - last.fromMs < GRAIN_MS) last.toMs = nowMs;
      else peaks.push({ fromMs: Math.max(fromMs, nowMs - GRAIN_MS), toMs: nowMs, units });
      sides.set(sideKey, peaks);
    },
    paid(maker, sideKey, units) {
      for (const peak of makers.get(maker)?.get(sideKey) ?? []) peak.units = maxBig(peak.units - units, 0n);
    },
    eachPeak(maker, nowMs, visit) {
      const sides = makers.get(maker);
      if (sides === undefined) return;
      for (const [sideKey, peaks] of sides) {
        const left = living(peaks, nowMs);
        if (left.length === 0) sides.delete(sideKey);
        else {
          if (left !== peaks) sides.set(sideKey, left);
          visit(sideKey, left[0]!.units);
        }
      }
      if (sides.size === 0) makers.delete(maker);
    },
    peakCount: (maker, sideKey) => makers.get(maker)?.get(sideKey)?.length ?? 0,
    clone: () =>
      createOffers(
        new Map(
          [...makers].map(([maker, sides]) => [
            maker,
            new Map([...sides].map(([sideKey, peaks]) => [sideKey, peaks.map((peak) => ({ ...peak }))])),
          ]),
        ),
      ),
  };
}
