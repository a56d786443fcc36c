import type { Address, Hex, Market } from '../../../core/types.js';
import { VAULT, type LedgerEntry, type SettledOrder } from '../../../ledger/types.js';
import type { ChainEvent } from '../../chain/logs.js';
import type { SeenEvent } from '../scan/scan.js';

/**
 * The signed orders that a scan saw filled, and the postings of fees that reached the vault by themselves: the operator's, like those
 * that came with a swap. A fee in a token that no listed pair trades is not booked, as with any other transfer. `markets` are those
 * listed before the scan; listings within it count from where they stand.
 */
export function draftSettledOrders(
  events: readonly SeenEvent[],
  markets: readonly Market[],
  operator: Address,
): { orders: SettledOrder[]; entries: LedgerEntry[] } {
  const served = new Set(markets.flatMap((market) => [market.base.address, market.quote.address]));
  const orders: SettledOrder[] = [];
  const entries: LedgerEntry[] = [];
  for (const { log, event } of events) {
    if (event.type === 'listed') served.add(event.base).add(event.quote);
    // The settler logs it right after the event of the same order.
    if (event.type === 'partnerOrderFilled') Object.assign(orders.at(-1) ?? {}, termsOf(event));
    if (event.type !== 'orderFilled') continue;
    const { type: _, ...filled } = event;
    const place = { blockNumber: log.blockNumber, txHash: log.txHash, logIndex: log.logIndex };
    orders.push({ ...filled, ...place, partner: null, appData: null });
    if (filled.feeInSwap || filled.feeUnits === 0n || !served.has(filled.tokenIn)) continue;
    const ref = `order:${filled.owner}:${filled.nonce}`;
    const { tokenIn: token, feeUnits } = filled;
    entries.push(
      { ref, kind: 'inputFee', account: operator, token, amountUnits: feeUnits },
      { ref, kind: 'inputFee', account: VAULT, token, amountUnits: -feeUnits },
    );
  }
  return { orders, entries };
}

function termsOf({
  partner,
  amountUnits,
  appData,
}: Extract<ChainEvent, { type: 'partnerOrderFilled' }>): Pick<SettledOrder, 'partner' | 'appData'> {
  return {
    partner: isZero(partner) ? null : { partner, amountUnits },
    appData: isZero(appData) ? null : appData,
  };
}

const isZero = (hex: Hex): boolean => BigInt(hex) === 0n;
