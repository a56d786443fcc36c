import type { RpcPool } from './pool.js';
import { RpcContradictionError, type Rpc, type Vote } from './rpc.js';
import type { Address } from '../../core/types.js';
import { bytesOf, majorityOf, onOne, type EthReader } from '../../liquidity/eth.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';

/** A client of one endpoint or of several. */
export type Endpoints = Rpc & Partial<Pick<RpcPool, 'endpoints' | 'survey' | 'attempt'>>;

/**
 * Asks each endpoint of a client separately, also paused ones when the others are no majority, so that an endpoint that made the others
 * fail can't decide alone. A silent or slow endpoint, or one that answers an error, has no vote; the last error is thrown when there is no
 * vote. `first` is the client's answer so far: with one endpoint it is the only vote. With `isPatient` a majority is waited for, as long as
 * requests may take; else a second from the first answer on.
 */
export async function surveyOf<T>(
  rpc: Endpoints,
  ask: (one: Rpc) => Promise<T>,
  first?: T,
  isPatient = false,
): Promise<Vote<T>[]> {
  const count = (rpc.endpoints ?? []).length;
  if (rpc.survey !== undefined && count > 1) return rpc.survey(ask, majorityOf(count), isPatient);
  return [{ endpoint: rpc, answer: first ?? (await ask(rpc)), convict: () => undefined }];
}

/**
 * The confirmed answer: the first one if there is no other vote, or if another endpoint answers the same; else the answer of a majority;
 * null without one.
 */
export function confirmed<T>(votes: readonly Vote<T>[], nameOf: (answer: T) => string): T | null {
  const names = new Map<string, Vote<T>[]>();
  for (const vote of votes) names.set(nameOf(vote.answer), [...(names.get(nameOf(vote.answer)) ?? []), vote]);
  const most = [...names.values()].find((same) => 2 * same.length > votes.length);
  return most?.[0]?.answer ?? null;
}

/** The curve book and the custodian have the same function. */
const POSTER_LIST = Custodian__factory.createInterface();

/**
 * Whether a contract accepts posts, or settlements, of a key at the newest block. A no needs more than half of the endpoints that answer,
 * since a lagging one may not have seen that the key was added. A yes is believed of one endpoint, for a keeper that asks about its own key: the
 * contract itself refuses it else. Where a lying yes would let something else in, `isYesConfirmed` asks for such a majority, too, and waits for a
 * majority of all as long as requests may take. Throws RpcContradictionError when there is no such majority.
 */
export async function mayPost(
  rpc: Rpc,
  contract: Address,
  key: Address,
  { isYesConfirmed = false }: { isYesConfirmed?: boolean } = {},
): Promise<boolean> {
  const ask = async (one: EthReader): Promise<boolean> => {
    const call = { to: contract, data: POSTER_LIST.encodeFunctionData('isPoster', [key]) };
    const answer = BigInt(bytesOf(await one.call('eth_call', [call, 'latest'])));
    if (answer > 1n) throw new RangeError('neither yes nor no');
    return answer === 1n;
  };
  const first = await onOne(rpc, ask);
  if (first && !isYesConfirmed) return true;
  const said = confirmed(await surveyOf(rpc, ask, first, isYesConfirmed), String);
  if (said === null) throw new RpcContradictionError(`endpoints differ on whether ${contract} takes posts of ${key}`);
  return said;
}
