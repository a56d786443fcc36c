import { expect } from 'chai';
import fc from 'fast-check';
import {
  attributeFill,
  carryFills,
  consumptionMismatchUnits,
  openSide,
  orderFillsOf,
  replayCurve,
  restingOrders,
  type SideState,
} from '../../core/attribution.js';
import { snapshotSide } from '../../core/snapshot.js';
import type { Decomposition, Market, MarketSnapshot, OrderFill, Side } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import { depthUnits, oneSided, orderDraw, part, unitsByOid, type OrderDraw } from '../support/snapshots.js';

const market = coarseMarkets()[0]!;
const SIDES: readonly Side[] = ['ask', 'bid'];
const draws = fc.array(orderDraw(), { minLength: 1, maxLength: 10 });
const permille = fc.bigInt(1n, 1000n);

/** Exact book cost of the walk from one offset to another, rounded the way the contract does: for the vault. */
const bookQuote = (of: Market, snapshot: MarketSnapshot, side: Side, fromUnits: bigint, toUnits: bigint): bigint => {
  let at = 0n;
  let exact = 0n;
  for (const order of snapshotSide(snapshot, side)) {
    const end = at + order.sizeLots * of.lotUnits;
    const low = at > fromUnits ? at : fromUnits;
    const high = end < toUnits ? end : toUnits;
    if (high > low) exact += order.priceTicks * of.tickLotUnits * (high - low);
    at = end;
  }
  return (exact + (side === 'ask' ? of.lotUnits - 1n : 0n)) / of.lotUnits;
};

/** The rule again, another way: orders in a table, one base unit carried at a time, shares as cross-multiplied fractions. */
const oracle = (snapshot: MarketSnapshot, side: Side) => {
  const left = new Map(snapshotSide(snapshot, side).map((order) => [order.oid, order.sizeLots * market.lotUnits]));
  const orders = snapshotSide(snapshot, side);
  const betterFirst = (a: bigint, b: bigint): number => (a === b ? 0 : a < b === (side === 'ask') ? -1 : 1);

  const carry = (late: readonly OrderFill[]): void => {
    const leftovers: OrderFill['maker'][] = [];
    for (const { oid, maker, baseUnits } of late) {
      for (let unit = 0n; unit < baseUnits; unit++) {
        if ((left.get(oid) ?? 0n) > 0n) left.set(oid, left.get(oid)! - 1n);
        else leftovers.push(maker);
      }
    }
    for (const maker of leftovers) {
      const [first] = orders
        .filter((order) => order.maker === maker && left.get(order.oid)! > 0n)
        .sort((a, b) => betterFirst(a.priceTicks, b.priceTicks) || a.oid - b.oid);
      if (first !== undefined) left.set(first.oid, left.get(first.oid)! - 1n);
    }
  };

  /** Units per oid that a fill of `needUnits` takes, and what it can't find. */
  const fill = (needUnits: bigint): { taken: Map<number, bigint>; missing: bigint } => {
    const taken = new Map<number, bigint>();
    const prices = [...new Set(orders.map((order) => order.priceTicks))].sort(betterFirst);
    let need = needUnits;
    for (const priceTicks of prices) {
      const at = orders.filter((order) => order.priceTicks === priceTicks);
      const has = (maker: string): bigint =>
        at.filter((order) => order.maker === maker).reduce((sum, order) => sum + left.get(order.oid)!, 0n);
      const makers = MAKERS.filter((maker) => has(maker) > 0n);
      const total = makers.reduce((sum, maker) => sum + has(maker), 0n);
      const take = need < total ? need : total;
      need -= take;
      if (take === 0n) continue;
      const exact = makers.map((maker) => ({
        maker,
        whole: (take * has(maker)) / total,
        rest: (take * has(maker)) % total,
      }));
      let spare = take - exact.reduce((sum, share) => sum + share.whole, 0n);
      while (spare > 0n) {
        const best = exact.reduce((top, share) => (share.rest > top.rest ? share : top));
        best.whole += 1n;
        best.rest = -1n;
        spare -= 1n;
      }
      for (const share of exact) {
        let want = share.whole;
        for (const order of at.filter((one) => one.maker === share.maker).sort((a, b) => a.oid - b.oid)) {
          const units = want < left.get(order.oid)! ? want : left.get(order.oid)!;
          if (units === 0n) continue;
          taken.set(order.oid, units);
          left.set(order.oid, left.get(order.oid)! - units);
          want -= units;
        }
      }
    }
    return { taken, missing: need };
  };
  return { carry, fill, left: () => new Map([...left].filter(([, units]) => units > 0n)) };
};

const leftOf = (state: SideState): Map<number, bigint> =>
  new Map(state.orders.map((order) => [order.oid, order.units]));

/** Fills of orders of the snapshot, of the same makers' orders that it no longer has, and of makers that left. */
const lateFillsOf = (
  side: Side,
  snapshot: MarketSnapshot,
  picks: readonly { pick: number; units: bigint; gone: boolean }[],
): OrderFill[] => {
  const orders = snapshotSide(snapshot, side);
  return picks.map(({ pick, units, gone }) => {
    const order = orders[pick % orders.length]!;
    const oid = gone ? 1000 + pick : order.oid;
    const maker = gone ? MAKERS[pick % MAKERS.length]! : order.maker;
    return { oid, maker, market: market.index, side, priceTicks: order.priceTicks, baseUnits: units };
  });
};

const latePicks = fc.array(fc.record({ pick: fc.nat(20), units: fc.bigInt(1n, 40n), gone: fc.boolean() }), {
  maxLength: 5,
});

const expectSound = (decomposition: Decomposition, side: Side, baseUnits: bigint, quoteUnits: bigint): void => {
  const { legs, residualUnits, roundingUnits, compressionResidualUnits, operatorGainUnits, missingBaseUnits } =
    decomposition;
  const base = legs.reduce((sum, leg) => sum + leg.baseUnits, 0n);
  const quote = legs.reduce((sum, leg) => sum + leg.quoteUnits, 0n);
  expect(base + missingBaseUnits).to.equal(baseUnits);
  expect(quote + residualUnits).to.equal(quoteUnits);
  expect(roundingUnits + compressionResidualUnits).to.equal(residualUnits);
  expect(roundingUnits >= 0n && roundingUnits <= BigInt(Math.max(0, legs.length - 1))).to.equal(true);
  expect(operatorGainUnits).to.equal(side === 'ask' ? residualUnits : -residualUnits);
  for (const leg of legs) {
    expect(leg.baseUnits > 0n && leg.orders.every((order) => order.baseUnits > 0n)).to.equal(true);
    expect(leg.orders.reduce((sum, order) => sum + order.baseUnits, 0n)).to.equal(leg.baseUnits);
    expect(leg.quoteUnits).to.equal((leg.priceTicks * market.tickLotUnits * leg.baseUnits) / market.lotUnits);
  }
  const keys = legs.map((leg) => [side === 'ask' ? leg.priceTicks : -leg.priceTicks, leg.maker] as const);
  keys.slice(1).forEach(([ticks, maker], index) => {
    const [before, makerBefore] = keys[index]!;
    expect(
      before < ticks || (before === ticks && makerBefore < maker),
      'legs by price, then maker, each once',
    ).to.equal(true);
  });
};

describe('attribution', () => {
  it('equals an independent statement of the rule, with carry, over consecutive fills', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDES),
        draws,
        latePicks,
        fc.array(permille, { maxLength: 5 }),
        (side, drawn, picks, parts) => {
          const snapshot = oneSided(market, side, drawn);
          const late = lateFillsOf(side, snapshot, picks);
          const expected = oracle(snapshot, side);
          expected.carry(late);
          let state = openSide(market, snapshot, side, late);
          expect(state.consumedUnits).to.equal(late.reduce((sum, fill) => sum + fill.baseUnits, 0n));
          expect(leftOf(state)).to.deep.equal(expected.left());
          for (const share of parts) {
            const baseUnits = part(depthUnits(market, snapshotSide(snapshot, side)), share);
            const quoteUnits = baseUnits * 3n;
            const result = attributeFill(market, state, { side, baseUnits, quoteUnits });
            const { taken, missing } = expected.fill(baseUnits);
            expect(unitsByOid(orderFillsOf(market, side, result.decomposition))).to.deep.equal(taken);
            expect(result.decomposition.missingBaseUnits).to.equal(missing);
            expectSound(result.decomposition, side, baseUnits, quoteUnits);
            state = result.state;
            expect(leftOf(state)).to.deep.equal(expected.left());
          }
        },
      ),
      fcOptions(400),
    );
  });

  it('carries in any order and in any number of steps to the same result', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SIDES), draws, latePicks, fc.nat(5), (side, drawn, picks, cut) => {
        const snapshot = oneSided(market, side, drawn);
        const late = lateFillsOf(side, snapshot, picks);
        const orders = restingOrders(market, snapshot, side);
        const atOnce = carryFills(orders, late);
        expect(carryFills(carryFills(orders, late.slice(0, cut)), late.slice(cut))).to.deep.equal(atOnce);
        expect(carryFills(orders, [...late].reverse())).to.deep.equal(atOnce);
      }),
      fcOptions(300),
    );
  });

  it('finds the depth that the chain still sells after a carry, and gives nobody more than it has', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDES),
        draws,
        latePicks,
        fc.array(permille, { maxLength: 6 }),
        (side, drawn, picks, parts) => {
          const snapshot = oneSided(market, side, drawn);
          const late = lateFillsOf(side, snapshot, picks);
          const depth = depthUnits(market, snapshotSide(snapshot, side));
          let state = openSide(market, snapshot, side, late);
          const all: OrderFill[] = [];
          for (const share of parts) {
            const sellable = depth > state.consumedUnits ? depth - state.consumedUnits : 0n;
            const baseUnits = part(sellable, share);
            if (baseUnits === 0n) break;
            const result = attributeFill(market, state, { side, baseUnits, quoteUnits: 0n });
            expect(result.decomposition.missingBaseUnits).to.equal(0n);
            all.push(...orderFillsOf(market, side, result.decomposition));
            state = result.state;
          }
          const filled = unitsByOid(all);
          const lateOf = unitsByOid(late);
          for (const order of snapshotSide(snapshot, side)) {
            const has = order.sizeLots * market.lotUnits;
            const before = lateOf.get(order.oid) ?? 0n;
            const after = (filled.get(order.oid) ?? 0n) + (before < has ? before : has);
            expect(after <= has, `order ${order.oid}: ${after} of ${has}`).to.equal(true);
          }
          for (const maker of MAKERS) {
            const has = depthUnits(
              market,
              snapshotSide(snapshot, side).filter((order) => order.maker === maker),
            );
            const sum = (fills: readonly OrderFill[]): bigint =>
              fills.filter((fill) => fill.maker === maker).reduce((total, fill) => total + fill.baseUnits, 0n);
            const late0 = sum(late);
            expect(sum(all) <= (has > late0 ? has - late0 : 0n)).to.equal(true);
          }
        },
      ),
      fcOptions(400),
    );
  });

  it('costs the operator less than a quote unit per leg beyond the first while the curve is the exact book and nothing is carried', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SIDES), draws, fc.array(permille, { maxLength: 6 }), (side, drawn, parts) => {
        const snapshot = oneSided(market, side, drawn);
        const depth = depthUnits(market, snapshotSide(snapshot, side));
        let state = openSide(market, snapshot, side);
        let gain = 0n;
        let bound = 0n;
        for (const share of parts) {
          const baseUnits = part(depth - state.consumedUnits, share);
          if (baseUnits === 0n) break;
          const quoteUnits = bookQuote(market, snapshot, side, state.consumedUnits, state.consumedUnits + baseUnits);
          const result = attributeFill(market, state, { side, baseUnits, quoteUnits });
          expectSound(result.decomposition, side, baseUnits, quoteUnits);
          gain += result.decomposition.operatorGainUnits;
          bound += BigInt(result.decomposition.legs.length - 1);
          state = result.state;
        }
        expect(gain >= -bound, `${gain} below -${bound}`).to.equal(true);
      }),
      fcOptions(300),
    );
  });

  it('gives each price the same units however a fill is split, and no order more than it rests with', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDES),
        draws,
        permille,
        fc.array(permille, { maxLength: 4 }),
        (side, drawn, whole, cuts) => {
          const snapshot = oneSided(market, side, drawn);
          const orders = snapshotSide(snapshot, side);
          const total = part(depthUnits(market, orders), whole);
          const perPrice = (amounts: readonly bigint[]): Map<bigint, bigint> => {
            const fills = amounts.map((baseUnits) => ({ side, baseUnits, quoteUnits: 0n, consumedBeforeUnits: 0n }));
            const { decompositions } = replayCurve(market, snapshot, [], fills);
            const parts = decompositions.flatMap((one) => orderFillsOf(market, side, one));
            const filled = unitsByOid(parts);
            for (const order of orders)
              expect((filled.get(order.oid) ?? 0n) <= order.sizeLots * market.lotUnits).to.equal(true);
            const sums = new Map<bigint, bigint>();
            for (const { priceTicks, baseUnits } of parts)
              sums.set(priceTicks, (sums.get(priceTicks) ?? 0n) + baseUnits);
            return sums;
          };
          const amounts: bigint[] = [];
          let rest = total;
          for (const cut of cuts) {
            const units = part(rest, cut);
            if (units > 0n) amounts.push(units);
            rest -= units;
          }
          if (rest > 0n) amounts.push(rest);
          expect(perPrice(amounts)).to.deep.equal(perPrice([total]));
        },
      ),
      fcOptions(200),
    );
  });

  const tie = (lots: readonly bigint[], baseUnits: bigint): bigint[] => {
    const drawn: OrderDraw[] = lots.map((sizeLots, maker) => ({ maker, priceTicks: 5n, sizeLots }));
    const state = openSide(market, oneSided(market, 'bid', drawn), 'bid');
    const { decomposition } = attributeFill(market, state, { side: 'bid', baseUnits, quoteUnits: 0n });
    return MAKERS.slice(0, lots.length).map(
      (maker) => decomposition.legs.find((leg) => leg.maker === maker)?.baseUnits ?? 0n,
    );
  };

  it('gives units left over to the largest remainder, then to the lower address', () => {
    expect(tie([1n, 1n, 1n], 10n)).to.deep.equal([4n, 3n, 3n]);
    expect(tie([1n, 1n, 1n], 11n)).to.deep.equal([4n, 4n, 3n]);
    expect(tie([1n, 1n, 1n], 1n)).to.deep.equal([1n, 0n, 0n]);
    // Shares of 7: 1.1666, 2.3333, 3.5: the third has the largest remainder.
    expect(tie([1n, 2n, 3n], 7n)).to.deep.equal([1n, 2n, 4n]);
    expect(tie([3n, 1n], 40n)).to.deep.equal([30n, 10n]);
  });

  it('fills the older of one maker at a price first, and shares between makers by what is left rather than by what was posted', () => {
    const drawn: OrderDraw[] = [
      { maker: 1, priceTicks: 5n, sizeLots: 2n },
      { maker: 0, priceTicks: 5n, sizeLots: 1n },
      { maker: 1, priceTicks: 5n, sizeLots: 2n },
    ];
    const snapshot = oneSided(market, 'ask', drawn);
    const late: OrderFill = { oid: 1, maker: MAKERS[1]!, market: 0, side: 'ask', priceTicks: 5n, baseUnits: 10n };
    const { decomposition } = attributeFill(market, openSide(market, snapshot, 'ask', [late]), {
      side: 'ask',
      baseUnits: 20n,
      quoteUnits: 11n,
    });
    expect(decomposition.legs).to.deep.equal([
      { maker: MAKERS[0]!, priceTicks: 5n, baseUnits: 5n, quoteUnits: 2n, orders: [{ oid: 2, baseUnits: 5n }] },
      {
        maker: MAKERS[1]!,
        priceTicks: 5n,
        baseUnits: 15n,
        quoteUnits: 7n,
        orders: [
          { oid: 1, baseUnits: 10n },
          { oid: 3, baseUnits: 5n },
        ],
      },
    ]);
    expect(decomposition).to.include({
      residualUnits: 2n,
      roundingUnits: 1n,
      compressionResidualUnits: 1n,
      operatorGainUnits: 2n,
    });
  });

  it('takes what a maker no longer quotes from its other orders, and from nobody else', () => {
    const snapshot = oneSided(market, 'ask', [
      { maker: 0, priceTicks: 6n, sizeLots: 1n },
      { maker: 0, priceTicks: 5n, sizeLots: 1n },
      { maker: 1, priceTicks: 4n, sizeLots: 1n },
    ]);
    const gone: OrderFill = { oid: 99, maker: MAKERS[0]!, market: 0, side: 'ask', priceTicks: 4n, baseUnits: 12n };
    const left = openSide(market, snapshot, 'ask', [gone]).orders.map(({ oid, units }) => [oid, units]);
    expect(left).to.deep.equal([
      [3, 10n],
      [1, 8n],
    ]);
    expect(
      openSide(market, snapshot, 'ask', [{ ...gone, baseUnits: 500n }]).orders.map(({ oid }) => oid),
    ).to.deep.equal([3]);
  });

  it('passes over late fills of the other side and of other markets', () => {
    const snapshot = oneSided(market, 'ask', [{ maker: 0, priceTicks: 6n, sizeLots: 1n }]);
    const late: OrderFill = { oid: 1, maker: MAKERS[0]!, market: 0, side: 'ask', priceTicks: 6n, baseUnits: 4n };
    const state = openSide(market, snapshot, 'ask', [{ ...late, side: 'bid' }, { ...late, market: 1 }, late]);
    expect(state.consumedUnits).to.equal(4n);
    expect(state.orders[0]!.units).to.equal(6n);
  });

  it('reports consumption that does not add up, and depth that no order explains', () => {
    const snapshot = oneSided(market, 'bid', [{ maker: 0, priceTicks: 6n, sizeLots: 1n }]);
    const fill = { side: 'bid' as const, baseUnits: 4n, quoteUnits: 2n };
    const replay = replayCurve(
      market,
      snapshot,
      [],
      [
        { ...fill, consumedBeforeUnits: 0n },
        { ...fill, consumedBeforeUnits: 5n },
        { ...fill, consumedBeforeUnits: 8n },
      ],
    );
    expect(replay.mismatchUnits).to.deep.equal([0n, 1n, 0n]);
    expect(replay.decompositions.map((one) => one.missingBaseUnits)).to.deep.equal([0n, 0n, 2n]);
    const state = openSide(market, snapshot, 'bid');
    expect(consumptionMismatchUnits(state, 3n)).to.equal(3n);
    expect(() => attributeFill(market, state, { ...fill, side: 'ask' })).to.throw(RangeError);
  });
});
