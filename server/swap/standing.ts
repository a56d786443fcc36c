/** Checks at the time of a quote whether executors would send the order, by their limits of risk for its owner. */
import {
  NEWCOMERS_GAS_PER_HOUR,
  NEWCOMERS_WINDOW_MS,
  newcomersFreeAt,
  newcomersMessage,
} from '../../core/swap/newcomers.js';
import { gasLimitOf, refusalCodeOf, type Standing } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import { readDealings, readUnprovenReverts } from '../../ledger/swaps/swap-wallets.js';
import { ApiError } from '../errors.js';
import type { SwapDeps } from './deps.js';

/** Standing of an account without any dealings. */
export const newcomer = async (
  { marketData, maxReverts, newAccountGas, newContractGas }: SwapDeps,
  isCode: boolean,
): Promise<Standing> => ({
  dealings: [],
  isCode,
  maxReverts,
  newAccountGas: isCode ? newContractGas : newAccountGas,
  canCheck: await marketData.canCheck(),
});

/** Standing of an owner, from the ledger. */
export async function standingOf(deps: SwapDeps, owner: Address, isCode: boolean): Promise<Standing> {
  return { ...(await newcomer(deps, isCode)), dealings: await readDealings(deps.db.knex, owner) };
}

/** Standing of the same owner for an order that includes its approval, which is burnt with it where nothing is checked first. */
export const withPermit = ({ newPermitGas }: SwapDeps, standing: Standing): Standing =>
  standing.isCode || standing.canCheck === true
    ? standing
    : { ...standing, newAccountGas: standing.newAccountGas + newPermitGas };

/** The refusal for an owner for whom executors may send nothing. */
export function refusedFor({ dealings, isCode }: Standing): ApiError {
  const code = refusalCodeOf(dealings);
  if (code === 'TOO_MANY_REVERTS') {
    const why = "transactions of this owner's orders reverted; it is served again once it has swapped by itself";
    return new ApiError(400, code, `from: ${why}`);
  }
  const why = isCode
    ? 'an account with code is served once it has swapped twice by itself'
    : 'an order over so many venues is for owners whose orders or own swaps were filled before, and none trades this amount alone; ask for less';
  return new ApiError(400, code, `from: ${why}`);
}

/**
 * Throws ApiError `UNPROVEN_ACCOUNT` when an order with so much gas would have to wait, because new accounts have burnt their gas of the
 * hour. Transactions in progress are not counted: they are mined before the order is signed.
 */
export async function refuseWhileSpent(
  { db, nowMs, newcomersGasPerHour: mostGas = NEWCOMERS_GAS_PER_HOUR }: SwapDeps,
  { dealings, isCode }: Standing,
  gas: bigint,
): Promise<void> {
  if (dealings.some(({ kind }) => kind !== 'revert')) return;
  const burnt = await readUnprovenReverts(db.knex, nowMs() - NEWCOMERS_WINDOW_MS);
  const full = newcomersFreeAt(burnt, gasLimitOf(gas, isCode), mostGas);
  if (full !== null) throw new ApiError(400, 'UNPROVEN_ACCOUNT', `from: ${newcomersMessage(full)}`);
}
