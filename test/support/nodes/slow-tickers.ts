/**
 * Expected tickers, and profits in the form of the exchange wire, computed slowly and without the ledger's code: from the decompositions of fills and
 * the rows of the order log.
 */
import type { Market, Side } from '../../../core/types.js';
import { slowPosition, slowTrades } from '../api/market-data.js';
import { openAfter, type Heard, type ParsedRow } from './slow-accounts.js';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** A decimal without zeros at its end, in which the wire's decimals and ours may differ. */
export function plain(text: string): string {
  return text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
}

/** An integer of the last of so many digits as a plain decimal. */
function decimalOf(value: bigint, digits: number): string {
  const text = (value < 0n ? -value : value).toString().padStart(digits + 1, '0');
  const point = text.length - digits;
  return `${value < 0n ? '-' : ''}${plain(`${text.slice(0, point)}.${text.slice(point)}`)}`;
}

/** The best open order of a side, in ticks: what whole lots of it fills have left. */
function bestTicks(heard: Heard, rows: readonly ParsedRow[], side: Side): bigint | null {
  const { market } = heard;
  const prices = [...openAfter(heard, rows, { orderSeq: Infinity, isTaken: () => true }).values()]
    .filter((order) => order.side === side && order.units >= market.lotUnits)
    .map(({ ticks }) => ticks)
    .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return (side === 'ask' ? prices[0] : prices.at(-1)) ?? null;
}

/** Decimals of a market's tick, at least one. */
const tickDigits = (market: Market): number => Math.max(market.tickSize.split('.')[1]?.length ?? 0, 1);

/** The ticker of a market: 24 hours in whole minutes up to the end of the present one. */
export function slowTicker(heard: Heard, rows: readonly ParsedRow[], nowMs: number) {
  const { market, fills } = heard;
  const trades = fills.flatMap((fill) => slowTrades(market, fill));
  const fromMs = (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS - DAY_MS;
  const day = trades.filter(({ timeMs }) => timeMs >= fromMs);
  const before = trades.findLast(({ timeMs }) => timeMs < fromMs) ?? day[0];
  const [ask, bid] = [bestTicks(heard, rows, 'ask'), bestTicks(heard, rows, 'bid')];
  // Of half ticks, with a digit more than ticks have.
  const digits = tickDigits(market);
  const tick = BigInt(market.tickSize.replace('.', '').padEnd(digits, '0'));
  const price = (ticks: bigint): string => decimalOf(ticks * tick, digits);
  const last = trades.at(-1);
  const half = ask === null || bid === null ? null : (ask + bid) * tick * 5n;
  const mark = half === null ? (last === undefined ? null : last.ticks * tick) : half / 10n;
  return {
    dayBaseVlm: decimalOf(
      day.reduce((sum, one) => sum + one.base, 0n),
      market.base.decimals,
    ),
    dayNtlVlm: decimalOf(
      day.reduce((sum, one) => sum + one.quote, 0n),
      market.quote.decimals,
    ),
    prevDayPx: before === undefined ? null : price(before.ticks),
    midPx: half === null ? null : decimalOf(half, digits + 1),
    markPx: mark === null ? null : decimalOf(mark, digits),
    lastPx: last === undefined ? null : price(last.ticks),
  };
}

/** The newest parts of a maker's fills in a market, newest first, with what each of them realised. */
export function slowUserFills({ market, fills }: Heard, maker: string) {
  const trades = fills.flatMap((fill) => slowTrades(market, fill)).filter((trade) => trade.maker === maker);
  const { closed } = slowPosition(trades);
  return trades
    .map(({ oid, timeMs: time, base }, i) => ({
      ...{ oid, time, sz: decimalOf(base, market.base.decimals) },
      closedPnl: decimalOf(closed[i]!, market.quote.decimals),
    }))
    .reverse();
}
