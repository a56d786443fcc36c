import type { Address } from '../../../core/types.js';
import { assignmentRef } from '../../../ledger/chain/invariants.js';
import {
  SUSPENSE,
  UNATTRIBUTED,
  VAULT,
  type BalanceRow,
  type GenerationWrite,
  type LedgerEntry,
  type SuspenseItem,
} from '../../../ledger/types.js';

/**
 * The double-entry postings of each event; those of fills are in `ledger/chain/fill-postings.ts`. Every ref sums to zero per token; `vault` carries the custodian's holdings with a
 * negative sign, so that all other rows together are what the custodian must hold.
 */

/** A deposit credits the sender with what arrived. */
export function depositEntries(ref: string, maker: Address, token: Address, amountUnits: bigint): LedgerEntry[] {
  return [
    { ref, kind: 'deposit', account: maker, token, amountUnits },
    { ref, kind: 'deposit', account: VAULT, token, amountUnits: -amountUnits },
  ];
}

/** An executed withdrawal debits its owner, and the suspense account with the part above the owner's balance. */
export function executionEntries(
  ref: string,
  maker: Address,
  token: Address,
  amountUnits: bigint,
  suspendedUnits = 0n,
): LedgerEntry[] {
  const entries: LedgerEntry[] = [
    { ref, kind: 'execution', account: maker, token, amountUnits: suspendedUnits - amountUnits },
    { ref, kind: 'execution', account: VAULT, token, amountUnits },
  ];
  if (suspendedUnits === 0n) return entries;
  return [...entries, { ref, kind: 'suspense', account: SUSPENSE, token, amountUnits: -suspendedUnits }];
}

/** What the operator decided of an item in suspense moves to the account that it named. */
export function assignmentEntries(
  one: Pick<SuspenseItem, 'item' | 'token' | 'units' | 'otherToken' | 'otherUnits'>,
  account: Address,
): LedgerEntry[] {
  const ref = assignmentRef(one.item);
  const sides = [
    [one.token, one.units],
    [one.otherToken, one.otherUnits],
  ] as const;
  return sides.flatMap(([token, units]): LedgerEntry[] =>
    token === null || units === 0n
      ? []
      : [
          { ref, kind: 'assignment', account: SUSPENSE, token, amountUnits: -units },
          { ref, kind: 'assignment', account, token, amountUnits: units },
        ],
  );
}

/** Tokens that reached the vault without a deposit belong to no account. */
export function surplusEntries(ref: string, token: Address, amountUnits: bigint): LedgerEntry[] {
  return [
    { ref, kind: 'unattributed', account: UNATTRIBUTED, token, amountUnits },
    { ref, kind: 'unattributed', account: VAULT, token, amountUnits: -amountUnits },
  ];
}

/** A surplus that disappears without a transfer is removed from the unattributed amount, at no account's expense. */
export function withdrawnSurplusEntries(ref: string, token: Address, amountUnits: bigint): LedgerEntry[] {
  return surplusEntries(ref, token, -amountUnits);
}

/** Adds what a generation books and reserves to balances by `account:token`. */
export function applyToBalances(
  balances: Map<string, BalanceRow>,
  write: Pick<GenerationWrite, 'entries' | 'reservations'>,
): void {
  const row = (account: BalanceRow['account'], token: Address): BalanceRow => {
    const key = `${account}:${token}`;
    const known = balances.get(key) ?? { account, token, balanceUnits: 0n, reservedUnits: 0n, netCapitalUnits: 0n };
    balances.set(key, known);
    return known;
  };
  for (const { account, token, amountUnits } of write.entries) row(account, token).balanceUnits += amountUnits;
  for (const { account, token, deltaUnits } of write.reservations) row(account, token).reservedUnits += deltaUnits;
}
