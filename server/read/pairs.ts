import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { decimalSchema, pairSchema } from './schemas.js';

export const pairsSchema = z.array(
  z.strictObject({
    pair: pairSchema,
    base_token: z.string(),
    quote_token: z.string(),
    tick_size: decimalSchema,
    lot_size: decimalSchema,
  }),
);

/** GET /v0/pairs: the listed markets in listing order. */
export function pairsHandler(deps: ReadDeps): RouterMiddleware {
  return (ctx) => {
    const body: z.infer<typeof pairsSchema> = deps.markets().map((market) => ({
      pair: market.pair,
      base_token: market.base.symbol,
      quote_token: market.quote.symbol,
      tick_size: market.tickSize,
      lot_size: market.lotSize,
    }));
    ctx.body = body;
  };
}
