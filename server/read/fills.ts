import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { fillRow, fillRowSchema } from './fill-row.js';
import { queryMarket } from './params.js';

/** Most fills that one answer holds. */
export const FILLS_LIMIT = 256;

export const fillsSchema = z.array(fillRowSchema).max(FILLS_LIMIT);

/** GET /v0/fills?pair=: the newest fills of a market, newest last. */
export function fillsHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const fills = await deps.store.recentFills(market.index, FILLS_LIMIT);
    const body: z.infer<typeof fillsSchema> = fills.map((fill) => fillRow(market, fill));
    ctx.body = body;
  };
}
