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
 * majority of all endpoints answers another hash, the most frequent one of them; null otherwise. An endpoint that fails or does
 * not have the block says nothing.
 */
export async function confirmMismatch(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<Hex | null> {
  const answers = await Promise.all(endpoints.map((rpc) => readBlock(rpc, known.number).catch(() => null)));
  const others = new Map<Hex, number>();
  for (const block of answers) {
    if (block !== null && block.hash !== known.hash) others.set(block.hash, (others.get(block.hash) ?? 0) + 1);
  }
  const differing = [...others.values()].reduce((sum, count) => sum + count, 0);
  if (2 * differing <= endpoints.length) return null;
  return [...others].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}

/** Whether a majority of all endpoints has this very block. */
export async function isConfirmed(endpoints: RpcPool['endpoints'], known: KnownBlock): Promise<boolean> {
  const answers = await Promise.all(endpoints.map((rpc) => readBlock(rpc, known.number).catch(() => null)));
  return 2 * answers.filter((block) => block?.hash === known.hash).length > endpoints.length;
}

/** Error for an endpoint that reports another history than the majority. The pool then goes on with another one. */
export function minorityHistory(rpc: Rpc, known: KnownBlock): RpcContradictionError {
  return new RpcContradictionError(
    `${rpc.name} has another block ${known.number} than the ledger, and no majority agrees with it`,
    rpc,
  );
}
