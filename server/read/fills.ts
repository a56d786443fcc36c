import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { fillRow, fillRowSchema } from './fill-row.js';
import { queryLimit, queryMarket } from './params.js';
import { createRemembered } from './remembered.js';
import type { Remembered } from './remembered.js';
import { render, sendRendered } from './rendered.js';
import type { Rendered } from './rendered.js';

/** Most fills that one answer holds. */
export const FILLS_LIMIT = 256;

export const fillsSchema = z.array(fillRowSchema).max(FILLS_LIMIT);

/**
 * GET /v0/fills?pair=&limit=: the newest fills of a market, newest last. One look at the newest fill tells whether the bytes that were written
 * last are still the answer: fills are only added, and a reversal takes them away from the newest on.
 */
export function fillsHandler(deps: ReadDeps): RouterMiddleware {
  const written = new Map<number, Remembered<Rendered>>();
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const limit = queryLimit(ctx, FILLS_LIMIT);
    if (limit < FILLS_LIMIT) {
      const fills = await deps.store.recentFills(market.index, limit);
      return sendRendered(ctx, render(fills.map((fill) => fillRow(market, fill))));
    }
    const remembered = written.get(market.index) ?? createRemembered<Rendered>();
    written.set(market.index, remembered);
    const answer = await remembered.get(await deps.store.newestFill(market.index), async () => {
      const fills = await deps.store.recentFills(market.index, FILLS_LIMIT);
      const rows: z.infer<typeof fillsSchema> = fills.map((fill) => fillRow(market, fill));
      return render(rows);
    });
    sendRendered(ctx, answer);
  };
}
