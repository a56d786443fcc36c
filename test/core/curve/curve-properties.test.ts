import { expect } from 'chai';
import fc from 'fast-check';
import { attributeFill, openSide, orderFillsOf, type SideState } from '../../../core/attribution.js';
import { buildCurve, chooseCurveKnots } from '../../../core/curve/build.js';
import { raisedConsumption } from '../../../core/curve/carry.js';
import { checkCurve } from '../../../core/curve/check.js';
import { chooseKnotStep, compressSide, type KnotPolicy } from '../../../core/curve/compress.js';
import { costPoints, PPB, worstErrorPpb } from '../../../core/curve/error.js';
import { sideLevels, totalLots, type Level } from '../../../core/curve/levels.js';
import { depthUnits, trade, type CurveSides, type TradeMode } from '../../../core/curve/walk.js';
import { SUBTICKS_PER_TICK } from '../../../core/market.js';
import { snapshotSide } from '../../../core/snapshot.js';
import type { Market, MarketSnapshot, OrderFill, Side } from '../../../core/types.js';
import { BOOK_SHAPES, bookArbitrary, recordedBook, sideArbitrary, snapshotOfLevels } from '../../support/books.js';
import { fcOptions } from '../../support/fc.js';
import { coarseMarkets, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const SIDES: readonly Side[] = ['ask', 'bid'];
const sideOf = fc.constantFrom(...SIDES);

/** A curve on another market's grid: the orders are the same, what a tick and a lot are worth is not. */
const markets: readonly Market[] = [WETH_USDC, { ...WETH_DAI, index: 0 }, coarseMarkets()[0]!];

/** The exact cost of the first units of a side, in subticks x units. */
function exactCost(market: Market, levels: readonly Level[], units: bigint): bigint {
  let left = units;
  return levels.reduce((cost, { priceTicks, lots }) => {
    const taken = left < lots * market.lotUnits ? left : lots * market.lotUnits;
    left -= taken;
    return cost + taken * priceTicks * SUBTICKS_PER_TICK;
  }, 0n);
}

/** Subticks x units in quote units, rounded up. */
const inQuote = (market: Market, cost: bigint): bigint => {
  const divisor = market.lotUnits * SUBTICKS_PER_TICK;
  return (cost * market.tickLotUnits + divisor - 1n) / divisor;
};

interface Traded {
  gains: bigint;
  legs: bigint;
  fills: bigint;
  units: bigint;
  state: SideState;
}

/** Trades parts (per mille of what is left) on one side from where `state` stands, and attributes each. */
function tradeAll(
  market: Market,
  curve: CurveSides,
  state: SideState,
  parts: readonly { permille: bigint; exactIn: boolean }[],
): Traded {
  const depth = depthUnits(state.side === 'ask' ? curve.asks : curve.bids);
  const traded: Traded = { gains: 0n, legs: 0n, fills: 0n, units: 0n, state };
  for (const { permille, exactIn } of parts) {
    const consumed = traded.state.consumedUnits;
    const base = ((depth - consumed) * permille) / 1000n;
    const taken = { askUnits: consumed, bidUnits: consumed };
    const byBase: TradeMode = state.side === 'ask' ? 'buyExactOut' : 'sellExactIn';
    let result = trade(market, curve, taken, byBase, base);
    if (result !== null && exactIn) {
      const byQuote: TradeMode = state.side === 'ask' ? 'buyExactIn' : 'sellExactOut';
      result = trade(market, curve, taken, byQuote, result.quoteUnits);
    }
    if (result === null) continue;
    const { decomposition, state: next } = attributeFill(market, traded.state, { side: state.side, ...result });
    expect(decomposition.missingBaseUnits).to.equal(0n);
    traded.gains += decomposition.operatorGainUnits;
    traded.legs += BigInt(decomposition.legs.length);
    traded.fills += 1n;
    traded.units += result.baseUnits;
    traded.state = next;
  }
  return traded;
}

const parts = fc.array(fc.record({ permille: fc.bigInt(1n, 1000n), exactIn: fc.boolean() }), {
  minLength: 1,
  maxLength: 6,
});

/**
 * The bound of docs/curve.md over all fills on a curve, with so many legs together, in quote units: buyers pay each rounding, and of what
 * makers pay, each leg is rounded down.
 */
const leastGain = (side: Side, legs: bigint): bigint => (side === 'ask' ? 0n : 1n - legs);

describe('what the operator gains on a curve', () => {
  const scene = fc.record({
    book: bookArbitrary,
    market: fc.constantFrom(...markets),
    side: sideOf,
    maxKnots: fc.constantFrom(2, 7, 15, 31),
    parts,
  });

  it('is at least minus the rounding of the legs, and at most eps of the notional, without carry', () => {
    fc.assert(
      fc.property(scene, ({ book, market, side, maxKnots, parts: drawn }) => {
        const snapshot = snapshotOfLevels(book.asks, book.bids);
        const curve = buildCurve(market, snapshot, { maxKnots });
        const levels = sideLevels(side, snapshotSide(snapshot, side));
        const eps = worstErrorPpb(market, side, levels, side === 'ask' ? curve.asks : curve.bids) + 1n;
        const { gains, legs, fills, units } = tradeAll(market, curve, openSide(market, snapshot, side), drawn);
        fc.pre(fills > 0n);
        const notional = inQuote(market, exactCost(market, levels, units));
        expect(gains >= leastGain(side, legs), `${gains} below ${leastGain(side, legs)}`).to.equal(true);
        const most = (notional * eps) / PPB + 1n + legs + fills;
        expect(gains <= most, `${gains} above ${most}`).to.equal(true);
      }),
      fcOptions(300),
    );
  });

  it('is at least minus the rounding of the legs whatever was carried, though the book changed in between', () => {
    const change = fc.record({ kept: fc.nat(20), late: fc.bigInt(1n, 600n) });
    fc.assert(
      fc.property(scene, change, ({ book, market, side, maxKnots, parts: drawn }, { kept, late }) => {
        const snapshot = snapshotOfLevels(book.asks, book.bids);
        // The older book has the same makers; only some of its orders are still there.
        const renamed = (orders: MarketSnapshot['asks']) =>
          orders.map((order, i) => (i % 20 < kept ? order : { ...order, oid: order.oid + 100_000 }));
        const older = { ...snapshot, asks: renamed(snapshot.asks), bids: renamed(snapshot.bids) };
        const curve = buildCurve(market, snapshot, { maxKnots });
        const segments = side === 'ask' ? curve.asks : curve.bids;
        const lateUnits = (depthUnits(segments) * late) / 1000n;
        fc.pre(lateUnits > 0n);
        const lateFill = attributeFill(market, openSide(market, older, side), {
          side,
          baseUnits: lateUnits,
          quoteUnits: 0n,
        });
        const lateFills: OrderFill[] = orderFillsOf(market, side, lateFill.decomposition);
        const exact = side === 'ask' ? curve.exactAskKnots : curve.exactBidKnots;
        const raisedUnits = raisedConsumption(segments, exact, lateUnits) - lateUnits;
        const state = openSide(market, snapshot, side, lateFills, raisedUnits);
        expect(state.consumedUnits).to.equal(lateUnits + raisedUnits);
        const { gains, legs, fills } = tradeAll(market, curve, state, drawn);
        fc.pre(fills > 0n);
        expect(gains >= leastGain(side, legs), `${gains} below ${leastGain(side, legs)}`).to.equal(true);
      }),
      fcOptions(300),
    );
  });
});

describe('depth that rounding loses', () => {
  const lostPpm = (levels: readonly Level[], side: Side, maxKnots: number): number => {
    const { leftOutLots } = compressSide(WETH_USDC, side, levels, maxKnots);
    return Number((leftOutLots * 10n ** 6n * 1000n) / totalLots(levels)) / 1000;
  };

  it('is below 0.1 bps on books of 100 levels and more', () => {
    const many = fc
      .record({ side: sideOf, shape: fc.constantFrom('dense' as const, 'walled' as const) })
      .chain(({ side, shape }) =>
        fc.tuple(
          fc.constant(side),
          fc.array(sideArbitrary(side, shape, 300_000n), { minLength: 12, maxLength: 12 }).map((drawn) => {
            let priceTicks = 300_000n;
            return drawn.flat().map(({ lots }) => ({ priceTicks: (priceTicks += side === 'ask' ? 3n : -3n), lots }));
          }),
        ),
      );
    fc.assert(
      fc.property(many, fc.constantFrom(7, 15, 31), ([side, levels], maxKnots) => {
        fc.pre(levels.length >= 100);
        expect(lostPpm(levels, side, maxKnots)).to.be.below(10);
      }),
      fcOptions(100),
    );
  });

  it('is below 0.1 bps behind a wall at the best price, which costs a knot only where levels abound', () => {
    const wall = (count: number): Level[] =>
      Array.from({ length: count }, (_, i) => ({
        priceTicks: 300_000n + BigInt(3 * i),
        lots: i === 0 ? 8_388_607n : 1_001n,
      }));
    for (const maxKnots of [7, 15, 31]) {
      expect(lostPpm(wall(100), 'ask', maxKnots)).to.be.below(10);
      expect(lostPpm(wall(5), 'ask', maxKnots)).to.be.below(10);
    }
    expect(compressSide(WETH_USDC, 'ask', wall(5), 7).segments).to.have.length(6);
  });
});

describe('curves of extreme books', () => {
  /** Thousands of levels over the whole scale of prices, with sizes up to far more than a segment holds. */
  const huge = fc
    .record({
      count: fc.constantFrom(1, 2, 100, 5_000),
      best: fc.bigInt(1n, 2n ** 20n),
      reach: fc.integer({ min: 0, max: 31 }),
      size: fc.integer({ min: 0, max: 40 }),
      seed: fc.integer(),
    })
    .map(({ count, best, reach, size, seed }) => {
      let state = BigInt(seed >>> 0) + 1n;
      const draw = (bits: number): bigint => {
        state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
        return (state >> 16n) % 2n ** BigInt(bits);
      };
      const top = 2n ** BigInt(reach);
      const prices = new Set(Array.from({ length: count }, () => best + (draw(40) % top)));
      const sorted = [...prices].filter((one) => one <= 2n ** 31n).sort((a, b) => (a < b ? -1 : 1));
      return sorted.map((priceTicks) => ({ priceTicks, lots: 1n + draw(size) }));
    });

  it('are never better than the book, in order and within its depth, on either side', () => {
    fc.assert(
      fc.property(huge, fc.constantFrom(7, 15, 31), (levels, maxKnots) => {
        for (const side of SIDES) {
          const ordered = side === 'ask' ? levels : [...levels].reverse();
          const { segments } = compressSide(WETH_USDC, side, ordered, maxKnots);
          const curve = {
            asks: side === 'ask' ? segments : [],
            bids: side === 'bid' ? segments : [],
            exactAskKnots: 0,
            exactBidKnots: 0,
          };
          const orders = ordered.map(({ priceTicks, lots: sizeLots }, oid) => ({
            oid,
            maker: '0x00' as const,
            priceTicks,
            sizeLots,
          }));
          const empty = { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: [], bids: [] };
          const snapshot = side === 'ask' ? { ...empty, asks: orders } : { ...empty, bids: orders };
          expect(checkCurve(WETH_USDC, snapshot, curve)).to.deep.equal([]);
          expect(segments.length).to.be.within(levels.length === 0 ? 0 : 1, maxKnots);
        }
      }),
      fcOptions(25),
    );
  });
});

describe('errors of a curve', () => {
  it('are largest at a breakpoint of the book or of the curve', () => {
    fc.assert(
      fc.property(sideOf, fc.constantFrom(...BOOK_SHAPES), fc.bigInt(0n, 1000n), (side, shape, permille) => {
        const [levels] = fc.sample(sideArbitrary(side, shape, 300_000n), { numRuns: 1, seed: Number(permille) });
        const { segments } = compressSide(WETH_USDC, side, levels!, 7);
        const worst = worstErrorPpb(WETH_USDC, side, levels!, segments);
        const depth = depthUnits(segments);
        const units = 1n + ((depth - 1n) * permille) / 1000n;
        const exact = exactCost(WETH_USDC, levels!, units);
        let left = units;
        const posted = segments.reduce((cost, { lengthUnits, subticks }) => {
          const taken = left < lengthUnits ? left : lengthUnits;
          left -= taken;
          return cost + taken * subticks;
        }, 0n);
        const error = ((side === 'ask' ? posted - exact : exact - posted) * PPB) / exact;
        expect(error >= 0n && error <= worst, `${error} of ${worst}`).to.equal(true);
        expect(costPoints(WETH_USDC, levels!, segments).at(-1)!.units).to.equal(depth);
      }),
      fcOptions(100),
    );
  });
});

describe('how many knots a side gets', () => {
  const policy: KnotPolicy = { maxKnots: 31, enoughMilliBps: 1_600, wordGainMilliBps: 10, maxErrorMilliBps: 5_000 };
  const ladder = (count: number, gapTicks: bigint): Level[] =>
    Array.from({ length: count }, (_, i) => ({
      priceTicks: 300_000n + BigInt(i) * gapTicks,
      lots: 500n + BigInt(i % 7),
    }));

  it('is fewest for thin books, more for wide ones, up to the limit', () => {
    expect(chooseKnotStep('ask', ladder(7, 1_000n), policy)).to.equal(7);
    expect(chooseKnotStep('ask', ladder(400, 1n), policy)).to.equal(7);
    expect(chooseKnotStep('ask', ladder(400, 12n), policy)).to.equal(15);
    expect(chooseKnotStep('ask', ladder(400, 100n), policy)).to.equal(31);
    expect(chooseKnotStep('ask', ladder(400, 100n), { ...policy, maxKnots: 15 })).to.equal(15);
    expect(chooseKnotStep('ask', [], policy)).to.equal(7);
  });

  it('is no more where a further word would not pay', () => {
    const dear = { ...policy, wordGainMilliBps: 100_000 };
    expect(chooseKnotStep('ask', ladder(400, 100n), { ...dear, maxErrorMilliBps: 0 })).to.equal(7);
    // Depth is not left out as long as further words would follow it.
    expect(chooseKnotStep('ask', ladder(400, 100n), { ...dear, maxErrorMilliBps: 50_000 })).to.equal(7);
    expect(chooseKnotStep('ask', ladder(400, 100n), dear)).to.equal(15);
    expect(chooseKnotStep('ask', ladder(400, 12n), { ...policy, enoughMilliBps: 1_000_000 })).to.equal(7);
  });

  it('keeps the worst error of the recorded book within the limit', () => {
    const { asks, bids } = recordedBook();
    const snapshot = snapshotOfLevels(asks, bids);
    const knots = chooseCurveKnots(snapshot, policy);
    expect(knots).to.deep.equal({ askKnots: 31, bidKnots: 31, maxErrorMilliBps: 5_000 });
    const near = snapshotOfLevels(asks.slice(0, 100), bids.slice(0, 100));
    expect(chooseCurveKnots(near, policy)).to.include({ askKnots: 7, bidKnots: 7 });
  });
});
