/** Finds why posts reverted, by the contract's errors, and which records would revert. */
import { encodePost, type PostRecord, type BlockRef } from '../../core/curve/post.js';
import type { Address, Hex } from '../../core/types.js';
import { chunks } from '../../ledger/db/columns.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import { confirmed, surveyOf } from '../chain/quorum.js';
import { parsedError } from '../chain/reverts.js';
import { RpcResponseError, RpcUnavailableError, revertData, toQuantity, type Rpc } from '../chain/rpc.js';
import { hashesToItself, parseHeader, type Header } from '../watcher/scan/headers.js';
import { wordOf } from '../../core/amounts.js';
import { keccakText } from '../../core/hash.js';

/** Records that are tried at the same time. */
const CONCURRENCY = 16;
/** Error that can't be determined: the node does not answer, or the call would not revert again. */
export const UNKNOWN = 'unknown';
/** Errors of a post that was mined too late, or after its block was lost: a newer post may land. */
export const OUT_OF_DATE: readonly string[] = ['StaleSeq', 'CurveExpired', 'DeadlineOutOfRange', 'OrphanedBlock'];

/** Name of the contract's error that a call of this data ends with at a block; null when it does not revert. */
async function errorOf(
  rpc: Rpc,
  call: { from: Address; to: Address; data: Hex },
  block: string,
): Promise<string | null> {
  try {
    await rpc.call('eth_call', [call, block]);
    return null;
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    const data = revertData(error.data);
    return (data === null ? null : parsedError(data)?.name) ?? UNKNOWN;
  }
}

/**
 * The error of each record that would revert at the newest block, by its place in the list, as most of the endpoints say: one that is wrong
 * must not stop posting. The node runs a call within its newest block, which does not know its own hash, so the records are tried with the
 * block before as the one they were cut from. Throws RpcUnavailableError when no endpoint has the ledger's newest block.
 */
export async function wouldRevert(
  rpc: Rpc,
  at: { from: Address; to: Address; head: BlockRef },
  records: readonly PostRecord[],
): Promise<ReadonlyMap<number, string>> {
  const block = { number: at.head.number - 1, hash: await parentHash(rpc, at.head) };
  const failing = new Map<number, string>();
  for (const part of chunks([...records.entries()], CONCURRENCY)) {
    await Promise.all(
      part.map(async ([i, record]) => {
        const call = { from: at.from, to: at.to, data: postCalldata(block, [record]) };
        const first = await errorOf(rpc, call, 'latest');
        if (first === null) return;
        const error = confirmed(await surveyOf(rpc, (one) => errorOf(one, call, 'latest'), first), String);
        if (error !== null) failing.set(i, error);
      }),
    );
  }
  return failing;
}

/** The parent of a block of the ledger: its header names it. Where headers can't be hashed, most of the endpoints must. */
async function parentHash(rpc: Rpc, { number, hash }: BlockRef): Promise<Hex> {
  const read = async (one: EthReader): Promise<Header> => {
    const header = parseHeader(await one.call('eth_getBlockByNumber', [toQuantity(number), false]));
    if (header?.hash === hash) return header;
    throw new RpcUnavailableError(`the endpoint does not have block ${number} of the ledger`);
  };
  const proven = await onOne(rpc, async (one) => {
    const header = await read(one);
    return hashesToItself(header) ? header : null;
  });
  const agreed = proven ?? confirmed(await surveyOf(rpc, read), (header) => header.parentHash);
  if (agreed === null) throw new RpcUnavailableError(`endpoints differ on the parent of block ${number}`);
  return agreed.parentHash;
}

const POST = keccakText('post(bytes)').slice(0, 10);
const POST_BATCH = keccakText('postBatch(bytes)').slice(0, 10);

/** The call that publishes the records: `post` for one, which reverts when it is stale, `postBatch` for several. */
export function postCalldata(block: BlockRef, records: readonly PostRecord[]): Hex {
  const payload = encodePost(block, records).slice(2);
  const padded = payload.padEnd(Math.ceil(payload.length / 64) * 64, '0');
  return `${records.length === 1 ? POST : POST_BATCH}${wordOf(32n)}${wordOf(BigInt(payload.length / 2))}${padded}` as Hex;
}
