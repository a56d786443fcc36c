import { maxBig } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import type { BalanceRow } from '../../ledger/types.js';

/** Balances after the last durable generation that was read. */
export interface Inventory {
  replace: (rows: readonly BalanceRow[]) => void;
  /** max(balance - reserved, 0), in units of the token; 0 for an unknown account. */
  available: (maker: Address, token: Address) => bigint;
  has: (account: Address) => boolean;
}

/** An empty inventory. */
export function createInventory(): Inventory {
  let available = new Map<string, bigint>();
  let accounts = new Set<string>();
  const keyOf = (account: string, token: string): string => `${account}:${token}`;
  return {
    replace(rows) {
      available = new Map(
        rows.map((row) => [keyOf(row.account, row.token), maxBig(row.balanceUnits - row.reservedUnits, 0n)]),
      );
      accounts = new Set(rows.map((row) => row.account));
    },
    available: (maker, token) => available.get(keyOf(maker, token)) ?? 0n,
    has: (account) => accounts.has(account),
  };
}
