/** Which transactions the service risks for the owner of an order, by what the owner has spent. */
import { Transaction } from 'ethers';
import { DEFAULT_GAS } from '../../core/swap/pricing.js';
import {
  checksOf,
  limitWithin,
  mayRisk,
  refusalCodeOf,
  wayOf,
  type Sent,
  type Standing,
  type WayOf,
} from '../../core/swap/trust.js';
import type { Address, Hex } from '../../core/types.js';
import { readDealings } from '../../ledger/swaps/swap-wallets.js';
import type { ExecutorDeps } from './deps.js';
import { fillIn } from './permits.js';
import type { Refusal } from './refusals.js';
import { venuesOf } from './transaction.js';

/** A transaction as it was simulated. */
interface Candidate {
  gas: bigint;
  data: Hex;
}

export interface Risk {
  /** `send` now; `wait` until an unmined transaction has succeeded; `refuse` until the owner has spent more. */
  judge(one: Candidate): 'send' | 'wait' | 'refuse';
  /** Highest gas limit that the owner's credit covers; null for a transaction that is refused. */
  mostGas(one: Candidate): bigint | null;
  /** Whether an order over these sources may be sent, by its usual gas, and how. */
  way: WayOf;
  /** What an order over these sources takes beside its route where it is sent checked, as fees count it; with so many conditions. */
  checks(ids: readonly string[], checks?: number | null): { gas: bigint; calls: number };
  /** Whether a transaction that is refused may be sent checked. */
  canCheck: boolean;
  /** Whether the chain has seen no fill and no swap of the owner's. */
  isNewcomer: boolean;
  /** Why a transaction is refused. */
  refusal: Refusal;
}

/** Reads a signed transaction of the executor's. */
export function sentOf(raw: Hex): Sent {
  const { data, gasLimit } = Transaction.from(raw);
  return sentAs(data as Hex, gasLimit);
}

/** What counts of a transaction with this call. */
export function sentAs(data: Hex, gasLimit: bigint): Sent {
  const { permit, isChecked, checks } = fillIn(data);
  return { ...venuesOf(data), gasLimit, beforeGas: permit === null ? 0n : DEFAULT_GAS.permit, isChecked, checks };
}

/** The order's owner, the gas of its signature check, whether it includes an approval, and the owner's unmined transactions. */
interface RiskQuestion {
  owner: Address;
  isCode: boolean;
  checkGas: bigint;
  hasPermit: boolean;
  underWay: readonly Sent[];
}

/** Judges transactions of an owner of whom `underWay` are not mined. */
export async function riskOf(
  { db, marketData, gasModel, maxReverts, newAccountGas, newContractGas, newPermitGas = 0n }: ExecutorDeps,
  { owner, isCode, checkGas, hasPermit, underWay }: RiskQuestion,
): Promise<Risk> {
  const dealings = await readDealings(db.knex, owner);
  const canCheck = await marketData.canCheck();
  const standingWith = (brings: boolean): Standing => {
    const newGas = isCode ? newContractGas : newAccountGas + (brings && !canCheck ? newPermitGas : 0n);
    return { dealings, isCode, maxReverts, newAccountGas: newGas, canCheck };
  };
  const way = wayOf(standingWith(hasPermit), checkGas, hasPermit ? DEFAULT_GAS.permit : 0n);
  const within = ({ gas, data }: Candidate) => {
    const { gasLimit: _, ...sent } = sentAs(data, 0n);
    const standing = standingWith(fillIn(data).permit !== null);
    return { sent, standing, gasLimit: limitWithin(standing, { ...sent, gas }) };
  };
  return {
    mostGas: (one) => within(one).gasLimit,
    judge(one) {
      const { sent, standing, gasLimit } = within(one);
      if (gasLimit === null) return 'refuse';
      return mayRisk(dealings, { ...sent, gasLimit, isCode, canCheck }, { ...standing, underWay });
    },
    way,
    checks: checksOf(way, gasModel),
    canCheck: canCheck && !isCode,
    isNewcomer: dealings.every(({ kind }) => kind === 'revert'),
    refusal: REFUSALS[refusalCodeOf(dealings)],
  };
}

const REFUSALS = {
  TOO_MANY_REVERTS: {
    code: 'TOO_MANY_REVERTS',
    message: "Transactions of this owner's orders reverted; it is tried again once the owner has swapped by itself",
    isFinal: false,
  },
  UNPROVEN_ACCOUNT: {
    code: 'UNPROVEN_ACCOUNT',
    message:
      'Were the transaction of this order to fail, it could burn more gas than its owner has spent here; it is tried once the owner has swapped by itself',
    isFinal: false,
  },
};
