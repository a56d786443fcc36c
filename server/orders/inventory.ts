import { maxBig } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import type { BalanceRow } from '../../ledger/types.js';

/** Balances after the last durable generation that was read. */
export interface Inventory {
  /** Puts rows in the place of those of the same account and token. */
  update: (rows: readonly BalanceRow[]) => void;
  /** max(balance - reserved, 0), in units of the token; 0 for an unknown account. */
  available: (maker: Address, token: Address) => bigint;
  has: (account: Address) => boolean;
}

/** An empty inventory. */
export function createInventory(): Inventory {
  const available = new Map<string, Map<string, bigint>>();
  return {
    update(rows) {
      for (const { account, token, balanceUnits, reservedUnits } of rows) {
        const tokens = available.get(account) ?? new Map<string, bigint>();
        available.set(account, tokens.set(token, maxBig(balanceUnits - reservedUnits, 0n)));
      }
    },
    available: (maker, token) => available.get(maker)?.get(token) ?? 0n,
    has: (account) => available.has(account),
  };
}
