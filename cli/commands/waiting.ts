/** Withdrawals that wait for their settlement, as `curvebook status` names them. */
import { neededGas } from '../../core/claim-state.js';
import { requestsShort } from '../../core/settle-gas.js';
import type { Address, Token } from '../../core/types.js';
import { readPendingClaims } from '../../ledger/chain/claims.js';
import type { Queryable } from '../../ledger/types.js';

const NAMED = 10;

/** One of them: what its maker has paid towards its settlement, in gas, and how many more requests would have it settled by itself. */
interface WaitingWithdrawal {
  maker: Address;
  token: Address;
  paidGas: bigint;
  neededGas: bigint;
  requestsShort: number;
}

/** Those that wait longest, with a balance and then without, ten at most. */
export async function readWaiting(q: Queryable): Promise<WaitingWithdrawal[]> {
  const funded = await readPendingClaims(q, { funded: true, limit: NAMED });
  const all = [...funded, ...(await readPendingClaims(q, { funded: false, limit: NAMED }))];
  return all.slice(0, NAMED).map((claim) => {
    const { maker, token, paidGas } = claim;
    const needed = neededGas(claim);
    return { maker, token, paidGas, neededGas: needed, requestsShort: requestsShort(needed, paidGas) };
  });
}

/** Why one of them is not settled yet. */
export function describeWaiting(one: WaitingWithdrawal, tokens: readonly Pick<Token, 'address' | 'symbol'>[]): string {
  const symbol = tokens.find(({ address }) => address === one.token)?.symbol ?? one.token;
  const more = `${one.requestsShort} more ${one.requestsShort === 1 ? 'request' : 'requests'}`;
  const why =
    one.requestsShort > 0
      ? `paid ${one.paidGas} of ${one.neededGas} gas, rides along with another settlement or waits for ${more}`
      : 'paid for, waits for the settler, the interval of its claim, or curves that can still take its balance';
  return `withdrawal of ${one.maker} in ${symbol}: ${why}`;
}
