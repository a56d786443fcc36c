import { OWN } from '../../core/swap/source.js';
import type { Part } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swap-log.js';
import type { MarketData } from '../../liquidity/market-data.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

export const SETTLER = OrderSettler__factory.createInterface();

/** The settler's call that executes an order by these parts. */
export function orderCalldata(
  { order, quote }: PendingOrder,
  parts: readonly Part[],
  settler: Address,
  venueOf: MarketData['venueOf'],
): Hex {
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
  if (own !== undefined && parts.length === 1) {
    return SETTLER.encodeFunctionData('fill', [quote.feeUnits, isBuy, signed]) as Hex;
  }
  // What a purchase does not need comes back to the owner, so each call may use what is left over.
  const spare = parts.reduce((rest, part) => rest - part.inUnits, quote.sellUnits - quote.feeUnits);
  const calls = parts
    .filter(({ id }) => id !== OWN)
    .map((part) => {
      const { kind, sellToken, buyToken, validToSec: deadlineSec } = quote;
      const terms = { recipient: settler, deadlineSec, maxIn: part.inUnits + (spare > 0n ? spare : 0n) };
      return venueOf(part.id).call({ ...part, kind, sellToken, buyToken }, terms);
    });
  const ownAmount = own === undefined ? 0n : isBuy ? own.outUnits : own.inUnits;
  const route = {
    amountIn: quote.sellUnits,
    feeAmount: quote.feeUnits,
    ownAmount,
    ownExactOut: isBuy,
    calls,
  };
  return SETTLER.encodeFunctionData('fillRoute', [signed, route]) as Hex;
}
