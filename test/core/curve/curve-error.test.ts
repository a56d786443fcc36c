/** Depth that a curve can't follow closely is left out from the far end; nobody's near depth is. */
import { expect } from 'chai';
import fc from 'fast-check';
import { buildCurve, chooseCurveKnots } from '../../../core/curve/build.js';
import { compressSide, type KnotPolicy } from '../../../core/curve/compress.js';
import { PPB_IN_MILLI_BPS, segmentsWithin, worstErrorPpb } from '../../../core/curve/error.js';
import { sideLevels, totalLots, type Level } from '../../../core/curve/levels.js';
import { depthUnits } from '../../../core/curve/walk.js';
import { MAX_LENGTH_LOTS } from '../../../core/curve/words.js';
import { recordedBook, snapshotOfLevels } from '../../support/books.js';
import { adversarialSide } from '../../support/worlds/carry-search.js';
import { fcOptions } from '../../support/fc.js';
import { WETH_USDC } from '../../support/markets.js';
import { drawer } from '../../support/random.js';

/** The defaults of the settings. */
const POLICY: KnotPolicy = { maxKnots: 31, enoughMilliBps: 1_600, wordGainMilliBps: 10, maxErrorMilliBps: 5_000 };
const LOT = WETH_USDC.lotUnits;

/** Lots at the best price and up to so far from it. */
const lotsWithin = (levels: readonly Level[], bps: number): bigint => {
  const best = levels[0]!.priceTicks;
  const reach = (best * BigInt(Math.floor(bps * 1_000))) / 10_000_000n;
  return totalLots(
    levels.filter(({ priceTicks }) => (priceTicks > best ? priceTicks - best : best - priceTicks) <= reach),
  );
};

/** So far from the best price, in ticks, prices of a side can be whole ticks. */
const REACH_TICKS = 65_534n;
/** Farther levels that hold less than one part in so many of the depth are left out, rather than making all prices coarser. */
const FAR_DEPTH_PART = 100n;

/** The levels that curves offer whatever their error is. */
function withinTicks(levels: readonly Level[]): readonly Level[] {
  const best = levels[0]!.priceTicks;
  const near = levels.filter(
    ({ priceTicks }) => (priceTicks > best ? priceTicks - best : best - priceTicks) <= REACH_TICKS,
  );
  return (totalLots(levels) - totalLots(near)) * FAR_DEPTH_PART < totalLots(levels) ? near : levels;
}

describe('depth that a curve can not follow', () => {
  it('is left out from the far end and counted; what is offered keeps to the most error', () => {
    let cut = 0;
    const scene = fc.record({
      seed: fc.nat(2 ** 31 - 1),
      maxKnots: fc.constantFrom(7, 15, 31),
      maxMilliBps: fc.constantFrom(1_000, 5_000, 20_000),
    });
    fc.assert(
      fc.property(scene, ({ seed, maxKnots, maxMilliBps }) => {
        const { side, levels } = adversarialSide(drawer(seed));
        const { segments, words, leftOutLots, unfollowedLots } = compressSide(
          WETH_USDC,
          side,
          levels,
          maxKnots,
          maxMilliBps,
        );
        const any = compressSide(WETH_USDC, side, levels, maxKnots);
        const maxPpb = BigInt(maxMilliBps) * PPB_IN_MILLI_BPS;
        expect(worstErrorPpb(WETH_USDC, side, levels, segments) <= maxPpb).to.equal(true);
        expect(depthUnits(segments) / LOT + leftOutLots).to.equal(totalLots(levels));
        if (worstErrorPpb(WETH_USDC, side, levels, any.segments) <= maxPpb) {
          expect([words, unfollowedLots]).to.deep.equal([any.words, 0n]);
        } else {
          cut += unfollowedLots > 0n ? 1 : 0;
          const difference = leftOutLots - any.leftOutLots;
          expect(unfollowedLots).to.equal(difference > 0n ? difference : 0n);
        }
        // Segments, less those that leading levels and rounding may need, that reach as far as prices get worse by the error.
        fc.pre(totalLots(levels) <= MAX_LENGTH_LOTS);
        const nearLots = lotsWithin(
          withinTicks(levels),
          (maxKnots - (maxKnots === 7 ? 2 : 4)) * 0.9 * (maxMilliBps / 1_000),
        );
        expect((totalLots(levels) - leftOutLots) * 2_000n >= nearLots * 1_999n, 'near depth').to.equal(true);
        const snapshot = snapshotOfLevels(side === 'ask' ? levels : [], side === 'bid' ? levels : []);
        expect(() => buildCurve(WETH_USDC, snapshot, { maxKnots, maxErrorMilliBps: maxMilliBps })).to.not.throw();
      }),
      // A level beyond the reach of whole ticks, with a thousandth of the depth, that the error alone would not leave out.
      { ...fcOptions(200), examples: [[{ seed: 1_990_662_369, maxKnots: 31, maxMilliBps: 20_000 }]] },
    );
    expect(cut).to.be.above(20);
  });

  it('is none of the recorded book with 15 knots and more', () => {
    const { asks, bids } = recordedBook();
    const snapshot = snapshotOfLevels(asks, bids);
    const unfollowed = [7, 15, 31].map((maxKnots) => {
      const { askUnfollowedLots, bidUnfollowedLots } = buildCurve(WETH_USDC, snapshot, {
        maxKnots,
        maxErrorMilliBps: 5_000,
      });
      return askUnfollowedLots > 0n || bidUnfollowedLots > 0n;
    });
    expect(unfollowed).to.deep.equal([true, false, false]);
    expect(chooseCurveKnots(snapshot, POLICY)).to.deep.equal({ askKnots: 31, bidKnots: 31, maxErrorMilliBps: 5_000 });
  });

  it('is never what others offer, when a maker scatters as much as they all have over any prices', () => {
    // Five ladders of 20 orders each, from 3,000 to 3,090.
    const honest = Array.from({ length: 100 }, (_, i) => ({
      priceTicks: 300_000n + BigInt(Math.round(9_000 * (i / 99) ** 2)) + BigInt(i),
      lots: BigInt(Math.round(6_000 * 1.03 ** i)) + BigInt((i * 7_919) % 500),
    }));
    const honestLots = totalLots(honest);
    const attack = fc.record({
      count: fc.integer({ min: 2, max: 200 }),
      from: fc.integer({ min: 1, max: 1_000 }),
      to: fc.integer({ min: 1_001, max: 9_000 }),
      ratio: fc.constantFrom(0.95, 1, 1.05, 1.3),
      partPermille: fc.integer({ min: 1, max: 1_000 }),
    });
    fc.assert(
      fc.property(attack, ({ count, from, to, ratio, partPermille }) => {
        const weights = Array.from({ length: count }, (_, i) => ratio ** i);
        const sum = weights.reduce((total, weight) => total + weight, 0);
        const scattered = weights.map((weight, i) => ({
          oid: i + 1_000,
          maker: '0xa' as const,
          priceTicks: 300_000n + BigInt(Math.round(30 * from * (to / from) ** (i / (count - 1)))),
          sizeLots: BigInt(Math.max(1, Math.round(((weight / sum) * (Number(honestLots) * partPermille)) / 1_000))),
        }));
        const asks = [
          ...honest.map(({ priceTicks, lots }, oid) => ({ oid, maker: '0xb' as const, priceTicks, sizeLots: lots })),
          ...scattered,
        ];
        const snapshot = { ...snapshotOfLevels([], []), asks };
        const curve = buildCurve(WETH_USDC, snapshot, chooseCurveKnots(snapshot, POLICY));
        // Rounding may lose a few of the farthest lots.
        const upToHonest = lotsWithin(sideLevels('ask', asks), 310);
        expect((depthUnits(curve.asks) / LOT) * 2_000n >= upToHonest * 1_999n).to.equal(true);
        expect(segmentsWithin(WETH_USDC, 'ask', sideLevels('ask', asks), curve.asks, 500_000n)).to.equal(
          curve.asks.length,
        );
      }),
      fcOptions(100),
    );
  });
});
