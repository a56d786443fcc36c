/** What executors risk for the owner of an order, as quotes foretell it. */
import { refusalCodeOf, type Standing } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import { readDealings } from '../../ledger/swaps/swap-wallets.js';
import { ApiError } from '../errors.js';
import type { SwapDeps } from './deps.js';

/** Of an account that has done nothing here yet. */
export const newcomer = ({ maxReverts, newAccountGas, newContractGas }: SwapDeps, isCode: boolean): Standing => ({
  dealings: [],
  isCode,
  maxReverts,
  newAccountGas: isCode ? newContractGas : newAccountGas,
});

/** By what the ledger knows of the owner. */
export async function standingOf(deps: SwapDeps, owner: Address, isCode: boolean): Promise<Standing> {
  return { ...newcomer(deps, isCode), dealings: await readDealings(deps.db.knex, owner) };
}

/** Of the same owner, whose order brings its approval. */
export const withPermit = ({ newPermitGas }: SwapDeps, standing: Standing): Standing =>
  standing.isCode ? standing : { ...standing, newAccountGas: standing.newAccountGas + newPermitGas };

/** Says beforehand what would become of an order that no executor may send. */
export function refusedFor({ dealings, isCode }: Standing): ApiError {
  const code = refusalCodeOf(dealings);
  if (code === 'TOO_MANY_REVERTS') {
    const why = "transactions of this owner's orders reverted; it is served again once it has swapped by itself";
    return new ApiError(400, code, `from: ${why}`);
  }
  const why = isCode
    ? 'an account with code is served once it has swapped twice by itself'
    : 'an order over several venues is for owners whose orders or own swaps were filled before, and none trades this amount alone; ask for less';
  return new ApiError(400, code, `from: ${why}`);
}
