import { ticksToPrice, unitsToSize } from '../../../core/market.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { asText } from '../../../core/wire/shape.js';
import { marketTrades } from '../../../ledger/views/trades.js';
import { MAX_RECENT_TRADES } from '../limits.js';
import { coinOf } from './spot-meta.js';
import type { InfoHandler } from './types.js';

/** The latest trades of a market, newest first: each part of a fill at its maker's price. Empty for an unknown coin. */
export const recentTrades: InfoHandler = async (request, { db, gateway }) => {
  const coin = asText(request.coin, 'coin', 64);
  const market = gateway.markets().find((one) => coinOf(one) === coin);
  if (market === undefined) return [];
  const trades = await marketTrades(db.reads, market.index, MAX_RECENT_TRADES);
  return trades.map((trade) => ({
    coin,
    // The letter is the taker's: who consumes asks buys.
    side: trade.side === 'ask' ? 'B' : 'A',
    px: withPoint(ticksToPrice(market, trade.priceTicks)),
    sz: withPoint(unitsToSize(market, trade.baseUnits)),
    time: trade.timestampMs,
    hash: trade.txHash,
    tid: trade.tid,
    users: trade.side === 'ask' ? [trade.taker, trade.maker] : [trade.maker, trade.taker],
  }));
};
