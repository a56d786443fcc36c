import type { Address, Hex } from '../../../core/types.js';
import { bloomBits, bloomFill, bloomHas } from '../../chain/bloom.js';
import { EVENT_TOPICS, type RawLog } from '../../chain/logs.js';
import { RpcContradictionError, RpcUnavailableError, type Rpc } from '../../chain/rpc.js';
import type { Header } from './headers.js';

/**
 * Which blocks of a scan are proven from their receipts: those that hold one of our events or are in doubt, or all whose filter does not
 * exclude our contracts.
 */
export type ProveBlocks = 'events' | 'all';

/**
 * How many blocks without our events may be read in vain, at most, because their filter names one of them by chance. A fuller filter
 * says nothing any more: it names everything.
 */
const MOST_FALSE_ALARMS = 0.05;

/** Logs by the block that they are in. */
export type LogsByBlock = ReadonlyMap<number, readonly RawLog[]>;

/**
 * Sorts an endpoint's answer by block. Throws RpcContradictionError for a log of an address or a block that was not asked for, or one that
 * its block's filter excludes; RpcUnavailableError for one of another history than the headers.
 */
export function sortLogs(
  rpc: Rpc,
  headers: readonly Header[],
  logs: readonly RawLog[],
  addresses: readonly Address[],
): LogsByBlock {
  const byNumber = new Map(headers.map((header) => [header.number, header]));
  const wanted = new Set<string>(addresses);
  const sorted = new Map<number, RawLog[]>();
  for (const log of logs) {
    const header = byNumber.get(log.blockNumber);
    if (header === undefined || !wanted.has(log.address))
      throw new RpcContradictionError(
        `${rpc.name} answered a log of block ${log.blockNumber} that was not asked for`,
        rpc,
      );
    if (log.blockHash !== header.hash)
      throw new RpcUnavailableError(`${rpc.name} answered a log of another history at ${log.blockNumber}`);
    if (!names(header, log.address) || !log.topics.every((topic) => names(header, topic)))
      throw new RpcContradictionError(`${rpc.name} answered a log that block ${header.number} excludes`, rpc);
    const own = sorted.get(log.blockNumber);
    if (own === undefined) sorted.set(log.blockNumber, [log]);
    else own.push(log);
  }
  return sorted;
}

/**
 * Whether a block must be proven from its receipts. `second` is what another endpoint answered; null when none did. The filter of a
 * header names all addresses and topics that its block logged, with false alarms but without omissions. Where the second endpoint
 * answered no log either, a filter that names one of our events is believed only while it is not so full that chance explains it.
 */
export function isInDoubt(
  header: Header,
  first: LogsByBlock,
  second: LogsByBlock | null,
  { addresses, prove }: { addresses: readonly Address[]; prove: ProveBlocks },
): boolean {
  if (first.has(header.number) || second?.has(header.number) === true) return true;
  const named = addresses.filter((address) => names(header, address));
  if (named.length === 0) return false;
  if (prove === 'all') return true;
  if (!EVENT_TOPICS.some((topic) => names(header, topic))) return false;
  return second === null || falseAlarms(header, addresses.length) <= MOST_FALSE_ALARMS;
}

/** How many pairs of an address and an event of ours the filter names by chance, on average, given how full it is. */
function falseAlarms(header: Header, addresses: number): number {
  return addresses * EVENT_TOPICS.length * bloomFill(header.bloom) ** 6;
}

/** A log without its transaction, whose hash the receipts don't prove. */
export function logKey({ logIndex, address, topics, data }: RawLog): string {
  return `${logIndex}:${address}:${topics.join()}:${data}`;
}

export function sameLogs(one: readonly RawLog[] | undefined, other: readonly RawLog[]): boolean {
  return (one ?? []).map(logKey).sort().join('|') === other.map(logKey).sort().join('|');
}

const names = ({ bloom }: Header, value: Hex): boolean => bloomHas(bloom, bitsOf(value));

const known = new Map<Hex, number[]>();

/** Our addresses and topics are the same few in every block; makers' and tokens' are not kept. */
function bitsOf(value: Hex): readonly number[] {
  const found = known.get(value);
  if (found !== undefined) return found;
  const bits = bloomBits(value);
  if (known.size < 1_000) known.set(value, bits);
  return bits;
}
