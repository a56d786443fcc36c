/** Expected candles, positions and profits, computed slowly from the list of fills each time, without any of the ledger's code. */
import type { Address, Market, Side } from '../../../core/types.js';

/** A leg as a decomposition says it, with the orders that it was split over. */
interface SlowLeg {
  maker: Address;
  priceTicks: bigint;
  quoteUnits: bigint;
  orders: { oid: number; baseUnits: bigint }[];
}

export interface SlowFill {
  market: number;
  fillSeq: number;
  side: Side;
  timeMs: number;
  legs: SlowLeg[];
}

interface SlowTrade {
  timeMs: number;
  maker: Address;
  oid: number;
  side: Side;
  ticks: bigint;
  base: bigint;
  quote: bigint;
}

/** The trades of a fill. An order's quote amount is the leg's price for all base up to and including it, less what the orders before it got. */
export function slowTrades(market: Market, fill: SlowFill): SlowTrade[] {
  const trades: SlowTrade[] = [];
  for (const leg of fill.legs) {
    let base = 0n;
    let quote = 0n;
    const size = leg.orders.reduce((sum, order) => sum + order.baseUnits, 0n);
    for (const order of leg.orders) {
      base += order.baseUnits;
      const upTo = (leg.quoteUnits * base) / size;
      trades.push({
        timeMs: fill.timeMs,
        maker: leg.maker,
        oid: order.oid,
        side: fill.side,
        ticks: leg.priceTicks,
        base: order.baseUnits,
        quote: upTo - quote,
      });
      quote = upTo;
    }
  }
  if (market.index !== fill.market) throw new Error('a fill of another market');
  return trades;
}

const MINUTES: Record<string, number> = {
  '1m': 1,
  '3m': 3,
  '5m': 5,
  '15m': 15,
  '30m': 30,
  '1h': 60,
  '2h': 120,
  '4h': 240,
  '8h': 480,
  '12h': 720,
  '1d': 1440,
  '3d': 4320,
};
export const SLOW_INTERVALS = [...Object.keys(MINUTES), '1w', '1M'];

/** When an interval began, by the calendar. */
export function slowOpen(interval: string, timeMs: number): number {
  const date = new Date(timeMs);
  const minutes = MINUTES[interval];
  if (minutes !== undefined) return Math.floor(timeMs / (minutes * 60_000)) * minutes * 60_000;
  if (interval === '1M') return Date.parse(`${date.toISOString().slice(0, 7)}-01T00:00:00Z`);
  const midnight = Date.parse(`${date.toISOString().slice(0, 10)}T00:00:00Z`);
  // getUTCDay counts from Sunday, weeks from Monday.
  return midnight - ((date.getUTCDay() + 6) % 7) * 86_400_000;
}

/** When the interval after the one that begins at a time begins. */
export const slowNext = (interval: string, openMs: number): number =>
  // No month has 32 days, and no two have fewer than 59.
  slowOpen(interval, openMs + (interval === '1M' ? 32 * 1_440 : (MINUTES[interval] ?? 7 * 1_440)) * 60_000);

/** Every candle of the trades as text, by interval and time. */
export function slowCandles(trades: readonly SlowTrade[]): Map<string, string> {
  const candles = new Map<string, string>();
  for (const interval of SLOW_INTERVALS) {
    const groups = Map.groupBy(trades, (trade) => slowOpen(interval, trade.timeMs));
    for (const [openMs, own] of groups) {
      const prices = own.map(({ ticks }) => ticks).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      const base = own.reduce((sum, trade) => sum + trade.base, 0n);
      const quote = own.reduce((sum, trade) => sum + trade.quote, 0n);
      const values = [own[0]!.ticks, prices.at(-1), prices[0], own.at(-1)!.ticks, base, quote, own.length];
      candles.set(`${interval}:${openMs}`, values.join(' '));
    }
  }
  return candles;
}

/** What a maker's trades in one market came to, and what each of them earned. */
interface SlowPosition {
  bought: bigint;
  paid: bigint;
  sold: bigint;
  got: bigint;
  realised: bigint;
  /** By oid and place. */
  closed: bigint[];
}

/** An average-cost account: what is held has one cost; closing takes its share of it, rounded towards zero. */
export function slowPosition(trades: readonly SlowTrade[]): SlowPosition {
  const result: SlowPosition = { bought: 0n, paid: 0n, sold: 0n, got: 0n, realised: 0n, closed: [] };
  // `held` is negative for a short position; its cost is then what was received for it.
  let held = 0n;
  let cost = 0n;
  for (const { side, base, quote } of trades) {
    const buys = side === 'bid';
    if (buys) [result.bought, result.paid] = [result.bought + base, result.paid + quote];
    else [result.sold, result.got] = [result.sold + base, result.got + quote];
    const opposite = buys ? held < 0n : held > 0n;
    let closed = 0n;
    let left = base;
    let leftQuote = quote;
    if (opposite && base > 0n) {
      const size = held < 0n ? -held : held;
      const part = base < size ? base : size;
      const partQuote = (quote * part) / base;
      const partCost = (cost * part) / size;
      closed = buys ? partCost - partQuote : partQuote - partCost;
      cost -= partCost;
      held += buys ? part : -part;
      left -= part;
      leftQuote -= partQuote;
    }
    held += buys ? left : -left;
    if (left > 0n) cost += leftQuote;
    result.closed.push(closed);
    result.realised += closed;
  }
  return result;
}
