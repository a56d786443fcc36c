/**
 * What a trade gained or cost against the middle of a curve, in quote units. The middle is half of the best ask and the best bid of the
 * words as they were posted, in 256ths of a tick, whatever was taken of them since; a curve without one of its sides has none.
 */
import { ceilDiv, floorDiv } from '../amounts.js';
import { decodeSide } from '../curve/words.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Market, Side } from '../types.js';
import { costUnits, openUnits, type Position } from './positions.js';

/** How long after a fill its middle is looked up, in seconds. */
export const HORIZONS_SEC = [1, 10, 60] as const;
export type HorizonSec = (typeof HORIZONS_SEC)[number];

/** The middle of a curve in half subticks: best ask plus best bid. Null when a side is empty. Throws CurveError for malformed words. */
export function middleOf(
  market: Pick<Market, 'lotUnits'>,
  { askWords, bidWords }: { askWords: readonly bigint[]; bidWords: readonly bigint[] },
): bigint | null {
  if (askWords.length === 0 || bidWords.length === 0) return null;
  const [ask] = decodeSide(market, 'ask', askWords);
  const [bid] = decodeSide(market, 'bid', bidWords);
  return ask === undefined || bid === undefined ? null : ask.subticks + bid.subticks;
}

/** A part of a trade as its owner sees it: on the bid side it buys. */
interface TradedPart {
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
}

type Grid = Pick<Market, 'lotUnits' | 'tickLotUnits'>;

/**
 * What a part gains when its base is valued at the middle: for a purchase the value less what was paid, for a sale what was received less
 * the value. Rounded down, once per part.
 */
export function markoutUnits(market: Grid, part: TradedPart, middleHalfSubticks: bigint): bigint {
  const worth = part.baseUnits * middleHalfSubticks * market.tickLotUnits;
  const scale = 2n * SUBTICKS_PER_TICK * market.lotUnits;
  return part.side === 'bid' ? floorDiv(worth, scale) - part.quoteUnits : part.quoteUnits - ceilDiv(worth, scale);
}

/** What a taker's fill cost beyond the middle, less than zero for a better price, rounded up. `side` is the one that the fill consumed. */
export function slippageUnits(market: Grid, fill: TradedPart, middleHalfSubticks: bigint): bigint {
  return -markoutUnits(market, { ...fill, side: fill.side === 'ask' ? 'bid' : 'ask' }, middleHalfSubticks);
}

/** Profit of closing the open position at the middle, in quote units, rounded down. */
export function unrealisedUnits(market: Grid, position: Position, middleHalfSubticks: bigint): bigint {
  const open = openUnits(position);
  const side = open < 0n ? ('ask' as const) : ('bid' as const);
  const baseUnits = open < 0n ? -open : open;
  // The cost of a short position is negative: what it was sold for.
  const quoteUnits = side === 'bid' ? costUnits(position) : -costUnits(position);
  return markoutUnits(market, { side, baseUnits, quoteUnits }, middleHalfSubticks);
}
