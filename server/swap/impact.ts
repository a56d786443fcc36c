/** What answers say of a route: its parts, and how far it moves the market. */
import { toSafeInt } from '../../core/amounts.js';
import { squareRoot } from '../../core/swap/pool-math.js';
import { BPS, type RoutePlan } from '../../core/swap/pricing.js';
import type { Source } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import type { Address } from '../../core/types.js';
import type { Head } from '../../liquidity/eth.js';
import type { SwapDeps } from './deps.js';

/** The mid price is that of this part of the amount. */
const PROBE_PART = 1_000n;
const RATE_BITS = 96n;

/** A route's parts by their sources, in base units. */
export const routeAnswer = (parts: readonly Part[]) =>
  parts.map(({ id, inUnits, outUnits }) => ({
    source: id,
    sellAmount: inUnits.toString(),
    buyAmount: outUnits.toString(),
  }));

/**
 * How much less than at the mid price the route brings, the fee not counted, in whole basis points rounded to the nearest. The mid is the geometric
 * mean of the best prices for a small amount either way; null where the pair trades one way only.
 */
export async function impactBps(
  { marketData }: Pick<SwapDeps, 'marketData'>,
  { sellToken, buyToken }: { sellToken: Address; buyToken: Address },
  { inUnits, outUnits, feeUnits }: RoutePlan,
  head: Head,
  atSec: number,
): Promise<number | null> {
  const traded = inUnits - feeUnits;
  const there = bestRate(await marketData.sources(sellToken, buyToken, head, atSec), traded / PROBE_PART);
  const back = bestRate(await marketData.sources(buyToken, sellToken, head, atSec), outUnits / PROBE_PART);
  if (there === 0n || back === 0n) return null;
  // Out per in: what selling brings, and what is paid to buy it back.
  const mid = squareRoot((there << (2n * RATE_BITS)) / back);
  const route = (outUnits << RATE_BITS) / traded;
  const scaled = ((mid - route) * BPS * 2n) / mid;
  return toSafeInt((scaled + (scaled < 0n ? -1n : 1n)) / 2n);
}

/** Units out per unit in at the best source, in binary fixed point; 0 when none takes the amount. */
function bestRate(sources: readonly Source[], inUnits: bigint): bigint {
  const rates = sources.map(
    (source) => ((source.outputFor(inUnits) ?? 0n) << RATE_BITS) / (inUnits === 0n ? 1n : inUnits),
  );
  return rates.reduce((best, rate) => (rate > best ? rate : best), 0n);
}
