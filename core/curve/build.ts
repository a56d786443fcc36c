import type { Hex, Market, MarketSnapshot, Segment, Side } from '../types.js';
import { exactKnots } from './carry.js';
import { checkCurve, CurveCheckError, type PostedSides } from './check.js';
import { chooseKnotStep, compressSide, type KnotPolicy, type KnotStep } from './compress.js';
import { worstErrorPpb } from './error.js';
import { CurveError } from './errors.js';
import { sideLevels, type Level } from './levels.js';
import { wordsHash } from './words.js';

/** A curve ready to be posted. Words are in the order of a post, none for an empty side; segments are those that the contract walks. */
export interface BuiltCurve extends PostedSides {
  asks: Segment[];
  bids: Segment[];
  askWords: bigint[];
  bidWords: bigint[];
  wordsHash: Hex;
  /** Lots of the snapshot that the curve does not offer, and those of them that were left out because of the maximum error. */
  askLeftOutLots: bigint;
  bidLeftOutLots: bigint;
  askUnfollowedLots: bigint;
  bidUnfollowedLots: bigint;
  /** The worst error at any amount that is offered; zero for an empty side. */
  askErrorPpb: bigint;
  bidErrorPpb: bigint;
}

/** Most segments of each side, 1..31, or one number for both; and the maximum error at any size, where 0 or absence means no maximum. */
type CurveKnots = ({ maxKnots: number } | { askKnots: number; bidKnots: number }) & {
  maxErrorMilliBps?: number;
};

/**
 * The curve of a snapshot, compressed and then checked as it will stand on-chain. Equal arguments give equal words, unless COMPRESSION
 * differs. Throws CurveCheckError when the check finds anything, and CurveError when the knots or the market are wrong.
 */
export function buildCurve(market: Market, snapshot: MarketSnapshot, knots: CurveKnots): BuiltCurve {
  if (snapshot.market !== market.index) {
    throw new CurveError('wrong_market', `a snapshot of market ${snapshot.market} for market ${market.index}`);
  }
  const [askKnots, bidKnots] =
    'maxKnots' in knots ? [knots.maxKnots, knots.maxKnots] : [knots.askKnots, knots.bidKnots];
  const [askLevels, bidLevels] = [sideLevels('ask', snapshot.asks), sideLevels('bid', snapshot.bids)];
  const ask = compressSide(market, 'ask', askLevels, askKnots, knots.maxErrorMilliBps);
  const bid = compressSide(market, 'bid', bidLevels, bidKnots, knots.maxErrorMilliBps);
  const posted = {
    asks: ask.segments,
    bids: bid.segments,
    exactAskKnots: exactKnots(market, askLevels, ask.segments),
    exactBidKnots: exactKnots(market, bidLevels, bid.segments),
  };
  const violations = checkCurve(market, snapshot, posted);
  if (violations.length > 0) throw new CurveCheckError(violations);
  return {
    ...posted,
    askWords: ask.words,
    bidWords: bid.words,
    wordsHash: wordsHash(ask.words, bid.words),
    askLeftOutLots: ask.leftOutLots,
    bidLeftOutLots: bid.leftOutLots,
    askUnfollowedLots: ask.unfollowedLots,
    bidUnfollowedLots: bid.unfollowedLots,
    askErrorPpb: worstErrorPpb(market, 'ask', askLevels, ask.segments),
    bidErrorPpb: worstErrorPpb(market, 'bid', bidLevels, bid.segments),
  };
}

/** How many knots the policy gives each side of a book: more for wide books, fewer where more would hardly lower the error. */
export function chooseCurveKnots(
  snapshot: MarketSnapshot,
  policy: KnotPolicy,
): { askKnots: KnotStep; bidKnots: KnotStep; maxErrorMilliBps: number } {
  const choose = (side: Side, levels: readonly Level[]): KnotStep => chooseKnotStep(side, levels, policy);
  return {
    askKnots: choose('ask', sideLevels('ask', snapshot.asks)),
    bidKnots: choose('bid', sideLevels('bid', snapshot.bids)),
    maxErrorMilliBps: policy.maxErrorMilliBps,
  };
}
