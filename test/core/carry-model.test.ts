/**
 * What late fills are good for to a maker and takers who work together: one order rests, is exchanged for more levels than the curve can
 * follow, and is hit before that curve lands, by any amount that ends at or beside a breakpoint of it. The curve lands, perhaps in the place
 * of one that never did, perhaps prolonged, perhaps exchanged once more while it is hit, and is taken from knot to knot.
 */
import { expect } from 'chai';
import { leastGainUnits } from '../../core/attribution.js';
import { snapshotSide } from '../../core/snapshot.js';
import type { Side } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import { createWorld, gainsByCurve, type World, type WorldPublication } from '../support/worlds/market-world.js';
import { drawer, type Draw } from '../support/random.js';

const [market] = coarseMarkets();
const LOT = market!.lotUnits;
const SIDES: readonly Side[] = ['ask', 'bid'];

/** Sizes and distances that grow geometrically, to nine tenths of the price away. */
function ladder(draw: Draw, lots: number): { away: bigint; sizeLots: bigint }[] {
  const count = 12 + draw(20);
  const [reach, growth] = [1.02 + draw(100) / 1_000, 1 + draw(300) / 1_000];
  const at = (ratio: number, i: number): number => (ratio ** i - 1) / (ratio ** (count - 1) - 1 || 1);
  const weights = Array.from({ length: count }, (_, i) => growth ** i);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight, i) => ({
    away: BigInt(1 + Math.floor(89 * at(reach, i))),
    sizeLots: BigInt(1 + Math.floor((lots * weight) / total)),
  }));
}

/** Where segments of a side end, and levels of its book, with the units beside. */
function breakpoints({ asks, bids, snapshot }: WorldPublication, side: Side): bigint[] {
  const ends: bigint[] = [];
  let end = 0n;
  for (const { lengthUnits } of side === 'ask' ? asks : bids) ends.push((end += lengthUnits));
  end = 0n;
  for (const { sizeLots } of snapshotSide(snapshot, side)) ends.push((end += sizeLots * LOT));
  return [...new Set(ends.flatMap((units) => [units - 1n, units, units + 1n]))].filter((units) => units > 0n);
}

interface Play {
  world: World;
  /** How many carries are worth trying. */
  carries: number;
}

/** Plays one seed with the carry of that number. */
function play(seed: number, side: Side, carry: number, raises: boolean): Play {
  const draw = drawer(seed);
  const own = { baseUnits: 100_000n, quoteUnits: 1_000_000_000n };
  const world = createWorld([market!], MAKERS.slice(0, 2), (ok, what) => expect(ok, what).to.equal(true), {
    raises,
    ...own,
  });
  const publish = (): void => world.step({ kind: 'publish', mask: 1 });
  const land = (pick = 0): void => world.step({ kind: 'land', market: 0, pick });
  const requote = (maker: number, levels: { away: bigint; sizeLots: bigint }[]): void =>
    world.step({ kind: 'requote', maker, market: 0, side, levels });
  const take = (units: bigint): void => world.step({ kind: 'takeUnits', market: 0, side, units });
  const lots = 400;
  const honest = draw(3) === 0 ? [{ away: 1n, sizeLots: BigInt(1 + draw(100)) }] : [];
  requote(1, honest);
  requote(0, [{ away: 1n, sizeLots: 1_000n }]);
  publish();
  land();
  world.step({ kind: 'scan' });
  requote(0, ladder(draw, lots));
  publish();
  const isSkipped = draw(3) === 0;
  if (isSkipped) {
    requote(0, ladder(draw, lots));
    publish();
  }
  const late = breakpoints(world.publications.at(-1)!, side);
  const units = late[carry % late.length]!;
  const first = draw(4) === 0 ? units / 2n : units;
  take(first);
  take(units - first);
  land(isSkipped ? 1 : 0);
  const ends = breakpoints(world.publications.at(-1)!, side).filter((end) => end > units);
  let taken = units + world.publications.at(-1)!.raised[side];
  for (const end of ends) {
    if (draw(3) > 0 || end <= taken) continue;
    take(end - taken);
    taken = end;
    if (draw(8) === 0) world.step({ kind: 'touch', market: 0 });
    if (draw(12) > 0) continue;
    // The next curve, cut before any of this was seen, takes it all as a carry.
    requote(0, ladder(draw, lots));
    publish();
    land();
    break;
  }
  take(1_000_000n);
  world.step({ kind: 'scan' });
  return { world, carries: late.length };
}

/** Curves that cost the operator more than rounding, and how many were raised, over all carries of some seeds. */
function losses(seeds: number, raises: boolean): { worstUnits: bigint; lost: number; raised: number; played: number } {
  const found = { worstUnits: 0n, lost: 0, raised: 0, played: 0 };
  const { seed } = fcOptions(1);
  for (let number = 0; number < seeds; number++) {
    for (const side of SIDES) {
      for (let carry = 0, carries = 1; carry < carries; carry++) {
        const played = play(seed + number, side, carry, raises);
        ({ carries } = played);
        found.played += 1;
        found.raised += played.world.seen.raised;
        for (const { side: of, gainUnits, legs } of gainsByCurve(played.world)) {
          const short = leastGainUnits(of, legs) - gainUnits;
          if (short > 0n) found.lost += 1;
          if (short > found.worstUnits) found.worstUnits = short;
        }
      }
    }
  }
  return found;
}

describe('late fills into books that no curve follows', function () {
  const { numRuns } = fcOptions(1);
  this.timeout(60_000 * numRuns);

  it('cost the operator no more than rounding, at every breakpoint', () => {
    const { worstUnits, raised, played } = losses(8 * numRuns, true);
    expect(worstUnits).to.equal(0n);
    expect(raised / played, 'curves raised per play').to.be.above(0.3);
  });

  it('would cost far more if landing did not raise what they took', () => {
    // One seed may be a book that a curve can follow; of eight none finds nothing.
    const { lost, worstUnits } = losses(8, false);
    expect(lost, 'curves that lose').to.be.above(100);
    expect(worstUnits > 100n, `worst ${worstUnits}`).to.equal(true);
  });
});
