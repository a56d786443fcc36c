import { expect } from 'chai';
import fc from 'fast-check';
import type { RestingOrder } from '../../../core/attribution.js';
import { MAX_TRIM_STEPS } from '../../../core/exposure/search.js';
import { trimMaker, type TrimSide } from '../../../core/exposure/trim.js';
import { trimToInventory, worstPayment } from '../../../core/exposure.js';
import { createMarket } from '../../../core/market.js';
import type { Market, Side, SnapshotOrder } from '../../../core/types.js';
import { fcOptions } from '../../support/fc.js';
import { coarseMarkets, MAKERS, USDC, WETH } from '../../support/markets.js';
import { inSnapshotOrder } from '../../support/snapshots.js';

const ME = MAKERS[0]!;

/** Lots to take off, by index of the side and oid. */
type Lots = Map<string, bigint>;
interface Lot {
  key: string;
  lots: bigint;
}

const payments = (sides: readonly TrimSide[], trims: Lots): bigint =>
  sides.reduce((sum, side, index) => {
    const next = side.next.map((order) => ({
      ...order,
      units: order.units - (trims.get(`${index}:${order.oid}`) ?? 0n) * side.market.lotUnits,
    }));
    return sum + worstPayment({ ...side, next: next.filter(({ units }) => units > 0n) });
  }, 0n);

const firstLots = (all: readonly Lot[], totalLots: bigint): Lots => {
  let need = totalLots;
  return new Map(
    all.flatMap(({ key, lots }): [string, bigint][] => {
      const take = need < lots ? need : lots;
      need -= take;
      return take === 0n ? [] : [[key, take]];
    }),
  );
};

const most = (all: bigint, passes: (lots: bigint) => boolean): bigint => {
  let low = 0n;
  for (let high = all; low < high;) {
    const middle = (low + high + 1n) / 2n;
    if (passes(middle)) low = middle;
    else high = middle - 1n;
  }
  return low;
};

const lotsIn = (all: readonly Lot[]): bigint => all.reduce((sum, { lots }) => sum + lots, 0n);

/** The rule as it reads: each probe sums the worst payments of all sides anew. */
const plainTrims = (sides: readonly TrimSide[], limit: bigint): Lots => {
  const fits = (trims: Lots): boolean => payments(sides, trims) <= limit;
  if (fits(new Map())) return new Map();
  const away = ({ bestTicks }: TrimSide, { priceTicks }: RestingOrder): bigint =>
    priceTicks < bestTicks ? bestTicks - priceTicks : priceTicks - bestTicks;
  const worstFirst = sides
    .flatMap((side, index) =>
      side.next.map((order) => ({
        ...{ side, order, key: `${index}:${order.oid}`, lots: order.units / side.market.lotUnits },
      })),
    )
    .sort((a, b) => {
      const farther = away(b.side, b.order) * a.side.bestTicks - away(a.side, a.order) * b.side.bestTicks;
      if (farther !== 0n) return farther > 0n ? 1 : -1;
      return b.side.market.index - a.side.market.index || b.order.oid - a.order.oid;
    });
  const all = lotsIn(worstFirst);
  let trims = firstLots(worstFirst, all);
  if (!fits(trims)) return trims;
  const kept = most(all, (lots) => fits(firstLots(worstFirst, all - lots)));
  trims = firstLots(worstFirst, all - kept);
  for (const index of sides.keys()) {
    const here = [...trims].filter(([key]) => key.startsWith(`${index}:`)).map(([key, lots]) => ({ key, lots }));
    const without = (givenLots: bigint): Lots => {
      const given = firstLots(here, givenLots);
      const left = [...trims].map(([key, lots]): [string, bigint] => [key, lots - (given.get(key) ?? 0n)]);
      return new Map(left.filter(([, lots]) => lots > 0n));
    };
    trims = without(most(lotsIn(here), (lots) => fits(without(lots))));
  }
  return trims;
};

const draws = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.bigInt(1n, 9n)), {
  maxLength: 5,
  selector: ([oid]) => oid,
});

/** Sides of one maker that need not pay one token: the rule doesn't look at it. Orders keep their price under one oid. */
const makerSides = fc
  .array(
    fc.record({
      side: fc.constantFrom<Side>('ask', 'bid', 'bid'),
      older: fc.array(draws, { maxLength: 3 }),
      next: draws,
      better: fc.bigInt(0n, 2n),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((drawn): TrimSide[] =>
    drawn.map(({ side, older, next, better }, index) => {
      const market = createMarket({ ...coarseMarkets()[index % 2]!, index });
      const resting = (orders: readonly (readonly [number, bigint])[]): RestingOrder[] =>
        inSnapshotOrder(
          side,
          orders.map(([oid, lots]) => ({
            ...{ oid: 10 * index + oid, maker: ME },
            ...{ priceTicks: BigInt(4 + ((oid * 7) % 10)), units: lots * market.lotUnits },
          })),
        );
      const offered = resting(next);
      const best = offered[0]?.priceTicks ?? 5n;
      const bestTicks = side === 'ask' ? best - better : best + better;
      return { market, side, bestTicks, older: older.map(resting), next: offered };
    }),
  );

const byKey = (sides: readonly TrimSide[], trims: ReturnType<typeof trimMaker>): Lots =>
  new Map(trims.map(({ market, oid, lots }) => [`${sides.findIndex((s) => s.market.index === market)}:${oid}`, lots]));

const sorted = (trims: Lots): [string, bigint][] => [...trims].sort(([a], [b]) => (a < b ? -1 : 1));

describe('trims of one maker', () => {
  it('are those of the rule as it reads', () => {
    const seen = { trimmed: 0, partly: 0, searched: 0 };
    fc.assert(
      fc.property(makerSides, fc.bigInt(0n, 1_100n), (sides, permille) => {
        const limit = (payments(sides, new Map()) * permille) / 1_000n;
        const budget = { stepsLeft: MAX_TRIM_STEPS };
        const trims = byKey(sides, trimMaker(sides, limit, budget));
        expect(sorted(trims)).to.deep.equal(sorted(plainTrims(sides, limit)));
        const wanted = sides.reduce((sum, { next }) => sum + next.length, 0);
        if (trims.size > 0) seen.trimmed += 1;
        if (trims.size > 0 && trims.size < wanted) seen.partly += 1;
        if (budget.stepsLeft < MAX_TRIM_STEPS) seen.searched += 1;
      }),
      fcOptions(1_500),
    );
    for (const [what, count] of Object.entries(seen)) expect(count, what).to.be.above(100);
  });

  it('keep within the limit however few searches may be made, and take nothing where nothing must be taken', () => {
    let more = 0;
    fc.assert(
      fc.property(makerSides, fc.bigInt(0n, 1_100n), fc.nat(600), (sides, permille, stepsLeft) => {
        const before = payments(sides, new Map());
        const limit = (before * permille) / 1_000n;
        const trims = byKey(sides, trimMaker(sides, limit, { stepsLeft }));
        if (before <= limit) expect(trims.size).to.equal(0);
        const older = payments(
          sides.map((side) => ({ ...side, next: [] })),
          new Map(),
        );
        if (older <= limit) expect(payments(sides, trims) <= limit).to.equal(true);
        else expect(trims.size).to.equal(sides.reduce((sum, { next }) => sum + next.length, 0));
        const plain = plainTrims(sides, limit);
        if (JSON.stringify(sorted(trims), text) !== JSON.stringify(sorted(plain), text)) more += 1;
      }),
      fcOptions(1_500),
    );
    expect(more, 'trims that too few searches changed').to.be.above(10);
  });

  const text = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}` : value);

  /** One maker's bids in many markets, heavy in every other one, before in those where they are light now; and how often they are read. */
  const alternating = (marketCount: number, levels: number) => {
    let reads = 0;
    let oid = 0;
    let value = 0n;
    const bids = (isHeavy: boolean, shift: bigint): SnapshotOrder[] =>
      Array.from({ length: levels }, (_, level) => ({
        ...{ oid: (oid += 1), maker: ME, priceTicks: 250_000n - shift - 10n * BigInt(level) },
        sizeLots: isHeavy ? 120n : 41n,
      }));
    const markets = Array.from({ length: marketCount }, (_, index) => {
      const market: Market = createMarket({
        ...{ index, base: WETH, quote: USDC, lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 60 },
      });
      const older = bids(index % 2 === 0, 0n).map(({ sizeLots, ...order }) => ({
        ...order,
        get units() {
          reads += 1;
          return sizeLots * market.lotUnits;
        },
      }));
      const next = bids(index % 2 === 1, 1n);
      value += next.reduce((sum, { priceTicks, sizeLots }) => sum + priceTicks * sizeLots, 0n);
      const candidate = { market: index, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: [], bids: next };
      return { market, older: [{ seq: 1, asks: [], bids: older }], candidate };
    });
    const trimmed = trimToInventory(markets, () => (value * 105n) / 100n);
    return { reads, trims: trimmed.reduce((sum, { trims }) => sum + trims.length, 0), orders: marketCount * levels };
  };

  it('cost a number of bounds per order that does not rise with the number of markets', () => {
    const few = alternating(10, 5);
    const many = alternating(200, 5);
    for (const { reads, trims, orders } of [few, many]) {
      expect(trims, 'orders that were trimmed').to.be.above(orders / 5);
      expect(reads / orders, 'reads of an older order').to.be.below(120);
    }
  });
});
