import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { BookLevel } from '../../core/book.js';
import type { ReadDeps } from './deps.js';
import { marketOf } from './params.js';
import { integerSchema, pairSchema } from './schemas.js';

/** Price in ticks, size in lots. */
const levelSchema = z.tuple([integerSchema, integerSchema]);

export const bookSchema = z
  .strictObject({
    pair: pairSchema,
    /** Best first on both sides. */
    levels: z.strictObject({ bids: z.array(levelSchema), asks: z.array(levelSchema) }),
    feed_live: z.boolean(),
    age_ms: integerSchema,
  })
  .meta({ id: 'Book' });

/** A level whose orders are all below one lot has nothing to offer and is left out. */
const levelPairs = (levels: readonly BookLevel[]): [bigint, bigint][] =>
  levels.filter((level) => level.lots > 0n).map((level) => [level.priceTicks, level.lots]);

/** GET /v0/book/{pair}: all acknowledged orders of the market, merged by price, naming nobody. */
export function bookHandler(deps: ReadDeps): RouterMiddleware {
  return (ctx) => {
    const market = marketOf(deps.markets(), ctx.params.pair ?? '');
    const book = deps.book();
    ctx.body = {
      pair: market.pair,
      levels: {
        bids: levelPairs(book.levels(market.index, 'bid')),
        asks: levelPairs(book.levels(market.index, 'ask')),
      },
      feed_live: deps.feed.feedLive(market.index),
      age_ms: deps.feed.ageMs(market.index),
    };
  };
}
