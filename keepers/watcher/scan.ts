import { toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import type { ScannedBlock } from '../../ledger/types.js';
import { decodeLog, parseRpcLog, type ChainEvent, type RawLog } from '../chain/logs.js';
import { toQuantity, RpcUnavailableError, type Rpc } from '../chain/rpc.js';

/** The chain no longer has the block that the ledger was built on. Only an operator can decide what to do about it. */
export class CanonicalMismatchError extends Error {
  readonly blockNumber: number;
  constructor(blockNumber: number, expected: Hex, actual: Hex) {
    super(`block ${blockNumber} is ${actual} on the chain and ${expected} in the ledger`);
    this.name = 'CanonicalMismatchError';
    this.blockNumber = blockNumber;
  }
}

export interface SeenEvent {
  log: RawLog;
  event: ChainEvent;
}

/** Consecutive blocks and every event of ours in them, in chain order. */
export interface Scan {
  blocks: ScannedBlock[];
  events: SeenEvent[];
}

interface RpcBlock {
  number: string;
  hash: string;
  parentHash: string;
  timestamp: string;
}

/** Reads a block header answer; null when the node does not have the block. */
export function parseRpcBlock(value: unknown): ScannedBlock | null {
  if (value === null || value === undefined) return null;
  const block = value as RpcBlock;
  return {
    number: toSafeInt(BigInt(block.number)),
    hash: block.hash.toLowerCase() as Hex,
    parentHash: block.parentHash.toLowerCase() as Hex,
    timestampSec: toSafeInt(BigInt(block.timestamp)),
  };
}

/** The newest block of the node. */
export async function readHead(rpc: Rpc): Promise<ScannedBlock> {
  const head = parseRpcBlock(await rpc.call('eth_getBlockByNumber', ['latest', false]));
  if (head === null) throw new RpcUnavailableError(`${rpc.url} has no latest block`);
  return head;
}

/** The block that the node has at this height now, or null when it has none (an older head is no mismatch). */
export async function readBlock(rpc: Rpc, number: number): Promise<ScannedBlock | null> {
  return parseRpcBlock(await rpc.call('eth_getBlockByNumber', [toQuantity(number), false]));
}

/**
 * Reads the headers and our contracts' events of blocks `from..to`, and proves that they belong together: each header names its
 * predecessor, the first one names `parent`, every log names its header's hash, and the last header is read again after the logs,
 * so that logs of two histories can't be mixed. Throws `CanonicalMismatchError` when `parent` is gone, `RpcUnavailableError`
 * when the answers do not fit together (a reorg under way or a faulty node).
 */
export async function scanRange(
  rpc: Rpc,
  range: { from: number; to: number; parent: ScannedBlock | null; addresses: readonly Address[] },
): Promise<Scan> {
  const numbers = Array.from({ length: range.to - range.from + 1 }, (_, i) => range.from + i);
  const headers = await rpc.batch(
    numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toQuantity(number), false] })),
  );
  const blocks = headers.map((value, i) => requireBlock(rpc, parseRpcBlock(value), range.from + i));
  checkLinks(rpc, blocks, range.parent);

  const last = blocks[blocks.length - 1];
  if (last === undefined) return { blocks: [], events: [] };
  const [rawLogs, lastAgain] = await rpc.batch([
    {
      method: 'eth_getLogs',
      params: [{ fromBlock: toQuantity(range.from), toBlock: toQuantity(range.to), address: range.addresses }],
    },
    { method: 'eth_getBlockByNumber', params: [toQuantity(range.to), false] },
  ]);
  if (requireBlock(rpc, parseRpcBlock(lastAgain), range.to).hash !== last.hash) {
    throw new RpcUnavailableError(`block ${range.to} changed during the scan`);
  }
  return { blocks, events: collectEvents(rpc, blocks, rawLogs) };
}

function requireBlock(rpc: Rpc, block: ScannedBlock | null, number: number): ScannedBlock {
  if (block === null || block.number !== number) throw new RpcUnavailableError(`${rpc.url} lacks block ${number}`);
  return block;
}

function checkLinks(rpc: Rpc, blocks: readonly ScannedBlock[], parent: ScannedBlock | null): void {
  let previous = parent;
  for (const block of blocks) {
    if (previous !== null && block.parentHash !== previous.hash) {
      if (previous === parent) throw new CanonicalMismatchError(previous.number, previous.hash, block.parentHash);
      throw new RpcUnavailableError(`${rpc.url} answered blocks of two histories at ${block.number}`);
    }
    previous = block;
  }
}

function collectEvents(rpc: Rpc, blocks: readonly ScannedBlock[], rawLogs: unknown): SeenEvent[] {
  const hashes = new Map(blocks.map((block) => [block.number, block.hash]));
  const logs = (rawLogs as unknown[]).map(parseRpcLog);
  const events: SeenEvent[] = [];
  for (const log of logs) {
    if (hashes.get(log.blockNumber) !== log.blockHash) {
      throw new RpcUnavailableError(`${rpc.url} answered a log of another history at ${log.blockNumber}`);
    }
    const event = decodeLog(log);
    if (event !== null) events.push({ log, event });
  }
  return events.sort((a, b) => a.log.blockNumber - b.log.blockNumber || a.log.logIndex - b.log.logIndex);
}
