/** What all owners together may burn who have spent nothing here: a key costs nothing, so that a bound per owner is none. */
import type { Sent } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import { readProven, readUnprovenReverts, type UndecidedSale } from '../../ledger/swaps/swap-wallets.js';
import type { ExecutorDeps } from './deps.js';
import type { Refusal } from './refusals.js';
import { sentOf } from './risk.js';

const HOUR_MS = 3_600_000;
/** About what all that may be unmined at once takes. */
const DEFAULT_GAS_PER_HOUR = 12_000_000n;

export interface Newcomers {
  /**
   * Takes the turn of a newcomer's transaction: at once; not before others are mined; or why not within the hour. Whatever is under way counts as
   * if it burnt its whole limit, so that the hour's gas is never exceeded.
   */
  take(one: Sent): 'send' | 'wait' | Refusal;
}

/** By what the chain has told so far, and of what is under way. */
export async function readNewcomers(
  { db, nowMs, newcomersGasPerHour: most = DEFAULT_GAS_PER_HOUR }: ExecutorDeps,
  undecided: readonly UndecidedSale[],
): Promise<Newcomers> {
  const burnt = await readUnprovenReverts(db.knex, nowMs() - HOUR_MS);
  const proven = await readProven(db.knex, [...new Set<Address>(undecided.map(({ owner }) => owner))]);
  const underWay = undecided.filter(({ owner }) => !proven.has(owner)).map(({ raw }) => sentOf(raw));
  const spentGas = burnt.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
  let openGas = underWay.reduce((sum, { gasLimit }) => sum + gasLimit, 0n);
  // One that fills may move its pool, so that all others over it revert.
  let isPoolTaken = underWay.some(({ pools }) => pools > 0);

  /** When enough of it is longer ago than an hour; null if it never is. */
  function freeAtMs(gasLimit: bigint): number | null {
    let left = spentGas;
    for (const { timeMs, gasUsed } of burnt) {
      left -= gasUsed;
      if (left + gasLimit <= most) return timeMs + HOUR_MS;
    }
    return null;
  }

  return {
    take({ pools, gasLimit }) {
      if (spentGas + gasLimit > most) return refusalUntil(freeAtMs(gasLimit));
      if (spentGas + openGas + gasLimit > most || (pools > 0 && isPoolTaken)) return 'wait';
      openGas += gasLimit;
      isPoolTaken ||= pools > 0;
      return 'send';
    },
  };
}

const refusalUntil = (atMs: number | null): Refusal => ({
  code: 'UNPROVEN_ACCOUNT',
  message:
    'What transactions of new accounts may burn in an hour is used up; it is tried again ' +
    (atMs === null ? '' : `after ${new Date(atMs).toISOString()}, or `) +
    'once its owner has swapped by itself',
  isFinal: false,
});
