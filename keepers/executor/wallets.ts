import type { Sent } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { UndecidedSale } from '../../ledger/swaps/swap-wallets.js';
import type { Newcomers } from './newcomers.js';
import { sentOf } from './risk.js';

/** An owner whose orders are handled one after the other. */
export interface Wallet {
  owner: Address;
  orders: PendingOrder[];
  /** Its orders that are under way. */
  underWay: (Sent & { sellToken: Address })[];
  /** Shared by all owners without dealings. */
  newcomers: Newcomers;
}

/** Orders by owner, with each owner's unmined transactions. */
export function walletsOf(
  pending: readonly PendingOrder[],
  undecided: readonly UndecidedSale[],
  newcomers: Newcomers,
): Wallet[] {
  const wallets = new Map<Address, Wallet>();
  for (const one of pending) {
    const { owner } = one.order;
    const wallet = wallets.get(owner) ?? { owner, orders: [], underWay: [], newcomers };
    wallets.set(owner, wallet);
    wallet.orders.push(one);
  }
  for (const { owner, sellToken, raw } of undecided) wallets.get(owner)?.underWay.push({ sellToken, ...sentOf(raw) });
  return [...wallets.values()];
}
