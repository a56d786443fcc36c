import { expect } from 'chai';
import fc from 'fast-check';
import { exactKnots } from '../../../core/curve/carry.js';
import { compressSide } from '../../../core/curve/compress.js';
import { chooseKnots } from '../../../core/curve/knots.js';
import { totalLots, type Level } from '../../../core/curve/levels.js';
import { MAX_LENGTH_LOTS, unpackSide } from '../../../core/curve/words.js';
import { CurveError } from '../../../core/curve/errors.js';
import type { Side } from '../../../core/types.js';
import { BOOK_SHAPES, sideArbitrary } from '../../support/books.js';
import { fcOptions } from '../../support/fc.js';
import { WETH_USDC } from '../../support/markets.js';
import { LOT, knotCounts, costOf, ofSegments, ends } from '../../support/worlds/segment-cost.js';

const SIDES: readonly Side[] = ['ask', 'bid'];
const oneSide = fc
  .record({
    side: fc.constantFrom(...SIDES),
    shape: fc.constantFrom(...BOOK_SHAPES),
    best: fc.bigInt(20_000n, 2n ** 30n),
  })
  .chain(({ side, shape, best }) => fc.tuple(fc.constant(side), sideArbitrary(side, shape, best)));
const ofLevels = (levels: readonly Level[]) =>
  levels.map(({ lots, priceTicks }) => ({ lots, price: priceTicks * 256n }));

describe('core/curve/compress', () => {
  it('is never better than the book, at any breakpoint, and keeps its shape', () => {
    fc.assert(
      fc.property(oneSide, knotCounts, ([side, levels], maxKnots) => {
        const { segments } = compressSide(WETH_USDC, side, levels, maxKnots);
        const [book, curve] = [ofLevels(levels), ofSegments(segments)];
        const depth = totalLots(levels);
        expect(segments.length).to.be.within(1, maxKnots);
        expect(segments.every(({ lengthUnits, subticks }) => lengthUnits % LOT === 0n && subticks > 0n)).to.equal(true);
        for (let i = 1; i < curve.length; i++) {
          const [before, after] = [curve[i - 1]!.price, curve[i]!.price];
          expect(side === 'ask' ? before <= after : before >= after).to.equal(true);
        }
        const curveEnds = ends(curve);
        expect(curveEnds.at(-1)! <= depth).to.equal(true);
        for (const lots of [...curveEnds, ...ends(book).filter((end) => end <= curveEnds.at(-1)!)]) {
          for (const at of [lots - 1n, lots]) {
            const [exact, posted] = [costOf(book, at), costOf(curve, at)];
            expect(side === 'ask' ? posted >= exact : posted <= exact, `${side} at ${at} lots`).to.equal(true);
          }
        }
      }),
      fcOptions(300),
    );
  });

  it('offers all depth within reach but for less than 1/2048 of a segment', () => {
    fc.assert(
      fc.property(oneSide, fc.constantFrom(7, 15, 31), ([side, levels], maxKnots) => {
        const { segments, leftOutLots } = compressSide(WETH_USDC, side, levels, maxKnots);
        const depth = totalLots(levels);
        const curve = ofSegments(segments);
        expect(ends(curve).at(-1)! + leftOutLots).to.equal(depth);
        const best = levels[0]!.priceTicks;
        const near = levels.filter(({ priceTicks }) => priceTicks * 2n >= best && priceTicks * 2n <= best * 3n);
        // Only depth that has segments to spare can be offered whole.
        fc.pre(totalLots(near) <= (BigInt(maxKnots) - 1n) * MAX_LENGTH_LOTS && near.length === levels.length);
        fc.pre(curve.every(({ lots }) => lots < MAX_LENGTH_LOTS));
        expect(curve.some(({ lots }) => leftOutLots * 2048n <= lots)).to.equal(true);
      }),
      fcOptions(300),
    );
  });

  it('gives the first level segments of its own, so that what is taken of it late withholds nothing behind it', () => {
    let own = 0;
    fc.assert(
      fc.property(oneSide, fc.constantFrom(7, 15, 31), ([side, levels], maxKnots) => {
        const { words, segments } = compressSide(WETH_USDC, side, levels, maxKnots);
        const first = levels[0]!.lots;
        // Only depth that the other segments can hold leaves the first level one, and only fine quanta have a place for every tick.
        fc.pre(totalLots(levels) - first <= BigInt(maxKnots - 1) * MAX_LENGTH_LOTS && first <= MAX_LENGTH_LOTS);
        fc.pre(unpackSide(words).shift <= 8n && segments.length > 1);
        const exact = exactKnots(WETH_USDC, levels, segments);
        const exactLots = ends(ofSegments(segments))[exact - 1] ?? 0n;
        expect(exact).to.be.at.least(1);
        // What rounding takes from the level belongs to the segment after it.
        const granule = ofSegments(segments)[exact]?.lots ?? 0n;
        expect((first - exactLots) * 2048n <= first + granule, `${exactLots} of ${first}`).to.equal(true);
        own += 1;
      }),
      fcOptions(300),
    );
    expect(own).to.be.above(100);
  });

  it('leaves out a far order for which near prices would be coarser than a tick, and no depth that counts', () => {
    for (const best of [300_001n, 300_002n, 300_003n, 300_004n]) {
      const near = Array.from({ length: 30 }, (_, i) => ({ priceTicks: best + BigInt(i * 7), lots: 1_000n }));
      const sideOf = (farLots: bigint) => {
        const levels = [...near, { priceTicks: (best * 17n) / 10n, lots: farLots }];
        const { segments, leftOutLots } = compressSide(WETH_USDC, 'ask', levels, 15);
        return { exact: exactKnots(WETH_USDC, levels, segments), leftOutLots };
      };
      const { exact, leftOutLots } = sideOf(30n);
      expect([exact > 0, leftOutLots], `${best}`).to.deep.equal([true, 30n]);
      expect(sideOf(3_000n).leftOutLots, 'a part that is worth having').to.equal(0n);
    }
  });

  it('passes over tiny levels before a large one, and writes few levels whole in two segments each', () => {
    const levelsOf = (...lots: bigint[]): Level[] =>
      lots.map((count, i) => ({ priceTicks: 300_000n + BigInt(i), lots: count }));
    const exactOf = (levels: readonly Level[], maxKnots: number) => {
      const { segments, leftOutLots } = compressSide(WETH_USDC, 'ask', levels, maxKnots);
      return [exactKnots(WETH_USDC, levels, segments), segments.length, leftOutLots];
    };
    const deep = Array<bigint>(200).fill(1_000n);
    expect(exactOf(levelsOf(1n, 2n, 1_000n, ...deep), 15)[0]).to.equal(3);
    // 5,987 and 7,901 lots have 13 bits each; all is exact where there are knots for it, and else no depth is lost.
    expect(exactOf(levelsOf(3_991n, 5_987n, 7_901n, 100n), 7)).to.deep.equal([6, 6, 0n]);
    expect(exactOf(levelsOf(3_991n, 5_987n, 7_901n, 100n, 5_987n, 20n), 7)).to.deep.equal([2, 6, 0n]);
  });

  it('equals the book exactly when the levels fit, up to a quantum', () => {
    const small = fc.bigInt(1n, 4095n);
    const levelsArbitrary = fc.array(fc.tuple(fc.bigInt(1n, 200n), small), { minLength: 1, maxLength: 15 });
    fc.assert(
      fc.property(levelsArbitrary, fc.constantFrom(...SIDES), (drawn, side) => {
        let priceTicks = 90_000n;
        const levels = drawn.map(([gap, lots]) => {
          priceTicks += side === 'ask' ? gap : -gap;
          return { priceTicks, lots };
        });
        const { segments, leftOutLots } = compressSide(WETH_USDC, side, levels, 15);
        expect(leftOutLots).to.equal(0n);
        expect(ofSegments(segments)).to.deep.equal(ofLevels(levels));
      }),
      fcOptions(200),
    );
  });

  it('has no word for an empty side', () => {
    expect(compressSide(WETH_USDC, 'ask', [], 15)).to.deep.equal({
      words: [],
      segments: [],
      leftOutLots: 0n,
      unfollowedLots: 0n,
    });
  });

  it('takes as many words as its knots need', () => {
    const levels = Array.from({ length: 100 }, (_, i) => ({ priceTicks: 300_000n + BigInt(i * i), lots: 1000n }));
    const sizes = [1, 7, 15, 23, 31].map((maxKnots) => compressSide(WETH_USDC, 'ask', levels, maxKnots).words.length);
    expect(sizes).to.deep.equal([1, 1, 2, 3, 4]);
    for (const maxKnots of [0, 32, 1.5]) {
      expect(() => compressSide(WETH_USDC, 'ask', levels, maxKnots), `${maxKnots}`).to.throw(CurveError, 'maxKnots');
    }
  });

  it('uses the finest quantum that its prices have a place in', () => {
    fc.assert(
      fc.property(oneSide, ([side, levels]) => {
        const packed = unpackSide(compressSide(WETH_USDC, side, levels, 15).words);
        const offsets = packed.knots.map(({ offset }) => offset);
        const widest = offsets.at(-1)!;
        expect(offsets[0]).to.equal(0n);
        expect(widest <= 65535n).to.equal(true);
        // One step finer, either the base price or the widest offset would not fit.
        if (packed.shift > 0n)
          expect(packed.basePrice * 2n + 2n >= 2n ** 25n || widest * 2n + 2n > 65535n).to.equal(true);
      }),
      fcOptions(200),
    );
  });

  it('does not let far-away orders make near prices coarser than 1/65536', () => {
    const near = Array.from({ length: 10 }, (_, i) => ({ priceTicks: 300_000n + BigInt(i), lots: 100n }));
    const alone = compressSide(WETH_USDC, 'ask', near, 15);
    for (const junkTicks of [600_000n, 3_000_000n, 2n ** 31n, 2n ** 31n + 1n]) {
      const withJunk = compressSide(WETH_USDC, 'ask', [...near, { priceTicks: junkTicks, lots: 7n }], 15);
      expect(withJunk.words).to.deep.equal(alone.words);
      expect(withJunk.leftOutLots).to.equal(7n);
    }
    const [best] = compressSide(WETH_USDC, 'ask', [...near, { priceTicks: 449_000n, lots: 7n }], 15).segments;
    expect(best!.subticks - 300_000n * 256n <= (300_000n * 256n) / 65536n).to.equal(true);
  });

  it('offers as much as its segments hold of orders too large for them', () => {
    const levels = [{ priceTicks: 300_000n, lots: 10n ** 20n }];
    for (const maxKnots of [1, 15]) {
      const { segments, leftOutLots } = compressSide(WETH_USDC, 'bid', levels, maxKnots);
      expect(ofSegments(segments)).to.deep.equal(
        Array.from({ length: maxKnots }, () => ({ lots: MAX_LENGTH_LOTS, price: 300_000n * 256n })),
      );
      expect(leftOutLots).to.equal(10n ** 20n - BigInt(maxKnots) * MAX_LENGTH_LOTS);
    }
  });
});

describe('core/curve/knots', () => {
  /** Objective of a set of knots: the largest error over the weight C^1.25, at every lot. */
  function objective(levels: readonly { price: number; lots: number }[], knots: readonly number[]): number {
    const costs = [0];
    for (const { price, lots } of levels) for (let i = 0; i < lots; i++) costs.push(costs.at(-1)! + price);
    let worst = 0;
    let breakpoint = 0;
    for (const { lots } of levels) {
      breakpoint += lots;
      const to = knots.find((knot) => knot >= breakpoint)!;
      const from = [0, ...knots].findLast((knot) => knot < breakpoint)!;
      const slope = (costs[to]! - costs[from]!) / (to - from);
      const error = costs[from]! + slope * (breakpoint - from) - costs[breakpoint]!;
      worst = Math.max(worst, error / Math.abs(costs[breakpoint]!) ** 1.25);
    }
    return worst;
  }

  /** Every choice of `count` - 1 inner knots out of all lots. */
  function* choices(from: number, depth: number, count: number): Generator<number[]> {
    if (count === 1) yield [depth];
    else {
      for (let knot = from + 1; knot < depth; knot++)
        for (const rest of choices(knot, depth, count - 1)) yield [knot, ...rest];
    }
  }

  it('finds the optimum of all whole-lot knots, to 0.1 %', () => {
    const tiny = fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 5 })), {
      minLength: 2,
      maxLength: 7,
    });
    fc.assert(
      fc.property(tiny, fc.integer({ min: 1, max: 4 }), fc.boolean(), (drawn, maxKnots, bids) => {
        let price = bids ? -1000 : 100;
        const levels = drawn.map(([gap, lots]) => ({ price: (price += gap), lots }));
        const depth = levels.reduce((sum, { lots }) => sum + lots, 0);
        const knots = chooseKnots(levels, maxKnots, depth);
        expect(knots.length).to.be.within(1, maxKnots);
        expect(knots.at(-1)).to.equal(depth);
        let optimum = Infinity;
        for (let count = 1; count <= Math.min(maxKnots, depth); count++) {
          for (const choice of choices(0, depth, count)) optimum = Math.min(optimum, objective(levels, choice));
        }
        expect(objective(levels, knots)).to.be.at.most(optimum * 1.001 + 1e-12);
      }),
      fcOptions(150),
    );
  });

  it('bounds the length of every segment', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 500 })), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        (drawn, maxKnots) => {
          let price = 1;
          const levels = drawn.map(([gap, lots]) => ({ price: (price += gap + 1), lots }));
          const depth = levels.reduce((sum, { lots }) => sum + lots, 0);
          const maxLots = Math.ceil(depth / maxKnots);
          const knots = chooseKnots(levels, maxKnots, maxLots);
          expect(knots.length).to.be.at.most(maxKnots);
          knots.forEach((knot, i) => expect(knot - (knots[i - 1] ?? 0)).to.be.within(1, maxLots));
          expect(knots.at(-1)).to.equal(depth);
        },
      ),
      fcOptions(200),
    );
  });
});
