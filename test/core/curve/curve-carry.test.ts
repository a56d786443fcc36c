import { expect } from 'chai';
import { attributeFill, openSide, orderFillsOf } from '../../../core/attribution.js';
import { buildCurve } from '../../../core/curve/build.js';
import { exactKnots, MAX_EXACT_KNOTS, raisedConsumption } from '../../../core/curve/carry.js';
import { checkCurve } from '../../../core/curve/check.js';
import { depthUnits, trade } from '../../../core/curve/walk.js';
import type { MarketSnapshot } from '../../../core/types.js';
import { snapshotOfLevels } from '../../support/books.js';
import { adversarialSide, raising, searchCarries, type CarryRule } from '../../support/worlds/carry-search.js';
import { fcOptions } from '../../support/fc.js';
import { MAKERS, WETH_USDC } from '../../support/markets.js';
import { drawer } from '../../support/random.js';

const LOT = WETH_USDC.lotUnits;
const segments = [
  [10n, 100n],
  [5n, 101n],
  [20n, 103n],
].map(([lots = 0n, ticks = 0n]) => ({ lengthUnits: lots * LOT, subticks: ticks * 256n }));

describe('core/curve/carry', () => {
  it('raises to the end of the segment, but not within the exact ones', () => {
    const raised = (exact: number, units: bigint) => raisedConsumption(segments, exact, units);
    const ends = [10n * LOT, 15n * LOT, 35n * LOT] as const;
    for (const exact of [0, 1, 2, 3, 15]) {
      expect(raised(exact, 0n)).to.equal(0n);
      ends.forEach((end, i) => {
        const first = (ends[i - 1] ?? 0n) + 1n;
        for (const units of [first, (first + end) / 2n, end - 1n]) {
          expect(raised(exact, units), `${units} of ${exact}`).to.equal(i < exact ? units : end);
        }
        expect(raised(exact, end)).to.equal(end);
      });
      for (const beyond of [ends[2] + 1n, 2n ** 92n - 1n]) expect(raised(exact, beyond)).to.equal(beyond);
      expect(raisedConsumption([], exact, 7n)).to.equal(7n);
    }
  });

  it('counts the leading segments that equal the book, whichever way they divide its levels', () => {
    const levels = [
      { priceTicks: 100n, lots: 10n },
      { priceTicks: 101n, lots: 5n },
      { priceTicks: 102n, lots: 10n },
      { priceTicks: 104n, lots: 10n },
    ];
    expect(exactKnots(WETH_USDC, levels, segments)).to.equal(2);
    expect(exactKnots(WETH_USDC, levels, [])).to.equal(0);
    const cut = (...lots: bigint[]) => lots.map((count) => ({ lengthUnits: count * LOT, subticks: 25_600n }));
    expect(exactKnots(WETH_USDC, levels, cut(4n, 6n))).to.equal(2);
    expect(exactKnots(WETH_USDC, levels, cut(4n, 7n))).to.equal(1);
    expect(exactKnots(WETH_USDC, levels, [{ lengthUnits: 10n * LOT, subticks: 25_601n }])).to.equal(0);
    // A chord over two levels meets the book at its end alone.
    expect(exactKnots(WETH_USDC, levels, [{ lengthUnits: 20n * LOT, subticks: 101n * 256n }])).to.equal(0);
    const many = [{ priceTicks: 100n, lots: 20n }];
    expect(exactKnots(WETH_USDC, many, cut(...Array<bigint>(20).fill(1n)))).to.equal(MAX_EXACT_KNOTS);
    // Deeper than the book: the check refuses it, and nothing beyond counts as exact.
    expect(exactKnots(WETH_USDC, many, cut(10n, 11n))).to.equal(1);
  });
});

/** Ten million in test:deep, a sample in CI. */
const CARRIES = fcOptions(1).numRuns > 1 ? 10_000_000 : 20_000;

describe('what a late fill can cost the operator', function () {
  this.timeout(CARRIES);
  const { seed } = fcOptions(1);

  it(`is nothing, in ${CARRIES.toLocaleString('en-US')} carries on curves that follow their books badly`, () => {
    const search = searchCarries(seed, CARRIES, raising);
    const { curves, carries, raised, lowest, at } = search;
    if (CARRIES > 1_000_000) {
      console.log(
        `      seed ${seed}: ${carries} carries on ${curves} curves, ${raised} raised, lowest gain ${lowest}`,
      );
    }
    expect(lowest, `seed ${at?.seed}, ${at?.carryUnits} units`).to.equal(0n);
    // The search is of no use unless most carries are raised, and many are not.
    expect(raised / carries).to.be.within(0.5, 0.95);
  });

  it('is found by the same search where nothing is raised, or one segment too few, or one too many is called exact', () => {
    const unraised: CarryRule = (_, carryUnits) => carryUnits;
    const tooExact: CarryRule = ({ segments, exactKnots: exact }, carryUnits) =>
      raisedConsumption(segments, exact + 1, carryUnits);
    const oneUnitShort: CarryRule = (one, carryUnits) => {
      const raised = raising(one, carryUnits);
      return raised === carryUnits ? carryUnits : raised - 1n;
    };
    for (const rule of [unraised, tooExact, oneUnitShort]) {
      expect(searchCarries(seed, 10_000, rule).lowest < 0n, rule.name).to.equal(true);
    }
  });

  it('is searched on curves that may be posted', () => {
    for (let i = 0; i < 200; i++) {
      const { market, side, levels, segments, exactKnots: exact } = adversarialSide(drawer(seed + i));
      const snapshot = snapshotOfLevels(side === 'ask' ? levels : [], side === 'bid' ? levels : []);
      const curve = {
        asks: side === 'ask' ? segments : [],
        bids: side === 'bid' ? segments : [],
        exactAskKnots: side === 'ask' ? exact : 0,
        exactBidKnots: side === 'bid' ? exact : 0,
      };
      expect(checkCurve({ ...WETH_USDC, ...market }, snapshot, curve), `seed ${seed + i}`).to.deep.equal([]);
    }
  });

  it('does not drain the vault when a maker scatters an order behind the back of a late fill', () => {
    const maker = MAKERS[0]!;
    // 200 WETH in 40 orders, each 1.3 times the one before, from 3,000 to 5,700 USDC.
    const orders = Array.from({ length: 40 }, (_, i) => ({
      oid: i + 1,
      maker,
      priceTicks: BigInt(Math.round(300_000 * 1.9 ** (i / 39))),
      sizeLots: BigInt(Math.ceil((2_000_000 * 0.3 * 1.3 ** i) / (1.3 ** 40 - 1))),
    }));
    const empty: MarketSnapshot = { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: [], bids: [] };
    const scattered = { ...empty, asks: orders };
    const curve = buildCurve(WETH_USDC, scattered, { maxKnots: 31 });
    /** What the operator gains at the least, when so much was taken late and takers buy parts of what is left from `consumed` on. */
    const lowestFrom = (lateUnits: bigint, consumed: bigint): bigint => {
      // The late fill took another order of the same maker, which is not in the new book.
      const before = { ...empty, asks: [{ oid: 100, maker, priceTicks: 300_000n, sizeLots: lateUnits / LOT }] };
      const fill = { side: 'ask' as const, baseUnits: lateUnits, quoteUnits: 0n };
      const lateFill = attributeFill(WETH_USDC, openSide(WETH_USDC, before, 'ask'), fill);
      const late = orderFillsOf(WETH_USDC, 'ask', lateFill.decomposition);
      const state = openSide(WETH_USDC, scattered, 'ask', late, consumed - lateUnits);
      let lowest = 0n;
      for (const part of [20n, 50n, 80n, 100n]) {
        const baseUnits = ((depthUnits(curve.asks) - consumed) * part) / 100n;
        const bought = trade(WETH_USDC, curve, { askUnits: consumed, bidUnits: 0n }, 'buyExactOut', baseUnits);
        if (bought === null) continue;
        const { decomposition } = attributeFill(WETH_USDC, state, { side: 'ask', ...bought });
        expect(decomposition.missingBaseUnits).to.equal(0n);
        if (decomposition.operatorGainUnits < lowest) lowest = decomposition.operatorGainUnits;
      }
      return lowest;
    };
    let drained = 0n;
    for (let wholeTokens = 1n; wholeTokens < 200n; wholeTokens++) {
      const lateUnits = wholeTokens * 10n ** 18n;
      expect(lowestFrom(lateUnits, raisedConsumption(curve.asks, curve.exactAskKnots, lateUnits))).to.equal(0n);
      const unraised = lowestFrom(lateUnits, lateUnits);
      if (unraised < drained) drained = unraised;
    }
    // Without the rule, the curve of this book would have cost the operator more than 2,000 USDC.
    expect(drained < -2_000_000_000n, `${drained}`).to.equal(true);
  });
});
