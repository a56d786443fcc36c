/**
 * What makers could pay on each side of a market a moment ago: a curve that was cut then may still be executed, whatever they took out of
 * the book since. It is bounded: a maker has two sides in each listed market, and MAX_PEAKS on each of them.
 */
import { maxBig } from '../amounts.js';
import type { Address } from '../types.js';

/** Longer than a live book goes without a cut, so that no older curve of it is executable. */
export const OFFER_MEMORY_MS = 10_000;
/** What is taken back within so long is remembered as one. */
const GRAIN_MS = 1_000;
/** There are no more of a side: peaks begin at least a grain apart, the last one not after now, and end at most a grain after they began. */
export const MAX_PEAKS = OFFER_MEMORY_MS / GRAIN_MS + 1;

export interface Offers {
  /** A maker takes something back at `nowMs` on a side where its orders could pay `units` until then. */
  takenBack(maker: Address, sideKey: number, units: bigint, nowMs: number): void;
  /** A fill made the maker pay so many of them. */
  paid(maker: Address, sideKey: number, units: bigint): void;
  /**
   * Names each side where something was taken back within the last OFFER_MEMORY_MS, and the most that it could pay before. Forgets what is
   * older.
   */
  eachPeak(maker: Address, nowMs: number, visit: (sideKey: number, units: bigint) => void): void;
  /** How many peaks are remembered of the side. */
  peakCount(maker: Address, sideKey: number): number;
  clone(): Offers;
}

/** From `fromMs` to `toMs` something was taken back, and before it `units` could be paid. */
interface Peak {
  fromMs: number;
  toMs: number;
  units: bigint;
}

type Sides = Map<number, Peak[]>;

/** Nothing was taken back, or what another one remembers. */
export function createOffers(initial: ReadonlyMap<Address, Sides> = new Map()): Offers {
  const makers = new Map<Address, Sides>(initial);

  /** Peaks that count at `nowMs`, oldest first; each is above those after it. A clock that is put back forgets what lies ahead. */
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
