/**
 * The gas that transactions for new owners (who have paid for no fill or swap yet) may burn in reverts, for all of them together, per hour.
 */
import { minBig } from '../amounts.js';

export const NEWCOMERS_WINDOW_MS = 3_600_000;
/** About the gas of as many transactions as may be unmined at once. */
export const NEWCOMERS_GAS_PER_HOUR = 12_000_000n;

/** A transaction for a new owner that reverted. */
interface Burnt {
  timeMs: number;
  gasUsed: bigint;
}

/** Sum of the gas that these transactions used. */
export const burntGas = (burnt: readonly Burnt[]): bigint => burnt.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);

/**
 * When a transaction with this gas limit may be sent, given the reverts of the last hour (`burnt`, oldest first): null for now, `'never'`
 * when the limit alone exceeds `mostGas`.
 */
export function newcomersFreeAt(
  burnt: readonly Burnt[],
  gasLimit: bigint,
  mostGas: bigint,
): { atMs: number | 'never' } | null {
  let left = burntGas(burnt);
  if (left + gasLimit <= mostGas) return null;
  for (const { timeMs, gasUsed } of burnt) {
    left -= minBig(gasUsed, left);
    if (left + gasLimit <= mostGas) return { atMs: timeMs + NEWCOMERS_WINDOW_MS };
  }
  return { atMs: 'never' };
}

/** Message for an order of a new owner that is not sent, or for a quote whose order would not be. */
export const newcomersMessage = ({ atMs }: { atMs: number | 'never' }): string =>
  'What transactions of new accounts may burn in an hour is used up; an order of this owner is tried ' +
  (atMs === 'never' ? '' : `after ${new Date(atMs).toISOString()}, or `) +
  'once the owner has swapped by itself';
