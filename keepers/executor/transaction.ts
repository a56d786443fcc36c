import { MaxUint256 } from 'ethers';
import { hasTerms } from '../../core/swap/partner.js';
import { OWN } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import { hopsOf } from '../../core/swap/paths.js';
import { signedTerms } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import type { MarketData } from '../../liquidity/market-data.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

import { fillIn, withPermit } from './permits.js';

export const SETTLER = OrderSettler__factory.createInterface();

/**
 * The settler's call that executes an order by these parts, after the order's approval if it has one. A purchase takes from the owner what
 * was signed at most, `whole`, and what it does not need comes back; or `exact` takes what the parts cost and no more, for an owner who
 * does not have the rest.
 */
export async function orderCalldata(
  one: PendingOrder,
  parts: readonly Part[],
  settler: Address,
  venueOf: MarketData['venueOf'],
  pull: 'whole' | 'exact' = 'whole',
): Promise<Hex> {
  return withPermit(one.quote.sellToken, one.permit, await fillCalldata(one, parts, settler, venueOf, pull));
}

async function fillCalldata(
  { order, quote }: PendingOrder,
  parts: readonly Part[],
  settler: Address,
  venueOf: MarketData['venueOf'],
  pull: 'whole' | 'exact',
): Promise<Hex> {
  const signed = {
    owner: quote.owner,
    tokenIn: quote.sellToken,
    maxAmountIn: quote.sellUnits,
    nonce: quote.nonce,
    deadline: quote.validToSec,
    recipient: quote.receiver,
    tokenOut: quote.buyToken,
    minAmountOut: quote.minBuyUnits,
    signature: order.signature,
  };
  const isBuy = quote.kind === 'buy';
  const own = parts.find(({ id }) => id === OWN);
  if (own !== undefined && parts.length === 1 && !hasTerms(quote)) {
    const terms = [quote.feeUnits, signed] as [bigint, typeof signed];
    if (isBuy) return SETTLER.encodeFunctionData('fillOnCurveExactOut', terms) as Hex;
    return SETTLER.encodeFunctionData('fillOnCurve', terms) as Hex;
  }
  const cost = parts.reduce((sum, part) => sum + part.inUnits, quote.feeUnits);
  const amountIn = pull === 'whole' || cost > quote.sellUnits ? quote.sellUnits : cost;
  // Each call may use the unspent amount.
  const spare = amountIn - cost;
  const calls = await Promise.all(
    parts
      .filter(({ id }) => id !== OWN)
      .flatMap((part) => callsOf(part, quote, { venueOf, recipient: settler, spare: spare > 0n ? spare : 0n })),
  );
  const ownAmount = own === undefined ? 0n : isBuy ? own.outUnits : own.inUnits;
  const route = {
    amountIn,
    feeAmount: quote.feeUnits,
    ownAmount,
    ownExactOut: isBuy,
    calls,
  };
  if (hasTerms(quote))
    return SETTLER.encodeFunctionData('fillPartnerRoute', [signed, signedTerms(quote), route]) as Hex;
  return SETTLER.encodeFunctionData('fillRoute', [signed, route]) as Hex;
}

/** All of a token that is there by then, as the settler has it. */
const ALL = MaxUint256;

interface SettlerCall {
  target: Address;
  token: Address;
  amountIn: bigint;
  amountAt: number;
  data: Hex;
}

/**
 * The calls of a part, one per leg. Of a sale each leg but the first sells what the one before has brought, however much that is by then. Of a purchase each
 * leg buys what the next one needs, and the first may cost more by what is to spare.
 */
function callsOf(
  { id, inUnits, outUnits, via = [] }: Part,
  { kind, sellToken, buyToken, validToSec: deadlineSec }: SwapQuote,
  { venueOf, recipient, spare }: { venueOf: MarketData['venueOf']; recipient: Address; spare: bigint },
): Promise<SettlerCall>[] {
  const amounts = [inUnits, ...via, outUnits];
  return hopsOf(id, sellToken, buyToken).map(async (hop, i) => {
    const trade = { ...hop, kind, inUnits: amounts[i]!, outUnits: amounts[i + 1]! };
    const terms = { recipient, deadlineSec, maxIn: trade.inUnits + (i === 0 ? spare : 0n) };
    const { amountIn, ...call } = await venueOf(hop.id).call(trade, terms);
    return { ...call, token: hop.sellToken, amountIn: kind === 'sell' && i > 0 ? ALL : amountIn };
  });
}

/** Number of venues that a call of `orderCalldata` trades with, and how many of them are pools. */
export function venuesOf(data: Hex): { venues: number; pools: number } {
  const call = SETTLER.parseTransaction({ data: fillIn(data).fill });
  if (call?.name !== 'fillRoute' && call?.name !== 'fillPartnerRoute') return { venues: 1, pools: 0 };
  const { ownAmount, calls } = call.args.at(-1) as { ownAmount: bigint; calls: readonly unknown[] };
  return { venues: calls.length + (ownAmount > 0n ? 1 : 0), pools: calls.length };
}
