import type { Address, Hex } from '../../core/types.js';
import { bloomBits, bloomHas } from '../chain/bloom.js';
import { EVENT_TOPICS, parseRpcLog, type RawLog } from '../chain/logs.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../chain/rpc.js';
import { BATCH_SIZE, type Header } from './headers.js';

/**
 * Holds the logs that a node answered against its own headers. A header's filter names every address and topic that the block logged,
 * with false alarms but without omissions: a log that the filter excludes is a lie, and a block whose filter names one of our events
 * of which there is no log is read again from its receipts. Throws RpcUnavailableError when headers, logs and receipts disagree, so
 * that no event is ever skipped because an index of the node was behind.
 */
export async function checkAgainstBlooms(
  rpc: Rpc,
  headers: readonly Header[],
  logs: readonly RawLog[],
  addresses: readonly Address[],
): Promise<void> {
  const suspicious: Header[] = [];
  for (const header of headers) {
    const ours = logs.filter((log) => log.blockNumber === header.number);
    if (isSuspicious(rpc, header, ours, addresses)) suspicious.push(header);
  }
  for (const header of suspicious) await checkAgainstReceipts(rpc, header, logs, addresses);
}

function isSuspicious(rpc: Rpc, header: Header, ours: readonly RawLog[], addresses: readonly Address[]): boolean {
  const has = (value: Hex): boolean => bloomHas(header.bloom, bitsOf(value));
  for (const log of ours) {
    if (!has(log.address) || !log.topics.every(has)) {
      throw new RpcUnavailableError(`${rpc.name} answered a log that block ${header.number} excludes`);
    }
  }
  const seen = new Set(ours.map((log) => `${log.address}:${log.topics[0] ?? ''}`));
  return addresses
    .filter(has)
    .some((address) => EVENT_TOPICS.some((topic) => has(topic) && !seen.has(`${address}:${topic}`)));
}

async function checkAgainstReceipts(
  rpc: Rpc,
  header: Header,
  logs: readonly RawLog[],
  addresses: readonly Address[],
): Promise<void> {
  const receipts = await readReceipts(rpc, header);
  const wanted = new Set<string>(addresses);
  const logged = receipts.flatMap((receipt) => receipt.logs.map(parseRpcLog)).filter((log) => wanted.has(log.address));
  const answered = logs.filter((log) => log.blockNumber === header.number);
  const key = (log: RawLog): string => `${log.logIndex}:${log.txHash}:${log.topics.join()}:${log.data}`;
  if (logged.map(key).sort().join() !== answered.map(key).sort().join()) {
    throw new RpcUnavailableError(
      `${rpc.name} answered ${answered.length} logs of block ${header.number}, its receipts hold ${logged.length}`,
    );
  }
}

interface RpcReceipt {
  blockHash: string;
  logs: unknown[];
}

/** All receipts of a block: in one request where the node knows it, else one per transaction. */
async function readReceipts(rpc: Rpc, header: Header): Promise<RpcReceipt[]> {
  const receipts = ((await readBlockReceipts(rpc, header)) ??
    (await readOneByOne(rpc, header))) as (RpcReceipt | null)[];
  const foreign = receipts.some((receipt) => receipt?.blockHash.toLowerCase() !== header.hash);
  if (receipts.length !== header.txHashes.length || foreign) {
    throw new RpcUnavailableError(`${rpc.name} lacks receipts of block ${header.number}`);
  }
  return receipts as RpcReceipt[];
}

async function readBlockReceipts(rpc: Rpc, header: Header): Promise<unknown[] | null> {
  try {
    const answer = await rpc.call('eth_getBlockReceipts', [header.hash]);
    return Array.isArray(answer) ? answer : null;
  } catch (error) {
    if (error instanceof RpcResponseError) return null;
    throw error;
  }
}

async function readOneByOne(rpc: Rpc, header: Header): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (let at = 0; at < header.txHashes.length; at += BATCH_SIZE) {
    const part = header.txHashes.slice(at, at + BATCH_SIZE);
    answers.push(...(await rpc.batch(part.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })))));
  }
  return answers;
}

const known = new Map<Hex, number[]>();

/** Our addresses and topics are the same few in every block; makers' and tokens' are not kept. */
function bitsOf(value: Hex): readonly number[] {
  const found = known.get(value);
  if (found !== undefined) return found;
  const bits = bloomBits(value);
  if (known.size < 1_000) known.set(value, bits);
  return bits;
}
