import type { RpcPool } from './pool.js';
import { RpcContradictionError, type Rpc, type Vote } from './rpc.js';
import type { Address } from '../../core/types.js';
import { bytesOf, onOne, type EthReader } from '../../liquidity/eth.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';

/** A client of one endpoint or of several. */
export type Endpoints = Rpc & Partial<Pick<RpcPool, 'endpoints' | 'survey' | 'attempt'>>;

/**
 * Asks each endpoint behind a client by itself. Whoever is silent, slow or answers an error has no vote; the last error is thrown when
 * nobody has one. `first` is what the client answered already: it is the only vote of a client that has one endpoint.
 */
export async function surveyOf<T>(rpc: Endpoints, ask: (one: Rpc) => Promise<T>, first?: T): Promise<Vote<T>[]> {
  if (rpc.survey !== undefined && (rpc.endpoints ?? []).length > 1) return rpc.survey(ask);
  return [{ endpoint: rpc, answer: first ?? (await ask(rpc)), convict: () => undefined }];
}

/**
 * What an endpoint answers and another one confirms: the answer in use if nobody else has a vote, or if one of the others answers the
 * same; else what most of them answer; null when none has a majority.
 */
export function confirmed<T>(votes: readonly Vote<T>[], nameOf: (answer: T) => string): T | null {
  const names = new Map<string, Vote<T>[]>();
  for (const vote of votes) names.set(nameOf(vote.answer), [...(names.get(nameOf(vote.answer)) ?? []), vote]);
  const most = [...names.values()].find((same) => 2 * same.length > votes.length);
  return most?.[0]?.answer ?? null;
}

/** The curve book and the custodian ask alike. */
const POSTER_LIST = Custodian__factory.createInterface();

/**
 * Whether a contract takes posts, or settlements, of a key at the newest block. A no is believed of more than half of the endpoints that
 * answer, for one that lags may not know yet that the key was added. Throws RpcContradictionError when there is no such majority.
 */
export async function mayPost(rpc: Rpc, contract: Address, key: Address): Promise<boolean> {
  const ask = async (one: EthReader): Promise<boolean> => {
    const call = { to: contract, data: POSTER_LIST.encodeFunctionData('isPoster', [key]) };
    const answer = BigInt(bytesOf(await one.call('eth_call', [call, 'latest'])));
    if (answer > 1n) throw new RangeError('neither yes nor no');
    return answer === 1n;
  };
  const first = await onOne(rpc, ask);
  if (first) return true;
  const said = confirmed(await surveyOf(rpc, ask, first), String);
  if (said === null) throw new RpcContradictionError(`endpoints differ on whether ${contract} takes posts of ${key}`);
  return said;
}
