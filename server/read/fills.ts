import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { fillRow, fillRowSchema } from './fill-row.js';
import { queryMarket } from './params.js';
import { render, sendRendered } from './rendered.js';
import type { Rendered } from './rendered.js';

/** Most fills that one answer holds. */
export const FILLS_LIMIT = 256;

export const fillsSchema = z.array(fillRowSchema).max(FILLS_LIMIT);

/** The newest fills of a market as bytes, for as long as `newest` is its newest fill. */
interface Written {
  newest: string;
  answer: Rendered;
}

/**
 * GET /v0/fills?pair=: the newest fills of a market, newest last. One look at the newest fill tells whether the bytes that were written
 * last are still the answer: fills are only added, and a reversal takes them away from the newest on.
 */
export function fillsHandler(deps: ReadDeps): RouterMiddleware {
  const written = new Map<number, Written>();
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const newest = await deps.store.newestFill(market.index);
    let last = written.get(market.index);
    if (last?.newest !== newest) {
      // Read after `newest`, so that these may be newer than they are said to be, and never older.
      const fills = await deps.store.recentFills(market.index, FILLS_LIMIT);
      const rows: z.infer<typeof fillsSchema> = fills.map((fill) => fillRow(market, fill));
      last = { newest, answer: render(rows) };
      written.set(market.index, last);
    }
    sendRendered(ctx, last.answer);
  };
}
