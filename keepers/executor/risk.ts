/** Which transactions the service risks for the owner of an order, by what the owner has spent. */
import { Transaction } from 'ethers';
import { DEFAULT_GAS } from '../../core/swap/pricing.js';
import { mayRisk, type Sent } from '../../core/swap/trust.js';
import type { Address, Hex } from '../../core/types.js';
import { readDealings } from '../../ledger/swaps/swap-wallets.js';
import type { ExecutorDeps } from './deps.js';
import { gasLimitOf } from './economics.js';
import { fillIn } from './permits.js';
import type { Refusal } from './refusals.js';
import { venuesOf } from './transaction.js';

/** A transaction as it was simulated. */
interface Candidate {
  gas: bigint;
  data: Hex;
}

export interface Risk {
  /** At once; when a transaction that is under way did not revert; or not before the owner spent more. */
  judge(one: Candidate): 'send' | 'wait' | 'refuse';
  /** Why a transaction is refused. */
  refusal: Refusal;
}

/** Reads a signed transaction of the executor's. */
export function sentOf(raw: Hex): Sent {
  const { data, gasLimit } = Transaction.from(raw);
  return sentAs(data as Hex, gasLimit);
}

/** What counts of a transaction with this call. */
export const sentAs = (data: Hex, gasLimit: bigint): Sent => ({
  venues: venuesOf(data),
  gasLimit,
  beforeGas: fillIn(data).hasPermit ? DEFAULT_GAS.permit : 0n,
});

/** Judges transactions of an owner of whom `underWay` are not mined. */
export async function riskOf(
  { db, maxReverts, newAccountGas, newContractGas, newPermitGas = 0n }: ExecutorDeps,
  { owner, isCode, underWay }: { owner: Address; isCode: boolean; underWay: readonly Sent[] },
): Promise<Risk> {
  const dealings = await readDealings(db.knex, owner);
  const limits = { underWay, maxReverts };
  return {
    judge({ gas, data }) {
      const sent = sentAs(data, gasLimitOf(gas, isCode));
      const credit = isCode ? newContractGas : newAccountGas + ((sent.beforeGas ?? 0n) > 0n ? newPermitGas : 0n);
      return mayRisk(dealings, { ...sent, isCode }, { ...limits, newAccountGas: credit });
    },
    refusal: dealings.some(({ kind }) => kind === 'revert') ? TOO_MANY_REVERTS : UNPROVEN_ACCOUNT,
  };
}

const TOO_MANY_REVERTS = {
  code: 'TOO_MANY_REVERTS',
  message: "Transactions of this owner's orders reverted; it is tried again once the owner has swapped by itself",
  isFinal: false,
};

const UNPROVEN_ACCOUNT = {
  code: 'UNPROVEN_ACCOUNT',
  message:
    'Were the transaction of this order to fail, it could burn more gas than its owner has spent here; it is tried once the owner has swapped by itself',
  isFinal: false,
};
