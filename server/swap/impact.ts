/** A route's parts and price impact, for answers. */
import { BPS, maxBig, minBig, toSafeInt } from '../../core/amounts.js';
import { hopsOf } from '../../core/swap/paths.js';
import { squareRoot } from '../../core/swap/pool-math.js';
import type { RoutePlan } from '../../core/swap/pricing.js';
import type { Source } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import type { Address } from '../../core/types.js';
import type { Head } from '../../liquidity/eth.js';
import type { SwapDeps } from './deps.js';

/** The mid price is taken for one part in so many of the amount, */
const PROBE_PART = 1_000n;
/** or for as much more as brings so many units: one that rounding takes is half a basis point then. */
const PROBE_UNITS = 20_000n;
const RATE_BITS = 96n;

/** What is traded for what. */
interface Pair {
  sellToken: Address;
  buyToken: Address;
}

/** A route's parts by source, in base units, with the legs of paths. */
export const routeAnswer = (parts: readonly Part[], pair: Pair) =>
  parts.map((part) => ({
    source: part.id,
    sellAmount: part.inUnits.toString(),
    buyAmount: part.outUnits.toString(),
    ...(part.via === undefined ? {} : { legs: legsAnswer(part, part.via, pair) }),
  }));

function legsAnswer({ id, inUnits, outUnits }: Part, via: readonly bigint[], { sellToken, buyToken }: Pair) {
  const amounts = [inUnits, ...via, outUnits];
  return hopsOf(id, sellToken, buyToken).map((hop, i) => ({
    source: hop.id,
    sellToken: hop.sellToken,
    buyToken: hop.buyToken,
    sellAmount: amounts[i]!.toString(),
    buyAmount: amounts[i + 1]!.toString(),
  }));
}

/**
 * How much less than at the mid price the route brings, the fee not counted, in whole basis points rounded to the nearest. The mid is the geometric
 * mean of the best prices for a small amount either way; null where the pair trades one way only.
 */
export async function impactBps(
  { marketData }: Pick<SwapDeps, 'marketData'>,
  { sellToken, buyToken }: Pair,
  { inUnits, outUnits, feeUnits }: RoutePlan,
  head: Head,
  atSec: number,
): Promise<number | null> {
  const traded = inUnits - feeUnits;
  /** At the best source for a small part of `whole`, of which all brings about `brought`. */
  const rateOf = async (pair: Pair, whole: bigint, brought: bigint): Promise<bigint> => {
    const units = whole / maxBig(minBig(brought / PROBE_UNITS, PROBE_PART), 1n);
    const question = { kind: 'sell' as const, ...pair, amountUnits: units };
    const direct = await marketData.sources(pair.sellToken, pair.buyToken, head, atSec);
    return bestRate([...direct, ...(await marketData.paths(question, head, atSec))], units);
  };
  const there = await rateOf({ sellToken, buyToken }, traded, outUnits);
  const back = await rateOf({ sellToken: buyToken, buyToken: sellToken }, outUnits, traded);
  if (there === 0n || back === 0n) return null;
  // Out per in: geometric mean of the selling rate and of the rate to buy it back.
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
