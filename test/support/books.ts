import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Level } from '../../core/curve/levels.js';
import { createMarket } from '../../core/market.js';
import type { Market, MarketSnapshot, Side, SnapshotOrder } from '../../core/types.js';
import { MAKERS, USDC } from './markets.js';

/** Tick 0.1 USDC, lot 0.00001 cbBTC: the grid that the recorded book is mapped to. */
export const btcUsdc: Market = createMarket({
  index: 0,
  base: { symbol: 'cbBTC', address: `0x${'c'.repeat(40)}`, decimals: 8 },
  quote: USDC,
  lotUnits: 1000n,
  tickLotUnits: 1n,
  maxTtlSec: 60,
});

/** A snapshot with these levels (best first), each split among up to three makers. */
export function snapshotOfLevels(asks: readonly Level[], bids: readonly Level[]): MarketSnapshot {
  let oid = 0;
  const orders = (levels: readonly Level[]): SnapshotOrder[] =>
    levels.flatMap(({ priceTicks, lots }) => {
      const parts = [lots / 2n, lots / 3n, lots - lots / 2n - lots / 3n];
      return parts
        .map((sizeLots, i) => ({ oid: ++oid, maker: MAKERS[i]!, priceTicks, sizeLots }))
        .filter((order) => order.sizeLots > 0n);
    });
  return { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: orders(asks), bids: orders(bids) };
}

/** Sizes in lots of very different magnitudes, up to what no segment can hold. */
const sizes = fc.oneof(
  { weight: 3, arbitrary: fc.bigInt(1n, 10n) },
  { weight: 6, arbitrary: fc.bigInt(1n, 100_000n) },
  { weight: 1, arbitrary: fc.bigInt(1n, 2n ** 28n) },
);

/** How far apart neighbouring levels are, in ticks, and what their sizes are: one shape of book each. */
const shapes = {
  thin: { levels: { minLength: 1, maxLength: 6 }, gap: fc.bigInt(1n, 500n), lots: sizes },
  dense: { levels: { minLength: 20, maxLength: 120 }, gap: fc.bigInt(1n, 3n), lots: fc.bigInt(1n, 50_000n) },
  gapped: {
    levels: { minLength: 5, maxLength: 40 },
    gap: fc.oneof({ weight: 9, arbitrary: fc.bigInt(1n, 5n) }, { weight: 1, arbitrary: fc.bigInt(500n, 5_000n) }),
    lots: sizes,
  },
  walled: {
    levels: { minLength: 5, maxLength: 60 },
    gap: fc.bigInt(1n, 20n),
    lots: fc.oneof(
      { weight: 15, arbitrary: fc.bigInt(1n, 5_000n) },
      { weight: 1, arbitrary: fc.bigInt(1_000_000n, 9_000_000n) },
    ),
  },
  wide: { levels: { minLength: 10, maxLength: 80 }, gap: fc.bigInt(1n, 3_000n), lots: sizes },
};

type BookShape = keyof typeof shapes;
export const BOOK_SHAPES = Object.keys(shapes) as BookShape[];

/** Levels of one side, best first, every price positive. */
export function sideArbitrary(side: Side, shape: BookShape, bestTicks: bigint): fc.Arbitrary<Level[]> {
  const { levels, gap, lots } = shapes[shape];
  return fc.array(fc.record({ gap, lots }), levels).map((drawn) => {
    let priceTicks = bestTicks;
    return drawn
      .map((level, i) => {
        if (i > 0) priceTicks += side === 'ask' ? level.gap : -level.gap;
        return { priceTicks, lots: level.lots };
      })
      .filter((level) => level.priceTicks > 0n);
  });
}

/** Both sides around a best bid that may be anywhere on the scale of prices. */
export const bookArbitrary: fc.Arbitrary<{ asks: Level[]; bids: Level[] }> = fc
  .tuple(
    fc.constantFrom(...BOOK_SHAPES),
    fc.constantFrom(...BOOK_SHAPES),
    fc.oneof(fc.bigInt(1n, 2_000n), fc.bigInt(100_000n, 500_000n), fc.bigInt(2n ** 28n, 2n ** 30n)),
    fc.bigInt(1n, 300n),
  )
  .chain(([askShape, bidShape, bestBid, spread]) =>
    fc.record({
      asks: sideArbitrary('ask', askShape, bestBid + spread),
      bids: sideArbitrary('bid', bidShape, bestBid),
    }),
  );

/** The recorded BTC-USD book on the grid of `btcUsdc`: asks up, bids down to whole ticks, sizes down to whole lots. */
export function recordedBook(): { asks: Level[]; bids: Level[] } {
  const url = new URL('../fixtures/btc-usd-10pct.json', import.meta.url);
  const book = JSON.parse(readFileSync(url, 'utf8')) as Record<'asks' | 'bids', [string, string][]>;
  const scaled = (decimal: string, decimals: number): bigint => {
    const [whole = '0', fraction = ''] = decimal.split('.');
    return BigInt(whole + fraction.padEnd(decimals, '0').slice(0, decimals));
  };
  const side = (rows: [string, string][], roundUp: boolean): Level[] => {
    const lotsAt = new Map<bigint, bigint>();
    for (const [price, size] of rows) {
      const ticks = (scaled(price, 2) + (roundUp ? 9n : 0n)) / 10n;
      lotsAt.set(ticks, (lotsAt.get(ticks) ?? 0n) + scaled(size, 5));
    }
    const levels = [...lotsAt].map(([priceTicks, lots]) => ({ priceTicks, lots })).filter(({ lots }) => lots > 0n);
    return levels.sort((a, b) => (a.priceTicks < b.priceTicks === roundUp ? -1 : 1));
  };
  return { asks: side(book.asks, true), bids: side(book.bids, false) };
}
