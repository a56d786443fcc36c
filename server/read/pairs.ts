import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import type { Market } from '../../core/types.js';
import type { ReadDeps } from './deps.js';
import { render, sendRendered } from './rendered.js';
import type { Rendered } from './rendered.js';
import { decimalSchema, pairSchema } from './schemas.js';

export const pairsSchema = z.array(
  z.strictObject({
    pair: pairSchema,
    base_token: z.string(),
    quote_token: z.string(),
    tick_size: decimalSchema,
    lot_size: decimalSchema,
    /** Least value of an order, in the quote token. */
    min_order_value: decimalSchema,
  }),
);

/** GET /v0/pairs: the listed markets in listing order, written once per listing. */
export function pairsHandler(deps: ReadDeps): RouterMiddleware {
  let written: { markets: readonly Market[]; count: number; answer: Rendered } | null = null;
  return (ctx) => {
    const markets = deps.markets();
    // The array grows in place; what is in it never changes.
    if (written?.markets !== markets || written.count !== markets.length) {
      written = {
        markets,
        count: markets.length,
        answer: render(markets.map((market) => pairRow(market, deps.minOrderUnits(market)))),
      };
    }
    sendRendered(ctx, written.answer);
  };
}

function pairRow(market: Market, minOrderUnits: bigint): z.infer<typeof pairsSchema>[number] {
  return {
    pair: market.pair,
    base_token: market.base.symbol,
    quote_token: market.quote.symbol,
    tick_size: market.tickSize,
    lot_size: market.lotSize,
    min_order_value: formatUnits(minOrderUnits, market.quote.decimals),
  };
}
