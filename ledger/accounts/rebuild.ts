/** Rebuilds the sums of accounts from fills, posts and books. */
import type { Knex } from 'knex';
import { HORIZONS_SEC } from '../../core/market-data/markouts.js';
import type { Market } from '../../core/types.js';
import { lastGeneration } from '../chain/generations.js';
import { readMarkets } from '../chain/markets.js';
import { sendChange } from '../db/dialects.js';
import type { Queryable } from '../types.js';
import { addFill, addMarkouts, createActivity, isMarked, type Activity } from './activity.js';
import { fillsOfGenerations } from './fill-rows.js';
import { rebuildMiddles } from './middles.js';
import { rememberMiddles, storeActivity } from './projection.js';
import { rebuildGas } from '../transactions/costs.js';
import { openOf, type Sums } from './sums.js';
import { MAKER_HOURS, MARKET_HOURS, TAKER_DAYS } from './tables.js';

/** Derives the sums of a market up to the newest block, a page of fills at a time; each yield has the rows that no later fill changes. */
export async function* deriveActivity(q: Queryable, market: Market): AsyncGenerator<Activity> {
  const headMs = (await lastGeneration(q))?.blockTimestampMs ?? 0;
  const open = createActivity();
  const middle = rememberMiddles(q);
  for await (const page of fillsOfGenerations(q, market, 0)) {
    for (const one of page) {
      addFill(open, market, one);
      const { timestampMs } = one.fill;
      for (const horizonSec of HORIZONS_SEC) {
        if (!isMarked(timestampMs, horizonSec, headMs)) continue;
        const at = await middle(market.index, timestampMs / 1_000 + horizonSec);
        addMarkouts(open, market, { timestampMs, parts: one.parts }, { horizonSec, middle: at });
      }
    }
    yield doneBefore(open, page.at(-1)!.fill.timestampMs);
  }
  yield open;
}

/** Moves the rows of periods that ended by a time out of open ones. Fills of a market come in the order of time. */
function doneBefore(open: Activity, timeMs: number): Activity {
  const done = createActivity();
  for (const name of ['makers', 'takers', 'markets'] as const) {
    const from: Sums = open[name];
    const to: Sums = done[name];
    for (const [key, row] of from.rows) {
      if (openOf(row) + from.table.periodMs > timeMs) continue;
      to.rows.set(key, row);
      from.rows.delete(key);
    }
  }
  return done;
}

/**
 * Replaces the middles of posts and all sums by values derived from fills, posts and books, inside a transaction that may write to the
 * ledger log.
 */
export async function rebuildActivity(tx: Knex.Transaction): Promise<void> {
  const markets = await readMarkets(tx);
  await rebuildMiddles(tx, markets);
  for (const { name } of [MAKER_HOURS, TAKER_DAYS, MARKET_HOURS]) await sendChange(tx, `delete from ${name}`, []);
  for (const market of markets) {
    for await (const done of deriveActivity(tx, market)) await storeActivity(tx, done);
  }
  await rebuildGas(tx);
}
