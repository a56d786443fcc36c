import { canonicalDecimal, withPoint } from '../../../core/wire/decimal.js';
import { formatUnits, parseDecimal } from '../../../core/amounts.js';
import { ticksToPrice } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import { recentFills } from '../../../ledger/views/reads.js';
import type { InfoDeps } from './types.js';

/** Exact middle between the best bid and the best ask, null when a side is empty. */
export function midPrice(market: Market, { gateway }: { gateway: Pick<InfoDeps['gateway'], 'book'> }): string | null {
  const bid = gateway.book().bestTicks(market.index, 'bid');
  const ask = gateway.book().bestTicks(market.index, 'ask');
  if (bid === null || ask === null) return null;
  const { digits, scale } = parseDecimal(ticksToPrice(market, bid + ask));
  return withPoint(formatUnits(digits * 5n, scale + 1));
}

/**
 * Mark price with as many decimals as the tick, rounded down to one: the middle of the book, else the last trade, else the
 * configured reference, else one tick. Clients read the price increment from its digits, so it is never null.
 */
export async function markPrice(market: Market, deps: InfoDeps): Promise<string> {
  const price = midPrice(market, deps) ?? (await lastTradePrice(market, deps)) ?? referencePrice(market, deps);
  return onTickDecimals(market, price ?? market.tickSize);
}

async function lastTradePrice(market: Market, { db }: InfoDeps): Promise<string | null> {
  const last = (await recentFills(db.reads, market.index, 1)).at(-1);
  if (last === undefined || last.baseUnits === 0n) return null;
  const ticks = (last.quoteUnits * market.lotUnits) / (last.baseUnits * market.tickLotUnits);
  return ticksToPrice(market, ticks);
}

function referencePrice(market: Market, { config }: InfoDeps): string | null {
  const price = config.referencePrices[market.pair];
  return price === undefined ? null : canonicalDecimal(price);
}

/** Cuts or pads a decimal to the decimals of the tick, keeping at least one. */
function onTickDecimals(market: Market, price: string): string {
  const places = Math.max(market.tickSize.split('.')[1]?.length ?? 0, 1);
  const [whole = '0', fraction = ''] = price.split('.');
  return `${whole}.${fraction.slice(0, places).padEnd(places, '0')}`;
}
