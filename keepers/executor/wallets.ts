import type { Sent } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { UndecidedSale } from '../../ledger/swaps/swap-wallets.js';
import type { Newcomers } from './newcomers.js';
import { sentOf } from './risk.js';

/** An owner whose orders are handled one after the other. */
export interface Wallet {
  owner: Address;
  /** Its orders that are under way. */
  underWay: (Sent & { sellToken: Address })[];
  /** Shared by all owners without dealings. */
  newcomers: Newcomers;
}

/** The owners of the orders, with each owner's unmined transactions. */
export function walletsOf(
  pending: readonly PendingOrder[],
  undecided: readonly UndecidedSale[],
  newcomers: Newcomers,
): Map<Address, Wallet> {
  const wallets = new Map<Address, Wallet>();
  for (const { order } of pending) wallets.set(order.owner, { owner: order.owner, underWay: [], newcomers });
  for (const { owner, sellToken, raw } of undecided) wallets.get(owner)?.underWay.push({ sellToken, ...sentOf(raw) });
  return wallets;
}
