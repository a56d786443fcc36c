/** Candles of a market: its trades summed up per interval. Prices are ticks, amounts units; nothing is rounded. */
import { INTERVALS, nextOpen, openOf, type Interval } from './intervals.js';

/** One order's part of a fill, at its maker's price. */
export interface TradePart {
  timeMs: number;
  priceTicks: bigint;
  baseUnits: bigint;
  quoteUnits: bigint;
}

export interface Candle {
  interval: Interval;
  openMs: number;
  openTicks: bigint;
  highTicks: bigint;
  lowTicks: bigint;
  closeTicks: bigint;
  baseUnits: bigint;
  quoteUnits: bigint;
  trades: number;
}

/** The candle of an interval with this trade alone. */
function candleOf(interval: Interval, { timeMs, priceTicks, baseUnits, quoteUnits }: TradePart): Candle {
  return {
    interval,
    openMs: openOf(interval, timeMs),
    openTicks: priceTicks,
    highTicks: priceTicks,
    lowTicks: priceTicks,
    closeTicks: priceTicks,
    baseUnits,
    quoteUnits,
    trades: 1,
  };
}

/** Two candles merged: interval and time are those of the first. */
export function joined(first: Candle, second: Candle): Candle {
  return {
    interval: first.interval,
    openMs: first.openMs,
    openTicks: first.openTicks,
    highTicks: first.highTicks > second.highTicks ? first.highTicks : second.highTicks,
    lowTicks: first.lowTicks < second.lowTicks ? first.lowTicks : second.lowTicks,
    closeTicks: second.closeTicks,
    baseUnits: first.baseUnits + second.baseUnits,
    quoteUnits: first.quoteUnits + second.quoteUnits,
    trades: first.trades + second.trades,
  };
}

/** The candle of shorter ones that lie within one of its intervals, oldest first; null for an empty list. */
export function joinedAs(interval: Interval, parts: readonly Candle[]): Candle | null {
  const [first, ...rest] = parts;
  if (first === undefined) return null;
  const start = { ...first, interval, openMs: openOf(interval, first.openMs) };
  return rest.reduce((sum, part) => joined(sum, part), start);
}

/** Candles of these intervals from trades in their order. The result is in no fixed order. */
export function candlesOf(trades: readonly TradePart[], intervals: readonly Interval[] = INTERVALS): Candle[] {
  const candles = new Map<string, Candle>();
  for (const interval of intervals) {
    for (const trade of trades) {
      const one = candleOf(interval, trade);
      const key = `${interval}:${one.openMs}`;
      const before = candles.get(key);
      candles.set(key, before === undefined ? one : joined(before, one));
    }
  }
  return [...candles.values()];
}

/** The candle of an interval without a trade, at the last price before it. */
function flatCandle(interval: Interval, openMs: number, priceTicks: bigint): Candle {
  const prices = { openTicks: priceTicks, highTicks: priceTicks, lowTicks: priceTicks, closeTicks: priceTicks };
  return { interval, openMs, ...prices, baseUnits: 0n, quoteUnits: 0n, trades: 0 };
}

/**
 * Candles without gaps from the interval that begins at `fromMs` to the one that begins at `toMs`, both included and oldest first, with
 * flat ones where nothing was traded. `traded` are those with a trade, oldest first; `closeTicks` is the last price before them, null before
 * the first trade ever, until which there are no candles.
 */
export function withoutGaps(
  interval: Interval,
  { fromMs, toMs, closeTicks }: { fromMs: number; toMs: number; closeTicks: bigint | null },
  traded: readonly Candle[],
): Candle[] {
  const candles: Candle[] = [];
  let last = closeTicks;
  let next = 0;
  for (let openMs = fromMs; openMs <= toMs; openMs = nextOpen(interval, openMs)) {
    const found = traded[next]?.openMs === openMs ? traded[next++] : undefined;
    if (found !== undefined) candles.push(found);
    else if (last !== null) candles.push(flatCandle(interval, openMs, last));
    last = found?.closeTicks ?? last;
  }
  return candles;
}
