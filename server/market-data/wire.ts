/** Rows of market data as clients of the exchange wire read them. */
import { formatUnits } from '../../core/amounts.js';
import type { Candle } from '../../core/market-data/candles.js';
import { nextOpen } from '../../core/market-data/intervals.js';
import { ticksToPrice, unitsToSize } from '../../core/market.js';
import type { Market } from '../../core/types.js';
import { withPoint } from '../../core/wire/decimal.js';
import type { Trade } from '../../ledger/views/trades.js';
import { coinOf } from '../orders/info/markets.js';

/** A candle: `t` and `T` are its first and last millisecond, `v` its volume in the base token, `n` its trades. */
export const candleRow = (market: Market, candle: Candle) => ({
  t: candle.openMs,
  T: nextOpen(candle.interval, candle.openMs) - 1,
  s: coinOf(market),
  i: candle.interval,
  o: withPoint(ticksToPrice(market, candle.openTicks)),
  c: withPoint(ticksToPrice(market, candle.closeTicks)),
  h: withPoint(ticksToPrice(market, candle.highTicks)),
  l: withPoint(ticksToPrice(market, candle.lowTicks)),
  v: withPoint(unitsToSize(market, candle.baseUnits)),
  n: candle.trades,
});

/** A trade: one order's part of a fill at its maker's price. `side` is the taker's: consuming asks is a buy. */
export const tradeRow = (market: Market, trade: Trade) => ({
  coin: coinOf(market),
  side: trade.side === 'ask' ? 'B' : 'A',
  px: withPoint(ticksToPrice(market, trade.priceTicks)),
  sz: withPoint(unitsToSize(market, trade.baseUnits)),
  time: trade.timestampMs,
  hash: trade.txHash,
  tid: trade.tid,
  users: trade.side === 'ask' ? [trade.taker, trade.maker] : [trade.maker, trade.taker],
});

/** An amount of the market's quote token. */
export const quoteAmount = (market: Market, units: bigint): string =>
  withPoint(formatUnits(units, market.quote.decimals));
