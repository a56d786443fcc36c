import { expect } from 'chai';
import fc from 'fast-check';
import { carryFills, type CarriedFill, type RestingOrder } from '../../core/attribution.js';
import { MAX_SEARCH_STEPS, searchWorst } from '../../core/exposure/search.js';
import {
  envelopePayment,
  executablePublication,
  trimToInventory,
  worstPayment,
  worstPayments,
  type ExecutablePublication,
  type ExposureMarket,
} from '../../core/exposure.js';
import { createMarket, payToken } from '../../core/market.js';
import { snapshotSide, uncrossSnapshot } from '../../core/snapshot.js';
import type { Address, MarketSnapshot, Side, SnapshotOrder, Trim } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS, USDC, WETH, WETH_USDC } from '../support/markets.js';
import { inSnapshotOrder, oneSided, orderDraw, sideOf, type OrderDraw } from '../support/snapshots.js';

const SIDES: readonly Side[] = ['ask', 'bid'];
const ME = MAKERS[0]!;

/** Lots of one unit and ticks of one unit, so that every prefix of every order can be tried. */
const unitMarket = createMarket({ index: 0, base: WETH, quote: USDC, lotUnits: 1n, tickLotUnits: 1n, maxTtlSec: 60 });

type Draw = [oid: number, priceTicks: bigint, units: bigint];

const resting = (side: Side, drawn: readonly Draw[]): RestingOrder[] =>
  inSnapshotOrder(
    side,
    drawn.map(([oid, priceTicks, units]) => ({ oid, maker: ME, priceTicks, units })),
  );

/** The first `units` of a maker's orders, which is what a curve sells of them first. */
const prefix = (orders: readonly RestingOrder[], units: bigint): CarriedFill[] => {
  let need = units;
  return orders.flatMap((order) => {
    const take = need < order.units ? need : order.units;
    need -= take;
    return take === 0n ? [] : [{ oid: order.oid, maker: order.maker, baseUnits: take }];
  });
};

const total = (orders: readonly RestingOrder[]): bigint => orders.reduce((sum, order) => sum + order.units, 0n);

const cost = (side: Side, orders: readonly RestingOrder[]): bigint =>
  orders.reduce((sum, order) => sum + (side === 'ask' ? order.units : order.priceTicks * order.units), 0n);

/** The carry rule itself: every prefix of each publication in turn, carried into all later ones, the last filled whole. */
const searched = (side: Side, publications: readonly (readonly RestingOrder[])[]): bigint => {
  const [first, ...later] = publications;
  if (first === undefined) return 0n;
  if (later.length === 0) return cost(side, first);
  let worst = 0n;
  for (let units = 0n; units <= total(first); units++) {
    const fills = prefix(first, units);
    const prices = new Map(first.map((order) => [order.oid, order.priceTicks]));
    const paid = fills.reduce((sum, fill) => sum + (side === 'ask' ? 1n : prices.get(fill.oid)!) * fill.baseUnits, 0n);
    const rest = searched(
      side,
      later.map((orders) => carryFills(orders, fills)),
    );
    if (paid + rest > worst) worst = paid + rest;
  }
  return worst;
};

const price = (oid: number): bigint => BigInt(1 + ((oid * 7) % 10));

/** Publications of one maker: orders keep their price under one oid, and come, go and change size between publications. */
const publications = (count: number) =>
  fc.array(
    fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.bigInt(1n, 3n)), {
      maxLength: 3,
      selector: ([oid]) => oid,
    }),
    {
      minLength: count,
      maxLength: count,
    },
  );

const asResting = (side: Side, drawn: readonly (readonly [number, bigint])[]): RestingOrder[] =>
  resting(
    side,
    drawn.map(([oid, units]): Draw => [oid, price(oid), units]),
  );

describe('worst payment', () => {
  const worst = (side: Side, older: readonly (readonly RestingOrder[])[], next: readonly RestingOrder[]): bigint =>
    worstPayment({ market: unitMarket, side, older, next });

  it('is what the carry rule lets takers reach at most, and never above its bound', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDES),
        fc.integer({ min: 0, max: 2 }).chain((older) => publications(older + 1)),
        (side, drawn) => {
          const lists = drawn.map((one) => asResting(side, one));
          const units = worst(side, lists.slice(0, -1), lists.at(-1)!);
          expect(units).to.equal(searched(side, lists));
          const bound = envelopePayment({ market: unitMarket, side, older: lists.slice(0, -1), next: lists.at(-1)! });
          if (side === 'ask') expect(units).to.equal(bound);
          else expect(units <= bound, `${units} above ${bound}`).to.equal(true);
        },
      ),
      fcOptions(400),
    );
  });

  it('holds for three older publications too', () => {
    fc.assert(
      fc.property(publications(4), (drawn) => {
        const lists = drawn.map((one) => asResting('bid', one.slice(0, 2)));
        expect(worst('bid', lists.slice(0, -1), lists.at(-1)!)).to.equal(searched('bid', lists));
      }),
      fcOptions(100),
    );
  });

  it('falls back to the bound when a search would be too long', () => {
    const deep = (levels: number, firstOid: number): RestingOrder[] =>
      resting(
        'bid',
        Array.from({ length: levels }, (_, level): Draw => [firstOid + level, BigInt(1000 - level), 3n]),
      );
    // One new order at a better price, which any fill of the older ones takes out first.
    const next = resting('bid', [[9999, 2000n, 3n]]);
    const both = (
      older: readonly (readonly RestingOrder[])[],
    ): { units: bigint; bound: bigint; found: bigint | null } => ({
      units: worst('bid', older, next),
      bound: envelopePayment({ market: unitMarket, side: 'bid', older, next }),
      found: searchWorst([...older, next]),
    });
    const short = both([deep(10, 1), deep(11, 101)]);
    expect(short.units < short.bound && short.units === short.found).to.equal(true);
    const long = both([deep(200, 1), deep(201, 1001)]);
    expect(200 * 201).to.be.above(MAX_SEARCH_STEPS);
    expect(long.found).to.equal(null);
    expect(long.units).to.equal(long.bound);
  });

  it('is the plain cost of the new publication when the older ones hold the same orders, or fewer', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDES),
        publications(1),
        fc.array(fc.nat(8), { maxLength: 3 }),
        (side, [drawn], taken) => {
          const next = asResting(side, drawn!);
          const older = taken.map((units) => carryFills(next, prefix(next, BigInt(units))));
          expect(worst(side, older, next)).to.equal(cost(side, next));
        },
      ),
      fcOptions(100),
    );
  });

  it('rounds quote units down once, which is at least the sum of the legs', () => {
    const market = coarseMarkets()[0]!;
    const next = resting('bid', [
      [1, 3n, 5n],
      [2, 3n, 5n],
    ]);
    expect(worstPayment({ market, side: 'bid', older: [], next })).to.equal(3n);
  });
});

const draws = fc.array(orderDraw(9n, 6n), { maxLength: 6 });

const snapshotSides = (snapshot: MarketSnapshot, change: (orders: SnapshotOrder[], side: Side) => SnapshotOrder[]) => ({
  ...snapshot,
  asks: change(snapshot.asks, 'ask'),
  bids: change(snapshot.bids, 'bid'),
});

/** Markets with a candidate and up to two older publications each, that share some of the candidate's orders and had some fills. */
const scene = fc
  .array(
    fc.record({
      asks: draws,
      bids: draws,
      older: fc.array(
        fc.record({ kept: fc.nat(4), asks: draws, bids: draws, fills: fc.array(fc.bigInt(1n, 30n), { maxLength: 2 }) }),
        {
          maxLength: 2,
        },
      ),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((drawn): ExposureMarket[] =>
    drawn.map(({ asks, bids, older }, index) => {
      const market = coarseMarkets()[index]!;
      const snapshot = (
        askDraws: readonly OrderDraw[],
        bidDraws: readonly OrderDraw[],
        firstOid: number,
      ): MarketSnapshot => ({
        ...oneSided(market, 'ask', []),
        asks: sideOf('ask', askDraws, firstOid),
        bids: sideOf('bid', bidDraws, firstOid + 50),
      });
      const candidate = snapshot(asks, bids, 1 + index * 1000);
      const publications = older.map((one, at): ExecutablePublication => {
        const own = snapshot(one.asks, one.bids, 1 + index * 1000 + 100 * (at + 1));
        const mixed = snapshotSides(own, (orders, side) =>
          inSnapshotOrder(side, [...(side === 'ask' ? candidate.asks : candidate.bids).slice(0, one.kept), ...orders]),
        );
        const fills = one.fills.flatMap((baseUnits, pick) => {
          const order = mixed.bids[pick];
          return order === undefined ? [] : [{ ...order, market: index, side: 'bid' as const, baseUnits }];
        });
        return executablePublication(market, at + 1, mixed, fills);
      });
      return { market, older: publications, candidate };
    }),
  );

const trimmedBy = (candidate: MarketSnapshot, trims: readonly Trim[]): MarketSnapshot => {
  const cut = new Map(trims.map((trim) => [trim.oid, trim.lots]));
  return snapshotSides(candidate, (orders) =>
    orders
      .map((order) => ({ ...order, sizeLots: order.sizeLots - (cut.get(order.oid) ?? 0n) }))
      .filter((order) => order.sizeLots > 0n),
  );
};

const withCandidates = (
  markets: readonly ExposureMarket[],
  candidates: readonly (MarketSnapshot | null)[],
): ExposureMarket[] => markets.map((one, index) => ({ ...one, candidate: candidates[index] ?? null }));

const limitOf =
  (scale: bigint) =>
  (maker: Address, token: Address): bigint =>
    scale * BigInt(MAKERS.indexOf(maker) + 1) * (token === USDC.address ? 3n : 1n);

describe('trim to inventory', () => {
  it('keeps every maker and token within its limit, and where older curves alone exceed it, offers nothing', () => {
    fc.assert(
      fc.property(scene, fc.bigInt(-1n, 200n), (markets, scale) => {
        const available = limitOf(scale);
        const trimmed = trimToInventory(markets, available);
        const olderOnly = worstPayments(withCandidates(markets, []));
        const after = worstPayments(
          withCandidates(
            markets,
            trimmed.map((one) => one.snapshot),
          ),
        );
        for (const [maker, tokens] of after) {
          for (const [token, units] of tokens) {
            const older = olderOnly.get(maker)?.get(token) ?? 0n;
            const limit = available(maker, token);
            if (older <= limit) expect(units <= limit, `${units} above ${limit}`).to.equal(true);
            else expect(units).to.equal(older);
          }
        }
      }),
      fcOptions(300),
    );
  });

  it('takes whole lots, only where a limit would be exceeded, and says exactly what it took', () => {
    fc.assert(
      fc.property(scene, fc.bigInt(-1n, 200n), (markets, scale) => {
        const available = limitOf(scale);
        const before = worstPayments(markets);
        trimToInventory(markets, available).forEach(({ market, trims, snapshot }, index) => {
          const candidate = markets[index]!.candidate!;
          expect(snapshot).to.deep.equal(trimmedBy(candidate, trims));
          expect(trims).to.deep.equal([...trims].sort((a, b) => a.oid - b.oid));
          const orders = new Map(
            SIDES.flatMap((side) => snapshotSide(candidate, side).map((order) => [order.oid, { side, order }])),
          );
          for (const { oid, lots } of trims) {
            const { side, order } = orders.get(oid)!;
            const token = payToken(market, side);
            expect(lots > 0n && lots <= order.sizeLots).to.equal(true);
            expect(before.get(order.maker)!.get(token)! > available(order.maker, token)).to.equal(true);
          }
        });
      }),
      fcOptions(300),
    );
  });

  it('stays within the limit when what crosses is left out', () => {
    let crossed = 0;
    fc.assert(
      fc.property(scene, fc.bigInt(0n, 200n), (markets, scale) => {
        const trimmed = trimToInventory(markets, limitOf(scale)).map(({ snapshot }) => snapshot!);
        const left = trimmed.map((snapshot) => uncrossSnapshot(snapshot).snapshot);
        const before = worstPayments(withCandidates(markets, trimmed));
        for (const [maker, tokens] of worstPayments(withCandidates(markets, left))) {
          for (const [token, units] of tokens) expect(units <= before.get(maker)!.get(token)!).to.equal(true);
        }
        for (const [index, { asks, bids }] of left.entries()) {
          const gap = (asks[0]?.priceTicks ?? 2n ** 40n) - (bids[0]?.priceTicks ?? 0n);
          expect(gap > 0n).to.equal(true);
          if (asks.length + bids.length < trimmed[index]!.asks.length + trimmed[index]!.bids.length) crossed += 1;
        }
      }),
      fcOptions(200),
    );
    expect(crossed).to.be.greaterThan(20);
  });

  it('leaves out no lot that would have cost nothing', () => {
    fc.assert(
      fc.property(scene, fc.bigInt(0n, 200n), (markets, limit) => {
        const trimmed = trimToInventory(markets, () => limit);
        const snapshots = trimmed.map((one) => one.snapshot);
        const now = worstPayments(withCandidates(markets, snapshots));
        trimmed.forEach(({ market, trims }, index) => {
          const candidate = markets[index]!.candidate!;
          for (const { oid } of trims) {
            const side: Side = candidate.asks.some((order) => order.oid === oid) ? 'ask' : 'bid';
            const { maker } = snapshotSide(candidate, side).find((order) => order.oid === oid)!;
            const token = payToken(market, side);
            const units = now.get(maker)?.get(token) ?? 0n;
            if (units > limit) continue;
            const fewer = trims.map((trim) => (trim.oid === oid ? { ...trim, lots: trim.lots - 1n } : trim));
            const grown = snapshots.with(index, trimmedBy(candidate, fewer));
            expect(worstPayments(withCandidates(markets, grown)).get(maker)!.get(token)! > units).to.equal(true);
          }
        });
      }),
      fcOptions(150),
    );
  });

  const [wethUsdc, wethDai] = coarseMarkets();
  const asks = (market: number, ...drawn: [oid: number, priceTicks: bigint, sizeLots: bigint][]): MarketSnapshot => ({
    market,
    fillSeq: 0,
    askVolumeUnits: 0n,
    bidVolumeUnits: 0n,
    asks: drawn.map(([oid, priceTicks, sizeLots]) => ({ oid, maker: ME, priceTicks, sizeLots })),
    bids: [],
  });

  it('trims the worst price first, the newest order first at one price', () => {
    const candidate = asks(0, [1, 5n, 4n], [2, 6n, 4n], [3, 6n, 4n]);
    const [trimmed] = trimToInventory([{ market: wethUsdc!, older: [], candidate }], () => 69n);
    expect(trimmed!.trims).to.deep.equal([
      { oid: 2, lots: 2n },
      { oid: 3, lots: 4n },
    ]);
  });

  it('does not sell twice what moves to another market, and still quotes what stays', () => {
    const older = [executablePublication(wethUsdc!, 1, asks(0, [1, 5n, 5n], [2, 6n, 5n]), [])];
    const markets = [
      { market: wethUsdc!, older, candidate: asks(0, [1, 5n, 5n]) },
      { market: wethDai!, older: [], candidate: asks(1, [3, 5n, 5n]) },
    ];
    const [stays, moves] = trimToInventory(markets, () => 100n);
    expect(stays!.trims).to.deep.equal([]);
    expect(moves!.trims).to.deep.equal([{ oid: 3, lots: 5n }]);
    const [, replaced] = trimToInventory([{ ...markets[0]!, older: [] }, markets[1]!], () => 100n);
    expect(replaced!.trims).to.deep.equal([]);
  });

  it('measures the distance of a price against the best of its own market', () => {
    const markets = [
      { market: wethUsdc!, older: [], candidate: asks(0, [1, 1000n, 5n], [2, 1010n, 5n]) },
      { market: wethDai!, older: [], candidate: asks(1, [3, 10n, 5n], [4, 11n, 5n]) },
    ];
    const [usdc, dai] = trimToInventory(markets, () => 150n);
    expect(usdc!.trims).to.deep.equal([]);
    expect(dai!.trims).to.deep.equal([{ oid: 4, lots: 5n }]);
  });

  it('quotes at least 99.8 % of what a maker re-quotes with everything it has around a moving price', () => {
    const balances = new Map([
      [WETH.address, 100n * 10n ** 18n],
      [USDC.address, 300_000n * 10n ** 6n],
    ]);
    const block = fc.record({
      moveTicks: fc.bigInt(-60n, 60n),
      weights: fc.array(fc.bigInt(1n, 200n), { minLength: 12, maxLength: 12 }),
      executable: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(block, { minLength: 25, maxLength: 25 }), (blocks) => {
        const posted: MarketSnapshot[] = [];
        let midTicks = 300_000n;
        let oid = 0;
        let executableNow = 0;
        let quotedLots = 0n;
        let wantedLots = 0n;
        for (const { moveTicks, weights, executable } of blocks) {
          midTicks += moveTicks;
          // What was superseded once never comes back.
          executableNow = Math.min(executable, executableNow + 1);
          const weightSum = weights.reduce((sum, weight) => sum + weight, 0n);
          const ladder = (side: Side): SnapshotOrder[] =>
            weights.map((weight, level) => {
              const away = BigInt(5 + 10 * level);
              const priceTicks = side === 'ask' ? midTicks + away : midTicks - away;
              const units =
                side === 'ask'
                  ? (balances.get(WETH.address)! * weight) / weightSum
                  : (balances.get(USDC.address)! * weight * WETH_USDC.lotUnits) /
                    (weightSum * priceTicks * WETH_USDC.tickLotUnits);
              oid += 1;
              return { oid, maker: ME, priceTicks, sizeLots: units / WETH_USDC.lotUnits };
            });
          const candidate = { ...asks(0), asks: ladder('ask'), bids: ladder('bid') };
          const older = posted.slice(-executableNow).map((one, seq) => executablePublication(WETH_USDC, seq, one, []));
          const [trimmed] = trimToInventory([{ market: WETH_USDC, older, candidate }], (_, token) =>
            balances.get(token)!,
          );
          posted.push(trimmed!.snapshot!);
          for (const side of SIDES) {
            quotedLots += snapshotSide(trimmed!.snapshot!, side).reduce((sum, order) => sum + order.sizeLots, 0n);
            wantedLots += snapshotSide(candidate, side).reduce((sum, order) => sum + order.sizeLots, 0n);
          }
        }
        expect(quotedLots * 1000n >= wantedLots * 998n, `${quotedLots} of ${wantedLots} lots`).to.equal(true);
      }),
      fcOptions(10),
    );
  });
});
