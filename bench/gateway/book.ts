import { createBook } from '../../core/book/create-book.js';
import type { Book } from '../../core/book.js';
import { createMarket } from '../../core/market.js';
import type { Address, Market } from '../../core/types.js';
import { cpuUs, interleaved } from './measure.js';
import type { Row } from './measure.js';
import type { Baselines } from './verify.js';

const token = (symbol: string, digit: string, decimals: number) => ({
  symbol,
  address: `0x${digit.repeat(40)}` as const,
  decimals,
});
const market: Market = createMarket({
  index: 0,
  base: token('WETH', '1', 18),
  quote: token('USDC', '2', 6),
  lotUnits: 10n ** 14n,
  tickLotUnits: 1n,
  maxTtlSec: 60,
});
const maker = (index: number): Address => `0x${(index % 100).toString(16).padStart(40, '0')}`;

function bookOf(count: number): Book {
  const book = createBook([market]);
  for (let oid = 1; oid <= count; oid += 1) {
    const priceTicks = 250_000n - BigInt((oid * 7919) % 9_100);
    const open = { type: 'open' as const, oid, market: 0, side: 'bid' as const, priceTicks, sizeLots: 10n };
    const effects = [{ ...open, tif: 'Gtc' as const, cloid: null }];
    book.apply({ orderSeq: oid, timeMs: 1, maker: maker(oid), signer: null, nonce: null, kind: 'order', effects });
  }
  return book;
}

/** Replaces orders at a price near the best one, the common case. */
function modifyAll(book: Book, times: number): void {
  for (let count = 0; count < times; count += 1) {
    const oid = book.lastOid() + 1;
    const old = book.order(oid - 100) === undefined ? null : oid - 100;
    const priceTicks = 250_000n - BigInt(oid % 200);
    const open = { type: 'open' as const, oid, market: 0, side: 'bid' as const, priceTicks, sizeLots: 10n };
    book.apply({
      orderSeq: book.lastOrderSeq() + 1,
      timeMs: 1,
      maker: maker(oid),
      signer: null,
      nonce: null,
      kind: 'modify',
      effects: [
        ...(old === null ? [] : [{ type: 'close' as const, oid: old, reason: 'replaced' as const }]),
        { ...open, tif: 'Gtc' as const, cloid: null },
      ],
    });
  }
}

/** Computes the levels from all orders: sums per price, sorted. */
function rebuild(book: Book): { priceTicks: bigint; lots: bigint }[] {
  const lots = new Map<bigint, bigint>();
  for (const order of book.sideOrders(0, 'bid'))
    lots.set(order.priceTicks, (lots.get(order.priceTicks) ?? 0n) + order.sizeLots);
  return [...lots]
    .map(([priceTicks, sum]) => ({ priceTicks, lots: sum }))
    .sort((a, b) => (a.priceTicks < b.priceTicks ? 1 : -1));
}

/** G10 and G11: reading the top of the book, changing it, and copying it out, against its size and against building it anew. */
export async function measureBook({ recoverUs }: Baselines): Promise<Row[]> {
  const small = bookOf(1_000);
  const large = bookOf(100_000);
  const published = large.levels(0, 'bid').map(({ priceTicks, lots }) => ({ priceTicks, lots }));
  if (JSON.stringify(rebuild(large), text) !== JSON.stringify(published, text))
    throw new Error('the copy is not the book');
  const top = (book: Book) => () =>
    cpuUs(() => {
      for (let count = 0; count < 20_000; count += 1) book.levels(0, 'bid', 20);
    });
  const us = await interleaved({
    topSmall: top(small),
    topLarge: top(large),
    modify: () => cpuUs(() => modifyAll(large, 5_000)),
    copy: () => cpuUs(() => void large.levels(0, 'bid')),
    rebuild: () => cpuUs(() => void rebuild(large)),
  });
  return [
    {
      goal: 'G10',
      what: 'top 20 of 100,000 orders / of 1,000',
      value: us.topLarge / us.topSmall,
      unit: 'x',
      bound: { atMost: 2 },
    },
    {
      goal: 'G10',
      what: 'modify among 100,000 orders / recover',
      value: us.modify / 5_000 / recoverUs,
      unit: 'x',
      bound: { atMost: 0.1 },
    },
    {
      goal: 'G11',
      what: 'copy of 9,100 levels / building them anew',
      value: us.copy / us.rebuild,
      unit: 'x',
      bound: { atMost: 0.1 },
    },
  ];
}

const text = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value);
