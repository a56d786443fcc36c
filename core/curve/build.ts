import type { Hex, Market, MarketSnapshot, Segment } from '../types.js';
import { checkCurve, CurveCheckError } from './check.js';
import { compressSide } from './compress.js';
import { CurveError } from './errors.js';
import { sideLevels } from './levels.js';
import { wordsHash } from './words.js';

/** A curve ready to be posted. Words are as a post lists them, none for an empty side; segments are as the chain walks them. */
export interface BuiltCurve {
  askWords: bigint[];
  bidWords: bigint[];
  asks: Segment[];
  bids: Segment[];
  wordsHash: Hex;
  /** Lots of the snapshot that the curve does not offer. */
  askLeftOutLots: bigint;
  bidLeftOutLots: bigint;
}

/**
 * The curve of a snapshot, at most `maxKnots` (1..31) segments a side, compressed and then checked as it will stand on-chain.
 * Throws CurveCheckError when the check finds anything, and CurveError when `maxKnots` or the market is wrong.
 */
export function buildCurve(market: Market, snapshot: MarketSnapshot, options: { maxKnots: number }): BuiltCurve {
  if (snapshot.market !== market.index) {
    throw new CurveError('wrong_market', `a snapshot of market ${snapshot.market} for market ${market.index}`);
  }
  const ask = compressSide(market, 'ask', sideLevels('ask', snapshot.asks), options.maxKnots);
  const bid = compressSide(market, 'bid', sideLevels('bid', snapshot.bids), options.maxKnots);
  const violations = checkCurve(market, snapshot, { asks: ask.segments, bids: bid.segments });
  if (violations.length > 0) throw new CurveCheckError(violations);
  return {
    askWords: ask.words,
    bidWords: bid.words,
    asks: ask.segments,
    bids: bid.segments,
    wordsHash: wordsHash(ask.words, bid.words),
    askLeftOutLots: ask.leftOutLots,
    bidLeftOutLots: bid.leftOutLots,
  };
}
