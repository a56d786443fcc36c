/** Curves of both sides of a book, and the check that finds whatever is better than the book. */
import { expect } from 'chai';
import fc from 'fast-check';
import { buildCurve } from '../../../core/curve/build.js';
import { checkCurve, type ViolationCode } from '../../../core/curve/check.js';
import { MAX_KNOTS } from '../../../core/curve/compress.js';
import { totalLots, type Level } from '../../../core/curve/levels.js';
import { wordsHash } from '../../../core/curve/words.js';
import { CurveError } from '../../../core/curve/errors.js';
import type { Segment, Side } from '../../../core/types.js';
import { bookArbitrary, btcUsdc, recordedBook, snapshotOfLevels } from '../../support/books.js';
import { fcOptions } from '../../support/fc.js';
import { WETH_USDC } from '../../support/markets.js';
import { LOT, knotCounts, costOf, ofSegments, ends } from '../../support/worlds/segment-cost.js';

/** The largest error of the curve relative to the exact cost, in parts per million, at breakpoints within its depth. */
function worstPpm(side: Side, levels: readonly Level[], segments: readonly Segment[], lotUnits = LOT): number {
  const curve = ofSegments(segments, lotUnits);
  let worst = 0n;
  let [lots, exact] = [0n, 0n];
  for (const level of levels) {
    lots += level.lots;
    exact += level.lots * level.priceTicks * 256n;
    const posted = costOf(curve, lots);
    if (lots > (ends(curve).at(-1) ?? 0n)) break;
    const ppb = ((side === 'ask' ? posted - exact : exact - posted) * 10n ** 9n) / exact;
    if (ppb > worst) worst = ppb;
  }
  return Number(worst) / 1000;
}

describe('core/curve/build', () => {
  it('builds both sides of any book, and the check finds nothing', () => {
    fc.assert(
      fc.property(bookArbitrary, knotCounts, ({ asks, bids }, maxKnots) => {
        const snapshot = snapshotOfLevels(asks, bids);
        const curve = buildCurve(WETH_USDC, snapshot, { maxKnots });
        expect(curve.wordsHash).to.equal(wordsHash(curve.askWords, curve.bidWords));
        expect(curve.asks.length > 0 && curve.bids.length > 0).to.equal(true);
        expect(curve.asks[0]!.subticks > curve.bids[0]!.subticks).to.equal(true);
        expect(checkCurve(WETH_USDC, snapshot, curve)).to.deep.equal([]);
      }),
      fcOptions(200),
    );
  });

  it('is the same for the same book in any order and split', () => {
    fc.assert(
      fc.property(bookArbitrary, ({ asks, bids }) => {
        const snapshot = snapshotOfLevels(asks, bids);
        const merged = { ...snapshot, asks: [...snapshot.asks].reverse(), bids: [...snapshot.bids].reverse() };
        expect(buildCurve(WETH_USDC, merged, { maxKnots: 15 })).to.deep.equal(
          buildCurve(WETH_USDC, snapshot, { maxKnots: 15 }),
        );
      }),
      fcOptions(50),
    );
  });

  it('takes a book with an empty side, or none, and refuses a foreign snapshot', () => {
    const asks = [{ priceTicks: 300_000n, lots: 5n }];
    const curve = buildCurve(WETH_USDC, snapshotOfLevels(asks, []), { maxKnots: MAX_KNOTS });
    expect([curve.askWords.length, curve.bidWords.length]).to.deep.equal([1, 0]);
    const none = buildCurve(WETH_USDC, snapshotOfLevels([], []), { maxKnots: 15 });
    expect([none.askWords, none.bidWords]).to.deep.equal([[], []]);
    expect(() => buildCurve({ ...WETH_USDC, index: 1 }, snapshotOfLevels(asks, []), { maxKnots: 15 })).to.throw(
      CurveError,
      'market',
    );
  });

  it('stays close to the recorded book', () => {
    const { asks, bids } = recordedBook();
    expect([asks.length, bids.length].every((count) => count > 1000)).to.equal(true);
    const worst = [7, 15, 31].map((maxKnots) => {
      const curve = buildCurve(btcUsdc, snapshotOfLevels(asks, bids), { maxKnots });
      expect(curve.askLeftOutLots * 2000n < totalLots(asks) && curve.bidLeftOutLots * 2000n < totalLots(bids)).to.equal(
        true,
      );
      return [
        worstPpm('ask', asks, curve.asks, btcUsdc.lotUnits),
        worstPpm('bid', bids, curve.bids, btcUsdc.lotUnits),
      ] as const;
    });
    const within = [2600, 400, 80];
    worst.forEach((ppm, i) => expect(Math.max(...ppm), `${[7, 15, 31][i]} knots`).to.be.within(1, within[i]!));
  });
});

describe('core/curve/check', () => {
  const asks = [100n, 101n, 105n, 120n].map((priceTicks) => ({ priceTicks, lots: 10n }));
  const bids = [99n, 98n, 90n, 50n].map((priceTicks) => ({ priceTicks, lots: 10n }));
  const snapshot = snapshotOfLevels(asks, bids);
  const segments = (levels: readonly Level[]): Segment[] =>
    levels.map(({ priceTicks, lots }) => ({ lengthUnits: lots * LOT, subticks: priceTicks * 256n }));
  const unnamed = { exactAskKnots: 0, exactBidKnots: 0 };
  const exact = { asks: segments(asks), bids: segments(bids), ...unnamed };
  const codes = (change: (curve: typeof exact) => void): ViolationCode[] => {
    const curve = structuredClone(exact);
    change(curve);
    return checkCurve(WETH_USDC, snapshot, curve).map(({ code }) => code);
  };

  it('accepts the exact book and anything worse', () => {
    expect(codes(() => undefined)).to.deep.equal([]);
    expect(codes((curve) => curve.asks.pop())).to.deep.equal([]);
    expect(codes((curve) => (curve.asks[3]!.subticks += 1n))).to.deep.equal([]);
    expect(codes((curve) => (curve.bids[3]!.subticks -= 1n))).to.deep.equal([]);
  });

  it('finds one subtick, one unit and one step too much', () => {
    for (const i of [0, 1, 2, 3]) {
      expect(codes((curve) => (curve.asks[i]!.subticks -= 1n))).to.deep.equal(['better_than_book']);
      expect(codes((curve) => (curve.bids[i]!.subticks += 1n))).to.deep.equal(['better_than_book']);
    }
    expect(codes((curve) => (curve.asks[0]!.lengthUnits += 1n))).to.deep.equal(['better_than_book']);
    expect(codes((curve) => (curve.bids[2]!.lengthUnits += 1n))).to.deep.equal(['better_than_book']);
    expect(codes((curve) => (curve.asks[3]!.lengthUnits += 1n))).to.deep.equal(['beyond_depth']);
    expect(codes((curve) => curve.asks.reverse())).to.deep.equal(['not_monotone', 'not_monotone', 'not_monotone']);
    expect(codes((curve) => (curve.bids[1]!.lengthUnits = 0n))).to.deep.equal(['not_positive']);
    expect(codes((curve) => (curve.bids[3]!.subticks = 0n))).to.deep.equal(['not_positive']);
    const empty = { ...snapshot, asks: [] };
    expect(checkCurve(WETH_USDC, empty, exact).map(({ code }) => code)).to.deep.equal(['beyond_depth']);
  });

  it('finds a single unit one subtick too cheap', () => {
    const market = { ...WETH_USDC, lotUnits: 1n };
    const side = (units: readonly bigint[]) => units.map((subticks) => ({ lengthUnits: 1n, subticks }));
    const book = snapshotOfLevels([{ priceTicks: 100n, lots: 2n }], []);
    expect(checkCurve(market, book, { asks: side([25_600n, 25_600n]), bids: [], ...unnamed })).to.deep.equal([]);
    const found = checkCurve(market, book, { asks: side([25_599n, 25_601n]), bids: [], ...unnamed });
    expect(found.map(({ code }) => code)).to.deep.equal(['better_than_book']);
  });

  it('finds a dip inside a level that its ends do not show', () => {
    // The book costs 2010 at 20 lots, 2535 at 25 and 3060 at 30; the curve about 2026, 2532.5 and 3102.5.
    const kinked = [
      { lengthUnits: 25n * LOT, subticks: 25_933n },
      { lengthUnits: 15n * LOT, subticks: 114n * 256n },
    ];
    const found = checkCurve(WETH_USDC, snapshot, { asks: kinked, bids: [], ...unnamed });
    expect(found.map(({ code }) => code)).to.deep.equal(['better_than_book']);
  });

  it('finds a curve that is better than the book from the end of a segment on, though not from its first unit', () => {
    for (const i of [0, 1, 2]) {
      for (const worse of [1n, 7n]) {
        // Segments have equal lengths: the next one gives back what this one takes too much, or one subtick less.
        const shift = (curve: typeof exact, back: bigint) => {
          curve.asks[i]!.subticks += worse;
          curve.asks[i + 1]!.subticks -= back;
          curve.bids[i]!.subticks -= worse;
          curve.bids[i + 1]!.subticks += back;
        };
        for (const back of [1n, worse]) {
          expect(codes((curve) => shift(curve, back))).to.deep.equal(['better_from_knot', 'better_from_knot']);
        }
      }
    }
  });

  it('finds segments that are called exact and are not', () => {
    const named = (
      exactAskKnots: number,
      exactBidKnots: number,
      change: (curve: typeof exact) => void = () => undefined,
    ) =>
      codes((curve) => {
        Object.assign(curve, { exactAskKnots, exactBidKnots });
        change(curve);
      });
    expect(named(4, 4)).to.deep.equal([]);
    expect(named(5, 4)).to.deep.equal(['not_exact']);
    expect(named(4, 5)).to.deep.equal(['not_exact']);
    for (const i of [0, 1, 2, 3]) {
      const worse = (curve: typeof exact) => void (curve.asks[i]!.subticks += 1n);
      expect(named(i, 4, worse)).to.deep.equal([]);
      expect(named(i + 1, 4, worse)).to.deep.equal(['not_exact']);
      const worseBid = (curve: typeof exact) => void (curve.bids[i]!.subticks -= 1n);
      expect(named(4, i, worseBid)).to.deep.equal([]);
      expect(named(4, i + 1, worseBid)).to.deep.equal(['not_exact']);
    }
    // A chord over two levels meets the book at both ends, and only there.
    const chord = [{ lengthUnits: 20n * LOT, subticks: 100n * 256n + 128n }];
    expect(checkCurve(WETH_USDC, snapshot, { asks: chord, bids: [], ...unnamed })).to.deep.equal([]);
    const found = checkCurve(WETH_USDC, snapshot, { asks: chord, bids: [], exactAskKnots: 1, exactBidKnots: 0 });
    expect(found.map(({ code }) => code)).to.deep.equal(['not_exact']);
  });

  it('finds a crossed curve', () => {
    const crossed = snapshotOfLevels(asks, [{ priceTicks: 100n, lots: 1n }]);
    const curve = { asks: exact.asks, bids: [{ lengthUnits: LOT, subticks: 25_600n }], ...unnamed };
    expect(checkCurve(WETH_USDC, crossed, curve).map(({ code }) => code)).to.deep.equal(['crossed']);
    expect(() => buildCurve(WETH_USDC, crossed, { maxKnots: 15 })).to.throw(CurveError, 'crossed');
  });
});
