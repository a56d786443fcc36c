import type { Address, ChainFill, Decomposition, Market } from '../../../core/types.js';
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
 * The double-entry postings of each event. Every ref sums to zero per token; `vault` carries the custodian's holdings with a
 * negative sign, so that all other rows together are what the custodian must hold.
 */

/** A deposit credits the sender with what arrived. */
export function depositEntries(ref: string, maker: Address, token: Address, amountUnits: bigint): LedgerEntry[] {
  return [
    { ref, kind: 'deposit', account: maker, token, amountUnits },
    { ref, kind: 'deposit', account: VAULT, token, amountUnits: -amountUnits },
  ];
}

/** An executed withdrawal debits its owner, and the suspense account with what the owner's row can't explain. */
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

/** Tokens that reached the vault without a deposit belong to nobody. */
export function surplusEntries(ref: string, token: Address, amountUnits: bigint): LedgerEntry[] {
  return [
    { ref, kind: 'unattributed', account: UNATTRIBUTED, token, amountUnits },
    { ref, kind: 'unattributed', account: VAULT, token, amountUnits: -amountUnits },
  ];
}

/** A surplus that is gone again, by no transfer: it was nobody's, so it is nobody's loss. */
export function withdrawnSurplusEntries(ref: string, token: Address, amountUnits: bigint): LedgerEntry[] {
  return surplusEntries(ref, token, -amountUnits);
}

/**
 * A fill. On a buy makers give base and get quote, on a sell the reverse; the residual and input fees are the operator's, the taker
 * fee stays in the vault for the taker's own row. Of a suspended fill, what no order explains and what is left over are nobody's until the
 * operator resolves it, instead of the operator's.
 */
export function fillEntries(
  market: Market,
  fill: Pick<ChainFill, 'side' | 'fillSeq' | 'baseUnits' | 'quoteUnits' | 'feeUnits' | 'inputFeeUnits' | 'taker'>,
  decomposition: Decomposition,
  operator: Address,
  isSuspended = false,
): LedgerEntry[] {
  const ref = `fill:${market.id}:${fill.fillSeq}`;
  const base = market.base.address;
  const quote = market.quote.address;
  const isBuy = fill.side === 'ask';
  /** +1 where the makers' side of the trade receives quote. */
  const sign = isBuy ? 1n : -1n;
  const entries: LedgerEntry[] = [];
  const add = (kind: LedgerEntry['kind'], account: LedgerEntry['account'], token: Address, amountUnits: bigint) => {
    if (amountUnits !== 0n) entries.push({ ref, kind, account, token, amountUnits });
  };

  for (const leg of decomposition.legs) {
    add('fill', leg.maker, base, -sign * leg.baseUnits);
    add('fill', leg.maker, quote, sign * leg.quoteUnits);
  }
  if (isSuspended) {
    add('suspense', SUSPENSE, base, -sign * decomposition.missingBaseUnits);
    add('suspense', SUSPENSE, quote, decomposition.operatorGainUnits);
  } else {
    add('fill', operator, base, -sign * decomposition.missingBaseUnits);
    add('residual', operator, quote, decomposition.operatorGainUnits);
  }
  add('takerFee', fill.taker, isBuy ? base : quote, fill.feeUnits);
  add('inputFee', operator, isBuy ? quote : base, fill.inputFeeUnits);

  const outFee = fill.feeUnits;
  const inFee = fill.inputFeeUnits;
  const baseIntoVault = isBuy ? -(fill.baseUnits - outFee) : fill.baseUnits + inFee;
  const quoteIntoVault = isBuy ? fill.quoteUnits + inFee : -(fill.quoteUnits - outFee);
  add('fill', VAULT, base, -baseIntoVault);
  add('fill', VAULT, quote, -quoteIntoVault);
  return entries;
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
