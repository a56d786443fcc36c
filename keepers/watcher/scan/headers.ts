import { toSafeInt } from '../../../core/amounts.js';
import type { Hex } from '../../../core/types.js';
import type { ScannedBlock } from '../../../ledger/types.js';
import { parseBloom } from '../../chain/bloom.js';
import { headerHash } from '../../chain/header-hash.js';
import { RpcUnavailableError, toQuantity, type Rpc, type RpcRequest } from '../../chain/rpc.js';

/** Most requests in one round trip; providers refuse larger batches. */
export const BATCH_SIZE = 100;

/** A block header with what a scan needs of it. */
export interface Header extends ScannedBlock {
  /** The filter of all addresses and topics logged in the block. */
  bloom: Uint8Array;
  /** What the block's receipts hash to; null where the node does not say. */
  receiptsRoot: Hex | null;
  txHashes: Hex[];
  /** The answer as it came, for its hash. */
  answer: Readonly<Record<string, unknown>>;
}

interface RpcBlock {
  number: string;
  hash: string;
  parentHash: string;
  timestamp: string;
  logsBloom: string;
  receiptsRoot?: string;
  transactions: string[];
}

/** Reads a block answer; null when the node does not have the block. */
export function parseHeader(value: unknown): Header | null {
  if (value === null || value === undefined) return null;
  const block = value as RpcBlock;
  return {
    number: toSafeInt(BigInt(block.number)),
    hash: block.hash.toLowerCase() as Hex,
    parentHash: block.parentHash.toLowerCase() as Hex,
    timestampSec: toSafeInt(BigInt(block.timestamp)),
    bloom: parseBloom(block.logsBloom),
    receiptsRoot: (block.receiptsRoot?.toLowerCase() ?? null) as Hex | null,
    txHashes: block.transactions.map((hash) => hash.toLowerCase() as Hex),
    answer: value as Readonly<Record<string, unknown>>,
  };
}

/** True when the header's fields are those that its hash was made of, so that whoever names the hash has said all of them. */
export function hashesToItself(header: Header): boolean {
  try {
    return headerHash(header.answer) === header.hash;
  } catch {
    return false;
  }
}

/** What a scan uses of a header, as one text, for the comparison of two endpoints' answers. */
export function headerKey({ number, hash, parentHash, timestampSec, receiptsRoot, answer }: Header): string {
  return [number, hash, parentHash, timestampSec, receiptsRoot, String(answer['logsBloom']).toLowerCase()].join();
}

/** The newest block of the node. */
export async function readHead(rpc: Rpc): Promise<Header> {
  const head = parseHeader(await rpc.call('eth_getBlockByNumber', ['latest', false]));
  if (head === null) throw new RpcUnavailableError(`${rpc.name} has no latest block`);
  return head;
}

/** The block that the node has at this height now, or null when it has none (an older head is no mismatch). */
export async function readBlock(rpc: Rpc, number: number): Promise<Header | null> {
  return parseHeader(await rpc.call('eth_getBlockByNumber', [toQuantity(number), false]));
}

/** The request for the block at a height. */
export function headerRequest(number: number): RpcRequest {
  return { method: 'eth_getBlockByNumber', params: [toQuantity(number), false] };
}

/** The blocks at these heights. Throws RpcUnavailableError when the node lacks one of them. */
export async function readHeaders(rpc: Rpc, numbers: readonly number[]): Promise<Header[]> {
  const headers: Header[] = [];
  for (let at = 0; at < numbers.length; at += BATCH_SIZE) {
    const part = numbers.slice(at, at + BATCH_SIZE);
    const answers = await rpc.batch(part.map(headerRequest));
    headers.push(...answers.map((value, i) => requireHeader(rpc, parseHeader(value), part[i]!)));
  }
  return headers;
}

/** Throws RpcUnavailableError unless the node has the block that was asked for. */
export function requireHeader(rpc: Rpc, header: Header | null, number: number): Header {
  if (header === null || header.number !== number) throw new RpcUnavailableError(`${rpc.name} lacks block ${number}`);
  return header;
}
