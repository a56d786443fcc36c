import type { Hex } from '../../../core/types.js';
import { RpcContradictionError, type Rpc } from '../../chain/rpc.js';
import type { RpcPool } from '../../chain/pool.js';
import { readBlock } from './headers.js';

/** A block as the ledger knows it. */
export interface KnownBlock {
  number: number;
  hash: Hex;
}

/**
 * Asks every configured endpoint for the block at a height. Returns the hash that stands there instead of the known one when a
 * majority of all endpoints answers another hash, the most frequent one of those answered by then; null otherwise. An endpoint that
 * fails or does not have the block says nothing.
 */
export async function confirmMismatch(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<Hex | null> {
  const { others } = await poll(endpoints, known);
  if (!isMajority(others.length, endpoints)) return null;
  const counts = new Map<Hex, number>();
  for (const hash of others) counts.set(hash, (counts.get(hash) ?? 0) + 1);
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}

/** Whether a majority of all endpoints has this very block. */
export async function isConfirmed(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<boolean> {
  return (await isOnChain(endpoints, known)) === true;
}

/** True when a majority of all endpoints has this very block, false when a majority has others at its height, null when neither. */
export async function isOnChain(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<boolean | null> {
  const { same, others } = await poll(endpoints, known);
  if (isMajority(same, endpoints)) return true;
  return isMajority(others.length, endpoints) ? false : null;
}

const isMajority = (count: number, endpoints: RpcPool['endpoints']): boolean => 2 * count > endpoints.length;

/**
 * How many endpoints have the known block, and the other hashes that stand at its height. Ends as soon as a majority has answered one or
 * the other: an endpoint that hangs must not hold up what the rest have decided.
 */
async function poll(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<{ same: number; others: Hex[] }> {
  const decided = Promise.withResolvers<void>();
  const others: Hex[] = [];
  let same = 0;
  const asked = endpoints.map(async (rpc) => {
    const block = await readBlock(rpc, known.number).catch(() => null);
    if (block === null) return;
    if (block.hash === known.hash) same += 1;
    else others.push(block.hash);
    if (isMajority(same, endpoints) || isMajority(others.length, endpoints)) decided.resolve();
  });
  await Promise.race([Promise.all(asked), decided.promise]);
  // A copy, so that later answers do not change the decision.
  return { same, others: [...others] };
}

/** Error for an endpoint that reports another history than the majority. The pool then goes on with another one. */
export function minorityHistory(rpc: Rpc, known: KnownBlock): RpcContradictionError {
  return new RpcContradictionError(
    `${rpc.name} has another block ${known.number} than the ledger, and no majority agrees with it`,
    rpc,
  );
}
