import { candleKey, readCandlesAt } from '../../ledger/market-data/candle-rows.js';
import { positionKey, readPositionsIn } from '../../ledger/market-data/position-rows.js';
import type { Positions } from '../../ledger/market-data/projection.js';
import { deriveMarketData, type DerivedPage } from '../../ledger/market-data/rebuild.js';
import type { Queryable } from '../../ledger/types.js';
import { countRows, readRows } from '../../ledger/db/rows.js';
import { same, type Verification } from './verification.js';

const CHECK = 'market data';

/** Candles, positions and what parts of fills were paid follow from the fills. Returns the number of candles. */
export async function verifyMarketData({
  q,
  markets,
  onProgress,
}: Pick<Verification, 'q' | 'markets' | 'onProgress'>): Promise<number> {
  const positions: Positions = new Map();
  let candles = 0;
  for (const { index, pair } of markets) {
    for await (const page of deriveMarketData(q, index, positions)) {
      await compareCandles(q, pair, page);
      await compareParts(q, { index, pair }, page);
      candles += page.candles.length;
    }
    for (const stored of await readPositionsIn(q, index)) {
      same(CHECK, `the position of ${stored.maker} in ${pair}`, stored, positions.get(positionKey(stored)));
      positions.delete(positionKey(stored));
    }
  }
  for (const [key, position] of positions) same(CHECK, `the position ${key}`, undefined, position);
  same(CHECK, 'the number of candles', await countRows(q, 'candles'), candles);
  onProgress({ check: CHECK, done: candles, total: candles });
  return candles;
}

async function compareCandles(q: Queryable, pair: string, { candles }: DerivedPage): Promise<void> {
  const stored = new Map((await readCandlesAt(q, candles)).map((one) => [candleKey(one), one]));
  for (const one of candles) {
    same(CHECK, `the candle of ${one.interval} at ${one.openMs} of ${pair}`, stored.get(candleKey(one)), one);
  }
}

async function compareParts(
  q: Queryable,
  market: { index: number; pair: string },
  { fills, details }: DerivedPage,
): Promise<void> {
  const [first, last] = [fills[0]?.fill.fillSeq, fills.at(-1)?.fill.fillSeq];
  if (first === undefined || last === undefined) return;
  const where = { market: market.index };
  const rows = await readRows(q, 'order_fills', { where, between: ['fill_seq', first, last] });
  const stored = new Map(rows.map((row) => [`${row.fill_seq}:${row.oid}`, row]));
  for (const { fill, orderFills } of fills) {
    for (const part of orderFills) {
      const row = stored.get(`${fill.fillSeq}:${part.oid}`);
      const { quoteUnits, closedUnits } = details.get(part)!;
      same(
        CHECK,
        `what order ${part.oid} was paid in fill ${fill.fillSeq} of ${market.pair}`,
        [row?.quote_units, row?.closed_units, row?.timestamp_ms],
        [quoteUnits, closedUnits, fill.timestampMs],
      );
    }
  }
}
