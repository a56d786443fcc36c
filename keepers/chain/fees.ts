import { Transaction } from 'ethers';
import { maxBig, minBig } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';

/** The two prices of an EIP-1559 transaction, in wei per gas. */
interface Fees {
  maxFeeWei: bigint;
  priorityWei: bigint;
}

/** A transaction that nodes would accept costs more per gas than the operator allows. It may be sent once the base fee falls. */
export class FeeCeilingError extends Error {
  readonly code = 'FEE_CEILING';
  constructor(neededWei: bigint, ceilingWei: bigint) {
    super(`a fee of ${neededWei} wei per gas is needed and ${ceilingWei} is the ceiling`);
    this.name = 'FeeCeilingError';
  }
}

const MIN_PRIORITY_WEI = 1_000_000n;

/** The least fee that replaces another one: 12.5 % above it, rounded up. Nodes ask for 10 % at least. */
export function bumpFee(fee: bigint): bigint {
  return (fee * 1_125n + 999n) / 1_000n;
}

/** Fees that a stored transaction was signed with. */
export function feesOf(raw: Hex): Fees {
  const tx = Transaction.from(raw);
  return { maxFeeWei: tx.maxFeePerGas ?? 0n, priorityWei: tx.maxPriorityFeePerGas ?? 0n };
}

/** True when a fresh transaction can bid enough at this base fee without going beyond the ceiling. */
export const isAffordable = (baseFeeWei: bigint, ceilingWei: bigint): boolean =>
  maxBig(baseFeeWei + 1n, MIN_PRIORITY_WEI) <= ceilingWei;

/**
 * Most per gas that a fresh transaction bids at this base fee, up to the ceiling. Nodes require the sender's balance to cover it for the
 * whole gas limit.
 */
export const freshBidWei = (baseFeeWei: bigint, ceilingWei: bigint): bigint =>
  minBig(2n * baseFeeWei + MIN_PRIORITY_WEI, ceilingWei);

/**
 * Fees for a transaction now. Twice the base fee covers six full blocks of its fastest rise; a replacement also outbids what it replaces,
 * in both prices. A fresh transaction's bid is lowered to the ceiling. Throws FeeCeilingError for a replacement that would have to exceed
 * the ceiling, and for a base fee above it.
 */
export function chooseFees(baseFeeWei: bigint, ceilingWei: bigint, replaced: Fees | null): Fees {
  const floor = replaced === null ? 0n : bumpFee(replaced.maxFeeWei);
  const priority = maxBig(MIN_PRIORITY_WEI, replaced === null ? 0n : bumpFee(replaced.priorityWei));
  const needed = maxBig(floor, baseFeeWei + 1n, priority);
  if (needed > ceilingWei) throw new FeeCeilingError(needed, ceilingWei);
  const wanted = maxBig(2n * baseFeeWei + priority, floor);
  return { maxFeeWei: wanted < ceilingWei ? wanted : ceilingWei, priorityWei: priority };
}
