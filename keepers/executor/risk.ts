/** Which transactions the service risks for the owner of an order, by what the owner has spent. */
import { Transaction } from 'ethers';
import { mayRisk, type Sent } from '../../core/swap/trust.js';
import type { Part } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import { readDealings } from '../../ledger/swaps/swap-wallets.js';
import type { ExecutorDeps } from './deps.js';
import { gasLimitOf } from './economics.js';
import type { Refusal } from './refusals.js';
import { venuesOf } from './transaction.js';

/** A transaction as it was simulated. */
interface Candidate {
  gas: bigint;
  parts: readonly Part[];
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
  return { venues: venuesOf(data as Hex), gasLimit };
}

/** Judges transactions of an owner of whom `underWay` are not mined. */
export async function riskOf(
  { db, maxReverts, newAccountGas, newContractGas }: ExecutorDeps,
  { owner, isCode, underWay }: { owner: Address; isCode: boolean; underWay: readonly Sent[] },
): Promise<Risk> {
  const dealings = await readDealings(db.knex, owner);
  const limits = { underWay, maxReverts, newAccountGas: isCode ? newContractGas : newAccountGas };
  return {
    judge: ({ gas, parts }) =>
      mayRisk(dealings, { venues: parts.length, gasLimit: gasLimitOf(gas, isCode), isCode }, limits),
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
