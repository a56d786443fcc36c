import type { Address, ChainFill, Decomposition, Market } from '../../core/types.js';
import { UNATTRIBUTED, VAULT, type LedgerEntry } from '../../ledger/types.js';

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

/** An executed withdrawal debits its owner. */
export function executionEntries(ref: string, maker: Address, token: Address, amountUnits: bigint): LedgerEntry[] {
  return [
    { ref, kind: 'execution', account: maker, token, amountUnits: -amountUnits },
    { ref, kind: 'execution', account: VAULT, token, amountUnits },
  ];
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
 * fee stays in the vault for the taker's own row. Depth that no order explains comes out of the operator's row.
 */
export function fillEntries(
  market: Market,
  fill: ChainFill,
  decomposition: Decomposition,
  operator: Address,
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
  add('fill', operator, base, -sign * decomposition.missingBaseUnits);
  add('residual', operator, quote, decomposition.operatorGainUnits);
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
