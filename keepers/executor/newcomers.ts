/** The gas that transactions for new owners may burn together: new keys are free, so a limit per owner would not bound it. */
import {
  NEWCOMERS_GAS_PER_HOUR,
  NEWCOMERS_WINDOW_MS,
  burntGas,
  newcomersFreeAt,
  newcomersMessage,
} from '../../core/swap/newcomers.js';
import type { Sent } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import { readProven, readUnprovenReverts, type UndecidedSale } from '../../ledger/swaps/swap-wallets.js';
import type { ExecutorDeps } from './deps.js';
import type { Refusal } from './refusals.js';
import { sentOf } from './risk.js';

export interface Newcomers {
  /**
   * Decides on a new owner's transaction: `send`; `wait` until others are mined; or a refusal for this hour. Unmined transactions count
   * with their whole limit, so that the hour's gas is never exceeded.
   */
  take(one: Sent): 'send' | 'wait' | Refusal;
}

/** Reads the reverts of the last hour, and counts unmined transactions. */
export async function readNewcomers(
  { db, nowMs, newcomersGasPerHour: most = NEWCOMERS_GAS_PER_HOUR }: ExecutorDeps,
  undecided: readonly UndecidedSale[],
): Promise<Newcomers> {
  const burnt = await readUnprovenReverts(db.knex, nowMs() - NEWCOMERS_WINDOW_MS);
  const proven = await readProven(db.knex, [...new Set<Address>(undecided.map(({ owner }) => owner))]);
  const underWay = undecided.filter(({ owner }) => !proven.has(owner)).map(({ raw }) => sentOf(raw));
  const spentGas = burntGas(burnt);
  let openGas = underWay.reduce((sum, { gasLimit }) => sum + gasLimit, 0n);
  // A fill may move its pool, so that all other transactions over the pool revert.
  let isPoolTaken = underWay.some(({ pools }) => pools > 0);

  return {
    take({ pools, gasLimit }) {
      const full = newcomersFreeAt(burnt, gasLimit, most);
      if (full !== null) return { code: 'UNPROVEN_ACCOUNT', message: newcomersMessage(full), isFinal: false };
      if (spentGas + openGas + gasLimit > most || (pools > 0 && isPoolTaken)) return 'wait';
      openGas += gasLimit;
      isPoolTaken ||= pools > 0;
      return 'send';
    },
  };
}
