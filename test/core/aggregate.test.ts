import { expect } from 'chai';
import type { Book, BookLevel } from '../../core/book.js';
import { aggregate } from '../../core/market-data/aggregate.js';
import { createMarket } from '../../core/market.js';
import { bookOf, readAggregation } from '../../server/orders/info/books.js';

const token = (n: string, symbol: string) => ({ address: `0x${n.repeat(40)}` as const, symbol, decimals: 6 });
const market = createMarket({
  index: 0,
  base: token('a', 'A'),
  quote: token('b', 'B'),
  lotUnits: 1_000_000n,
  tickLotUnits: 10_000n,
  maxTtlSec: 60,
});

/** Levels one tick apart, and how many of them were read. */
function counted(fromTicks: bigint, by: bigint, many: number) {
  const count = { read: 0, sides: 0 };
  function* levels(): Iterable<BookLevel> {
    count.sides += 1;
    for (let i = 0; i < many; i += 1) {
      count.read += 1;
      yield { priceTicks: fromTicks + by * BigInt(i), lots: 1n, orders: 1 };
    }
  }
  return { levels, count };
}

describe('Gathered levels', () => {
  it('read no level after those that fill what is asked for', () => {
    const { levels, count } = counted(100_000n, 1n, 100_000);
    const gathered = aggregate('ask', levels(), 1n, { nSigFigs: 5, mantissa: null }, 20);
    expect(gathered.map(({ price }) => price).slice(0, 3)).to.deep.equal([100_000n, 100_010n, 100_020n]);
    expect(gathered.map(({ orders }) => orders).slice(0, 3)).to.deep.equal([1, 10, 10]);
    expect(gathered.length).to.equal(20);
    expect(count.read).to.be.lessThan(200);
  });

  it('are never better than what rests, on ticks that are no power of ten', () => {
    for (const side of ['bid', 'ask'] as const) {
      const { levels } = counted(12_345n, side === 'bid' ? -1n : 1n, 500);
      const gathered = aggregate(side, levels(), 7n, { nSigFigs: 3, mantissa: null }, 3);
      const expected = side === 'bid' ? [86_400n, 86_300n, 86_200n] : [86_500n, 86_600n, 86_700n];
      expect(gathered.map(({ price }) => price)).to.deep.equal(expected);
      const within = (price: bigint): number =>
        [...levels()].filter(({ priceTicks }) => {
          const exact = priceTicks * 7n;
          return side === 'bid' ? exact >= price && exact < price + 100n : exact <= price && exact > price - 100n;
        }).length;
      expect(gathered.map(({ orders }) => orders)).to.deep.equal(expected.map(within));
    }
  });

  it('are made once per state of a market, for all who ask for the same figures', () => {
    const { levels, count } = counted(100_000n, 1n, 50);
    let version = 1;
    const book = { eachLevel: levels, version: () => version } as unknown as Book;
    const ask = (mantissa: number | null): object =>
      bookOf(market, { book: () => book }, 7, { by: readAggregation({ nSigFigs: 5, mantissa }) });
    const first = ask(null);
    expect(ask(1)).to.deep.equal(first);
    expect(ask(null)).to.deep.equal(first);
    expect(count.sides).to.equal(2);
    ask(2);
    expect(count.sides).to.equal(4);
    version = 2;
    ask(1);
    expect(count.sides).to.equal(6);
    expect(first).to.have.nested.property('levels[1][1]').that.deep.equals({ px: '1000.1', sz: '10.0', n: 10 });
  });
});
