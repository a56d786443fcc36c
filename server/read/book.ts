import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { BookLevel } from '../../core/book.js';
import { stringify } from '../../core/json.js';
import type { Market } from '../../core/types.js';
import type { ReadDeps } from './deps.js';
import { marketOf } from './params.js';
import { sendTagged, stemOf, withTail, type Stem } from '../rendered.js';
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

/** A level whose orders are all below one lot offers nothing and is left out. */
const levelPairs = (levels: readonly BookLevel[]): [bigint, bigint][] =>
  levels.filter((level) => level.lots > 0n).map((level) => [level.priceTicks, level.lots]);

/** The part of an answer that changes only with the orders: everything before the feed's freshness. */
interface LevelBytes {
  book: ReturnType<ReadDeps['book']>;
  version: number;
  stem: Stem;
}

/**
 * GET /v0/book/{pair}: all acknowledged orders of the market, merged by price, without makers. Levels are serialised once per change. The
 * tag is weak: it covers the levels and the time of their makers' last action, while the age in the answer grows with time.
 */
export function bookHandler(deps: ReadDeps): RouterMiddleware {
  const written = new Map<number, LevelBytes>();

  function levelsOf(market: Market): LevelBytes {
    const book = deps.book();
    const version = book.version(market.index);
    const last = written.get(market.index);
    if (last?.book === book && last.version === version) return last;
    const levels = {
      bids: levelPairs(book.levels(market.index, 'bid')),
      asks: levelPairs(book.levels(market.index, 'ask')),
    };
    const stem = stemOf(`${stringify({ pair: market.pair, levels }).slice(0, -1)},"feed_live":`);
    const next = { book, version, stem };
    written.set(market.index, next);
    return next;
  }

  return (ctx) => {
    const market = marketOf(deps.markets(), ctx.params.pair ?? '');
    const { stem } = levelsOf(market);
    const { isLive, heardMs } = deps.feed(market.index);
    sendTagged(ctx, `W/"${stem.tag}.${isLive ? 1 : 0}.${heardMs.toString(36)}"`, () => {
      const ageMs = Math.max(deps.nowMs() - heardMs, 0);
      return withTail(stem, `${isLive},"age_ms":${ageMs}}`);
    });
  };
}
