import type { Address, Hex } from '../../core/types.js';
import type { ScannedBlock } from '../../ledger/types.js';
import { decodeLog, parseRpcLog, type ChainEvent, type RawLog } from '../chain/logs.js';
import { toQuantity, RpcUnavailableError, type Rpc } from '../chain/rpc.js';
import { checkAgainstBlooms } from './cross-check.js';
import { parseHeader, readHeaders, requireHeader } from './headers.js';
import type { KnownBlock } from './canonical.js';

export { readBlock, readHead } from './headers.js';

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

/**
 * Reads the headers and our contracts' events of blocks `from..to`, and proves that they belong together: each header names its
 * predecessor, the first one names `parent`, every log names its header's hash and agrees with its filter, and the last header is
 * read again after the logs, so that logs of two histories can't be mixed. Throws `CanonicalMismatchError` when `parent` is gone,
 * `RpcUnavailableError` when the answers do not fit together (a reorg under way or a faulty node).
 */
export async function scanRange(
  rpc: Rpc,
  range: { from: number; to: number; parent: KnownBlock | null; addresses: readonly Address[] },
): Promise<Scan> {
  const numbers = Array.from({ length: range.to - range.from + 1 }, (_, i) => range.from + i);
  const headers = await readHeaders(rpc, numbers);
  checkLinks(rpc, headers, range.parent);

  const last = headers[headers.length - 1];
  if (last === undefined) return { blocks: [], events: [] };
  const [answered, lastAgain] = await rpc.batch([
    {
      method: 'eth_getLogs',
      params: [{ fromBlock: toQuantity(range.from), toBlock: toQuantity(range.to), address: range.addresses }],
    },
    { method: 'eth_getBlockByNumber', params: [toQuantity(range.to), false] },
  ]);
  if (requireHeader(rpc, parseHeader(lastAgain), range.to).hash !== last.hash) {
    throw new RpcUnavailableError(`block ${range.to} changed during the scan`);
  }
  const logs = (answered as unknown[]).map(parseRpcLog);
  await checkAgainstBlooms(rpc, headers, logs, range.addresses);
  return { blocks: headers.map(scannedBlock), events: collectEvents(rpc, headers, logs) };
}

function scannedBlock({ number, hash, parentHash, timestampSec }: ScannedBlock): ScannedBlock {
  return { number, hash, parentHash, timestampSec };
}

function checkLinks(rpc: Rpc, blocks: readonly ScannedBlock[], parent: KnownBlock | null): void {
  let previous: KnownBlock | null = parent;
  for (const block of blocks) {
    if (previous !== null && block.parentHash !== previous.hash) {
      if (previous === parent) throw new CanonicalMismatchError(previous.number, previous.hash, block.parentHash);
      throw new RpcUnavailableError(`${rpc.name} answered blocks of two histories at ${block.number}`);
    }
    previous = block;
  }
}

function collectEvents(rpc: Rpc, blocks: readonly ScannedBlock[], logs: readonly RawLog[]): SeenEvent[] {
  const hashes = new Map(blocks.map((block) => [block.number, block.hash]));
  const events: SeenEvent[] = [];
  for (const log of logs) {
    if (hashes.get(log.blockNumber) !== log.blockHash) {
      throw new RpcUnavailableError(`${rpc.name} answered a log of another history at ${log.blockNumber}`);
    }
    const event = decodeLog(log);
    if (event !== null) events.push({ log, event });
  }
  return events.sort((a, b) => a.log.blockNumber - b.log.blockNumber || a.log.logIndex - b.log.logIndex);
}
