/** Rebuilds candles, positions and the quote amounts of fill parts from the fills. */
import type { Knex } from 'knex';
import { joined, candlesOf } from '../../core/market-data/candles.js';
import { sendForRows } from '../db/dialects.js';
import { toColumn, updateAll } from '../db/columns.js';
import { readAttributedFills } from '../chain/fills.js';
import type { AttributedFill, AttributedPart, Queryable } from '../types.js';
import { candleKey, storeCandles, type MarketCandle } from './candle-rows.js';
import { storePositions } from './position-rows.js';
import { takeFill, tradesOf, type PartDetails, type Positions } from './projection.js';
import type { Stored } from '../db/tables.js';

/** Fills read at a time. */
const PAGE = 200;

/** What a page of one market's fills derives. */
export interface DerivedPage {
  fills: readonly AttributedFill[];
  details: ReadonlyMap<AttributedPart, PartDetails>;
  /** Candles that no later fill adds to. */
  candles: MarketCandle[];
}

/**
 * Derives the candles of a market from its stored fills, a page of fills at a time, and updates `positions`. The last page has the candles
 * that are still open.
 */
export async function* deriveMarketData(
  q: Queryable,
  market: number,
  positions: Positions,
): AsyncGenerator<DerivedPage> {
  const open = new Map<string, MarketCandle>();
  for (let after = 0; ;) {
    const rows = await sendForRows<Stored<'fills'>>(
      q,
      'select * from fills where market = ? and fill_seq > ? order by fill_seq limit ?',
      [market, after, PAGE],
    );
    const last = rows.at(-1)?.fill_seq;
    const details = new Map<AttributedPart, PartDetails>();
    const fills = last === undefined ? [] : await readAttributedFills(q, market, rows);
    const done: MarketCandle[] = [];
    for (const one of fills) {
      for (const [part, paid] of takeFill(positions, one)) details.set(part, paid);
      for (const added of candlesOf(tradesOf(one, details))) done.push(...advance(open, { ...added, market }));
    }
    if (last === undefined) done.push(...open.values());
    yield { fills, details, candles: done };
    if (last === undefined) return;
    after = last;
  }
}

/** Adds to the open candle of the same interval; one that a later interval follows is done, and returned. */
function advance(open: Map<string, MarketCandle>, added: MarketCandle): MarketCandle[] {
  const before = open.get(added.interval);
  const same = before !== undefined && candleKey(before) === candleKey(added);
  open.set(added.interval, same ? { market: added.market, ...joined(before, added) } : added);
  return before === undefined || same ? [] : [before];
}

/** Called with the number of fills done and of all fills. */
export type RebuildProgress = (done: number, total: number) => void;

/** Fills between two calls of `RebuildProgress`. */
const PROGRESS_FILLS = 10_000;

/**
 * Replaces all rows of the projections by those derived from the fills, inside a transaction of the ledger log's writer, or of a migration.
 */
export async function rebuildMarketData(tx: Knex.Transaction, onProgress?: RebuildProgress): Promise<void> {
  const [counted] = await sendForRows<{ total: number }>(tx, 'select count(*) as total from fills');
  const total = counted!.total;
  let done = 0;
  await tx('candles').delete();
  await tx('maker_positions').delete();
  const [newest] = await sendForRows<{ last: number | null }>(tx, 'select max(generation) as last from generations');
  const positions: Positions = new Map();
  for (const { market } of await sendForRows<{ market: number }>(tx, 'select market from markets order by market')) {
    for await (const { fills, details, candles } of deriveMarketData(tx, market, positions)) {
      await storeCandles(tx, candles);
      await storeDetails(tx, fills, details);
      const before = done;
      done += fills.length;
      const isDue = Math.floor(done / PROGRESS_FILLS) > Math.floor(before / PROGRESS_FILLS);
      if (isDue || (done === total && fills.length > 0)) onProgress?.(done, total);
    }
  }
  await storePositions(tx, newest?.last ?? 0, [...positions.values()]);
}

async function storeDetails(
  tx: Knex.Transaction,
  fills: readonly AttributedFill[],
  details: ReadonlyMap<AttributedPart, PartDetails>,
): Promise<void> {
  const rows = fills.flatMap(({ fill, orderFills }) =>
    orderFills.map((part) => {
      const { quoteUnits, closedUnits } = details.get(part)!;
      return {
        market: fill.market,
        fill_seq: fill.fillSeq,
        oid: part.oid,
        quote_units: toColumn(quoteUnits),
        closed_units: toColumn(closedUnits),
        timestamp_ms: fill.timestampMs,
      };
    }),
  );
  await updateAll(tx, 'order_fills', ['market', 'fill_seq', 'oid'], rows);
}
