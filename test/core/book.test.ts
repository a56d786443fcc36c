import { expect } from 'chai';
import fc from 'fast-check';
import type { Book } from '../../core/book.js';
import { createBook } from '../../core/book/create-book.js';
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, Market, OpenOrder, OrderEffect, OrderFill, OrderLogRow, Side } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';

const SIDES: readonly Side[] = ['ask', 'bid'];

type Step =
  | { kind: 'open'; maker: number; market: number; side: Side; priceTicks: bigint; sizeLots: bigint; cloid: boolean }
  | { kind: 'close'; pick: number }
  | { kind: 'reduce'; pick: number; lots: bigint }
  | { kind: 'fill'; pick: number; permille: bigint };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      maker: fc.nat(MAKERS.length - 1),
      market: fc.nat(2),
      side: fc.constantFrom(...SIDES),
      priceTicks: fc.bigInt(1n, 6n),
      sizeLots: fc.bigInt(1n, 9n),
      cloid: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('close' as const), pick: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('reduce' as const), pick: fc.nat(), lots: fc.bigInt(1n, 4n) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('fill' as const), pick: fc.nat(), permille: fc.bigInt(1n, 1000n) }),
  },
);

/** Steps as log entries: rows with one effect each, and fills. Oids are chosen among all that were ever opened, closed ones included. */
const entriesOf = (markets: readonly Market[], steps: readonly Step[]): (OrderLogRow | OrderFill)[] => {
  const opened: (Extract<OrderEffect, { type: 'open' }> & { maker: Address })[] = [];
  const entries: (OrderLogRow | OrderFill)[] = [];
  const row = (maker: Address, effect: OrderEffect): OrderLogRow => {
    const orderSeq = entries.length + 1;
    return {
      orderSeq,
      timeMs: orderSeq,
      maker,
      signer: maker,
      nonce: orderSeq % 7,
      kind: effect.type,
      effects: [effect],
    };
  };
  for (const one of steps) {
    if (one.kind === 'open') {
      const { maker, market, side, priceTicks, sizeLots } = one;
      const oid = opened.length + 1;
      const cloid = one.cloid ? `0x${oid}` : null;
      const effect = { type: 'open' as const, oid, market, side, priceTicks, sizeLots, tif: 'Gtc' as const, cloid };
      opened.push({ ...effect, maker: MAKERS[maker]! });
      entries.push(row(MAKERS[maker]!, effect));
    } else if (opened.length > 0) {
      const { oid, maker, market, side, priceTicks, sizeLots } = opened[one.pick % opened.length]!;
      if (one.kind === 'close') entries.push(row(maker, { type: 'close', oid, reason: 'canceled' }));
      else if (one.kind === 'reduce') entries.push(row(maker, { type: 'reduce', oid, lots: one.lots }));
      else {
        const units = (sizeLots * markets[market]!.lotUnits * one.permille) / 1000n;
        entries.push({ oid, maker, market, side, priceTicks, baseUnits: units > 0n ? units : 1n });
      }
    }
  }
  return entries;
};

const isRow = (entry: OrderLogRow | OrderFill): entry is OrderLogRow => 'orderSeq' in entry;

const feed = (book: Book, entries: readonly (OrderLogRow | OrderFill)[]): void => {
  for (const entry of entries) {
    if (isRow(entry)) book.apply(entry);
    else book.applyFills([entry]);
  }
};

/** The obvious way: a list of open orders, everything else computed from it. */
const naive = (markets: readonly Market[], entries: readonly (OrderLogRow | OrderFill)[]): OpenOrder[] => {
  let open: OpenOrder[] = [];
  const change = (oid: number, next: (order: OpenOrder) => OpenOrder): void => {
    open = open
      .map((order) => (order.oid === oid ? next(order) : order))
      .filter(
        (order) =>
          order.sizeLots * markets[order.market]!.lotUnits - order.filledUnits >= markets[order.market]!.lotUnits,
      );
  };
  for (const entry of entries) {
    if (!isRow(entry)) {
      change(entry.oid, (order) => ({ ...order, filledUnits: order.filledUnits + entry.baseUnits }));
      continue;
    }
    for (const effect of entry.effects) {
      if (effect.type === 'close') open = open.filter((order) => order.oid !== effect.oid);
      else if (effect.type === 'reduce')
        change(effect.oid, (order) => ({ ...order, sizeLots: order.sizeLots - effect.lots }));
      else if (effect.type === 'open') {
        const { type: _type, ...terms } = effect;
        open.push({ ...terms, maker: entry.maker, filledUnits: 0n, placedMs: entry.timeMs });
      }
    }
  }
  return open;
};

const sorted = (orders: readonly OpenOrder[], side: Side): OpenOrder[] =>
  [...orders].sort((a, b) => {
    if (a.priceTicks !== b.priceTicks) return a.priceTicks < b.priceTicks === (side === 'ask') ? -1 : 1;
    return a.maker === b.maker ? a.oid - b.oid : a.maker < b.maker ? -1 : 1;
  });

/** The obvious way: the worse of the two best orders goes, again and again. */
const uncrossed = (
  asks: readonly OpenOrder[],
  bids: readonly OpenOrder[],
  lotUnits: bigint,
): Record<Side, OpenOrder[]> => {
  const [[ask, ...otherAsks], [bid, ...otherBids]] = [asks, bids];
  if (ask === undefined || bid === undefined || ask.priceTicks > bid.priceTicks)
    return { ask: [...asks], bid: [...bids] };
  const worth = (order: OpenOrder): bigint =>
    order.priceTicks * ((order.sizeLots * lotUnits - order.filledUnits) / lotUnits);
  const askGoes = worth(ask) < worth(bid) || (worth(ask) === worth(bid) && ask.oid > bid.oid);
  return askGoes ? uncrossed(otherAsks, bids, lotUnits) : uncrossed(asks, otherBids, lotUnits);
};

const expectSame = (book: Book, markets: readonly Market[], open: readonly OpenOrder[]): void => {
  for (const { index, lotUnits, tickLotUnits } of markets) {
    const all = (side: Side): OpenOrder[] =>
      sorted(
        open.filter((order) => order.market === index && order.side === side),
        side,
      );
    const shown = uncrossed(all('ask'), all('bid'), lotUnits);
    for (const side of SIDES) {
      expect(book.sideOrders(index, side)).to.deep.equal(all(side));
      for (const quoteUnits of [0n, 10n, 30n]) {
        const worth = (order: OpenOrder): boolean => {
          const lots = (order.sizeLots * lotUnits - order.filledUnits) / lotUnits;
          return order.priceTicks * lots * tickLotUnits >= quoteUnits;
        };
        expect(book.bestTicksWorth(index, side, quoteUnits)).to.equal(all(side).find(worth)?.priceTicks ?? null);
        const odd = (order: OpenOrder): boolean => order.oid % 2 === 1;
        const first = all(side).find((order) => worth(order) && odd(order));
        expect(book.bestTicksWorth(index, side, quoteUnits, odd)).to.equal(first?.priceTicks ?? null);
      }
      const orders = shown[side];
      expect(book.bestTicks(index, side)).to.equal(orders[0]?.priceTicks ?? null);
      const prices = [...new Set(orders.map((order) => order.priceTicks))];
      const levels = prices.map((priceTicks) => {
        const at = orders.filter((order) => order.priceTicks === priceTicks);
        const lots = at.reduce((sum, order) => sum + (order.sizeLots * lotUnits - order.filledUnits) / lotUnits, 0n);
        return { priceTicks, lots, orders: at.length };
      });
      expect(book.levels(index, side)).to.deep.equal(levels);
      expect(book.levels(index, side, 2)).to.deep.equal(levels.slice(0, 2));
    }
  }
  for (const maker of MAKERS) {
    const own = open.filter((order) => order.maker === maker);
    expect(book.openOrders(maker)).to.deep.equal(own);
    const exposure = new Map<Address, bigint>();
    for (const order of own) {
      const market = markets[order.market]!;
      const left = order.sizeLots * market.lotUnits - order.filledUnits;
      const [token, units] =
        order.side === 'ask'
          ? [market.base.address, left]
          : [market.quote.address, quoteUnitsFloor(market, order.priceTicks, left)];
      exposure.set(token, (exposure.get(token) ?? 0n) + units);
    }
    const nonZero = [...exposure].filter(([, units]) => units !== 0n);
    expect(new Map(book.exposureUnits(maker))).to.deep.equal(new Map(nonZero));
    for (const order of own) {
      expect(book.order(order.oid)).to.deep.equal(order);
      if (order.cloid !== null) expect(book.orderByCloid(maker, order.cloid)).to.deep.equal(order);
    }
  }
  expect([...book.makersWithOrders()].sort()).to.deep.equal(
    MAKERS.filter((maker) => open.some((order) => order.maker === maker)),
  );
};

const openRow = (
  orderSeq: number,
  oid: number,
  over: Partial<Extract<OrderEffect, { type: 'open' }>> = {},
): OrderLogRow => ({
  orderSeq,
  timeMs: 1,
  maker: MAKERS[0]!,
  signer: MAKERS[0]!,
  nonce: orderSeq,
  kind: 'order',
  effects: [
    { type: 'open', oid, market: 0, side: 'bid', priceTicks: 5n, sizeLots: 2n, tif: 'Alo', cloid: null, ...over },
  ],
});

describe('book', () => {
  const markets = coarseMarkets();

  it('equals a recomputation from scratch after every step', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const entries = entriesOf(markets, steps);
        const book = createBook(markets);
        entries.forEach((entry, index) => {
          feed(book, [entry]);
          if (index % 5 === 0 || index === entries.length - 1)
            expectSame(book, markets, naive(markets, entries.slice(0, index + 1)));
        });
      }),
      fcOptions(150),
    );
  });

  it('depends on what was applied, not on how rows and fills interleaved', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const entries = entriesOf(markets, steps);
        const fillsFirst = createBook(markets);
        feed(
          fillsFirst,
          entries.filter((entry) => !isRow(entry)),
        );
        feed(fillsFirst, entries.filter(isRow));
        const rowsFirst = createBook(markets);
        feed(rowsFirst, entries.filter(isRow));
        feed(
          rowsFirst,
          entries.filter((entry) => !isRow(entry)),
        );
        const open = naive(markets, entries);
        expectSame(fillsFirst, markets, open);
        expectSame(rowsFirst, markets, open);
      }),
      fcOptions(100),
    );
  });

  it('copies into a book that lives on its own', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.nat(30), (steps, at) => {
        const entries = entriesOf(markets, steps);
        const book = createBook(markets);
        feed(book, entries.slice(0, at));
        const copy = book.clone();
        feed(copy, entries.slice(at));
        expectSame(book, markets, naive(markets, entries.slice(0, at)));
        expectSame(copy, markets, naive(markets, entries));
        expect(copy.lastOrderSeq()).to.equal(Math.max(0, ...entries.filter(isRow).map((row) => row.orderSeq)));
        expect(copy.unmatched().fills).to.be.at.least(book.unmatched().fills);
      }),
      fcOptions(60),
    );
  });

  it('closes an order left with less than one lot, and counts what comes for it later', () => {
    const book = createBook(markets);
    book.apply(openRow(1, 1));
    const fill = (baseUnits: bigint): OrderFill => ({
      oid: 1,
      maker: MAKERS[0]!,
      market: 0,
      side: 'bid',
      priceTicks: 5n,
      baseUnits,
    });
    book.applyFills([fill(10n)]);
    expect(book.order(1)?.filledUnits).to.equal(10n);
    expect(book.levels(0, 'bid')).to.deep.equal([{ priceTicks: 5n, lots: 1n, orders: 1 }]);
    book.applyFills([fill(1n)]);
    expect(book.order(1)).to.equal(undefined);
    expect(book.bestTicks(0, 'bid')).to.equal(null);
    expect(book.makersWithOrders()).to.deep.equal([]);
    book.applyFills([fill(9n)]);
    book.apply({ ...openRow(2, 2), effects: [{ type: 'close', oid: 1, reason: 'canceled' }] });
    expect(book.unmatched()).to.deep.equal({ fills: 1, closes: 1 });
  });

  it('never changes an order that it has handed out', () => {
    const book = createBook(markets);
    book.apply(openRow(1, 1));
    const before = book.order(1)!;
    book.applyFills([{ oid: 1, maker: MAKERS[0]!, market: 0, side: 'bid', priceTicks: 5n, baseUnits: 3n }]);
    expect(before.filledUnits).to.equal(0n);
    expect(book.order(1)!.filledUnits).to.equal(3n);
  });

  it('gives a reused cloid to the newest open order', () => {
    const book = createBook(markets);
    book.apply(openRow(1, 1, { cloid: '0xaa' }));
    book.apply(openRow(2, 2, { cloid: '0xaa' }));
    book.apply({ ...openRow(3, 3), effects: [{ type: 'close', oid: 1, reason: 'canceled' }] });
    expect(book.orderByCloid(MAKERS[0]!, '0xaa')?.oid).to.equal(2);
    expect(book.orderByCloid(MAKERS[1]!, '0xaa')).to.equal(undefined);
  });

  it('remembers the 100 highest nonces of each signer, of refused actions too', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 300 }), (nonces) => {
        const book = createBook(markets);
        nonces.forEach((nonce, index) => book.apply({ ...openRow(index + 1, index + 1), nonce, effects: [] }));
        const expected = [...new Set(nonces)].sort((a, b) => b - a).slice(0, 100);
        expect([...book.nonces(MAKERS[0]!)].sort((a, b) => b - a)).to.deep.equal(expected);
        expect(book.nonces(MAKERS[1]!)).to.deep.equal([]);
      }),
      fcOptions(40),
    );
  });

  it('keeps one armed time per maker, and counts triggers per UTC day', () => {
    const day = 86_400_000;
    const [alice, bob] = [MAKERS[0]!, MAKERS[1]!];
    const book = createBook(markets);
    let orderSeq = 0;
    const apply = (maker: Address, ...effects: OrderEffect[]): void => {
      orderSeq += 1;
      book.apply({ ...openRow(orderSeq, orderSeq), maker, effects });
    };
    apply(alice, { type: 'schedule', timeMs: 5 * day });
    apply(alice, { type: 'schedule', timeMs: 4 * day + 7 });
    apply(bob, { type: 'schedule', timeMs: 9 * day });
    apply(bob, { type: 'schedule', timeMs: null });
    expect([...book.armed()]).to.deep.equal([[alice, 4 * day + 7]]);
    const before = book.clone();
    apply(alice, { type: 'trigger', timeMs: 4 * day + 7 });
    expect([...book.armed()]).to.deep.equal([]);
    apply(alice, { type: 'trigger', timeMs: 5 * day - 1 });
    expect([4 * day, 5 * day - 1, 5 * day].map((timeMs) => book.triggers(alice, timeMs))).to.deep.equal([2, 2, 0]);
    apply(alice, { type: 'trigger', timeMs: 5 * day });
    expect(book.triggers(alice, 5 * day + 1)).to.equal(1);
    expect(book.triggers(bob, 5 * day)).to.equal(0);
    expect([before.armed().size, before.triggers(alice, 4 * day)]).to.deep.equal([1, 0]);
  });

  it('refuses a log that can not be replayed', () => {
    const book = createBook(markets);
    book.apply(openRow(2, 5));
    expect(() => book.apply(openRow(2, 6)))
      .to.throw()
      .with.property('code', 'row_out_of_order');
    expect(() => book.apply(openRow(3, 5)))
      .to.throw()
      .with.property('code', 'oid_out_of_order');
    expect(() => book.apply(openRow(4, 7, { market: 9 })))
      .to.throw()
      .with.property('code', 'unknown_market');
  });

  it('takes markets that are listed after it was created', () => {
    const listed = markets.slice(0, 1);
    const book = createBook(listed);
    listed.push(markets[1]!);
    book.apply(openRow(1, 1, { market: 1 }));
    expect(book.bestTicks(1, 'bid')).to.equal(5n);
  });
});
