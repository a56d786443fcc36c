import type { Address, Hex } from '../../../core/types.js';
import type { ScannedBlock } from '../../../ledger/types.js';
import { decodeLog, parseRpcLog, type ChainEvent, type RawLog } from '../../chain/logs.js';
import { RpcContradictionError, RpcUnavailableError, toQuantity, type Rpc } from '../../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { isInDoubt, logKey, sameLogs, sortLogs, type LogsByBlock } from './cross-check.js';
import { headerRequest, parseHeader, readHeaders, requireHeader, type Header } from './headers.js';
import { NoMajorityError, confirmBlock, lowerEnd, majorityOf } from './majority.js';
import { aloneContext, checkHeaders, type ScanContext } from './proof.js';
import { readReceipts, type ReceiptsAnswer } from './receipts.js';

export { readBlock } from './headers.js';

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

interface ScanRange {
  from: number;
  to: number;
  /** The block before `from` as the ledger has it; null to take the chain's word. */
  parent: KnownBlock | null;
  addresses: readonly Address[];
}

/**
 * Reads the headers and our contracts' events of blocks `from..to` from one endpoint, and proves them with the help of the others: each
 * header is what its hash was made of and names its predecessor, the first one names `parent`, and a majority of the endpoints names the
 * hash of the last. The logs are asked of a second endpoint, too. Each block with a log of either, or whose filter gives reason to doubt
 * that there is none, is read from its receipts, which must hash to the root in the header; events come from there alone. So one endpoint
 * can neither add, change nor omit an event, nor mix two histories, nor choose another one.
 *
 * Returns fewer blocks, or none, where the majority is not that far yet, and fewer where endpoints contradict each other beyond what a
 * majority has. Throws `CanonicalMismatchError` when `parent` is gone, `RpcContradictionError` when the endpoint's answers can't be true,
 * `RpcUnavailableError` when they do not fit together (a reorganisation under way), `NoMajorityError` when the endpoints don't decide it.
 */
export async function scanRange(rpc: Rpc, range: ScanRange, context: ScanContext = aloneContext()): Promise<Scan> {
  const headers = await readHeaders(rpc, heightsIn(range));
  const last = headers.at(-1);
  if (last === undefined) return { blocks: [], events: [] };
  checkLinks(rpc, headers, range.parent);

  // At once, for each is a round trip.
  const preferred = context.witnesses.find(
    (one) => !context.silence.isSilent(one) && !context.logSilence.isSilent(one),
  );
  const [answered, confirmation, early] = await Promise.all([
    readLogs(rpc, range, last),
    confirmBlock(rpc, last, context.witnesses, context.silence),
    preferred === undefined ? null : askLogs(preferred, range, context),
  ]);
  const lower = lowerEnd(confirmation, range.from);
  if (lower !== null) return scanRange(rpc, { ...range, to: lower }, context);
  await checkHeaders(rpc, headers, context);
  if (confirmation.kind === 'alone') for (const header of headers) context.warn('unconfirmed', header);

  const first = sortLogs(rpc, headers, answered, range.addresses);
  const confirming = confirmation.kind === 'confirmed' ? confirmation.by : [];
  const second = await secondOpinion(headers, range, context, { confirming, early: { rpc: preferred, logs: early } });
  const doubted = headers.filter((header) =>
    isInDoubt(header, first, second?.logs ?? null, { addresses: range.addresses, prove: context.prove }),
  );
  const proven = await proveBlocks(rpc, doubted, { addresses: range.addresses, answered: first }, context);
  compare(rpc, first, proven, context);
  if (second !== null) compare(second.rpc, second.logs, proven, context);
  if (second !== null) await checkTransactions(rpc, proven, second, context);
  return { blocks: headers.map(scannedBlock), events: decodeAll(proven) };
}

/**
 * The headers of blocks `from..to` as one endpoint has them, proven as those of a scan: a majority of all endpoints names the last one. Fewer, or
 * none, where the majority is not that far. Of two endpoints, one is never believed alone: what follows from it is not read again. Throws as
 * `scanRange`.
 */
export async function confirmedHeaders(
  rpc: Rpc,
  { from, to }: { from: number; to: number },
  context: ScanContext,
): Promise<Header[]> {
  const headers = await readHeaders(rpc, heightsIn({ from, to }));
  const last = headers.at(-1);
  if (last === undefined) return [];
  checkLinks(rpc, headers, null);
  const confirmation = await confirmBlock(rpc, last, context.witnesses, context.silence);
  const lower = lowerEnd(confirmation, from);
  if (lower !== null) return confirmedHeaders(rpc, { from, to: lower }, context);
  if (confirmation.kind === 'alone')
    throw new NoMajorityError(`only ${rpc.name} of two endpoints answers for block ${last.number}`);
  await checkHeaders(rpc, headers, context);
  return headers;
}

const heightsIn = ({ from, to }: { from: number; to: number }): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);

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

/** The last header is read again with the logs: an answer without a log does not say of which history it is. */
async function readLogs(rpc: Rpc, range: ScanRange, last: Header): Promise<RawLog[]> {
  const [logs, lastAgain] = await rpc.batch([logsRequest(range), headerRequest(range.to)]);
  if (requireHeader(rpc, parseHeader(lastAgain), range.to).hash !== last.hash)
    throw new RpcUnavailableError(`block ${range.to} changed during the scan`);
  return (logs as unknown[]).map(parseRpcLog);
}

function logsRequest({ from, to, addresses }: ScanRange): { method: string; params: unknown[] } {
  const filter = { fromBlock: toQuantity(from), toBlock: toQuantity(to), address: addresses };
  return { method: 'eth_getLogs', params: [filter] };
}

interface Opinion {
  rpc: Rpc;
  logs: LogsByBlock;
}

/** The logs as one of the endpoints has them that have the same last block; null when none of them answers. */
async function secondOpinion(
  headers: readonly Header[],
  range: ScanRange,
  context: ScanContext,
  said: { confirming: readonly Rpc[]; early: { rpc: Rpc | undefined; logs: RawLog[] | null } },
): Promise<Opinion | null> {
  const { confirming, early } = said;
  // One that has just been silent for the same question is not asked again.
  const inOrder = context.witnesses.filter(
    (one) => confirming.includes(one) && (one === early.rpc || !context.logSilence.isSilent(one)),
  );
  for (const one of inOrder) {
    const logs = one === early.rpc ? early.logs : await askLogs(one, range, context);
    if (logs === null) continue;
    try {
      return { rpc: one, logs: sortLogs(one, headers, logs, range.addresses) };
    } catch (error) {
      context.convict(one, (error as Error).message);
    }
  }
  return null;
}

/** Null where it does not answer: that it is asked must not stop the scan, nor hold up each of them. */
async function askLogs(rpc: Rpc, range: ScanRange, { logSilence }: ScanContext): Promise<RawLog[] | null> {
  try {
    const logs = ((await rpc.call('eth_getLogs', logsRequest(range).params)) as unknown[]).map(parseRpcLog);
    logSilence.note(rpc, true);
    return logs;
  } catch (error) {
    logSilence.note(rpc, !(error instanceof RpcUnavailableError));
    return null;
  }
}

/**
 * The logs of blocks by their receipts, which must hash to the root in the header: those of `rpc`, else those of the first endpoint whose do.
 * Where none do, a majority must name the same logs; a single endpoint must have answered the same logs (`answered`) without receipts.
 * Throws NoMajorityError, RpcContradictionError, RpcUnavailableError.
 */
async function proveBlocks(
  rpc: Rpc,
  headers: readonly Header[],
  range: { addresses: readonly Address[]; answered: LogsByBlock },
  context: ScanContext,
): Promise<Map<number, readonly RawLog[]>> {
  const proven = new Map<number, readonly RawLog[]>();
  const said = new Map<number, { rpc: Rpc; logs: readonly RawLog[] }[]>();
  let open = headers;
  for (const one of [rpc, ...context.witnesses]) {
    if (open.length === 0) break;
    const answers = await readReceipts(one, open, range.addresses).catch((error: unknown) => {
      if (one === rpc) throw error;
      return null;
    });
    if (answers === null) continue;
    open = take(one, open, answers, { proven, said, context });
  }
  for (const header of open) {
    proven.set(header.number, agreedLogs(rpc, header, said.get(header.number) ?? [], range.answered, context));
    context.warn('unreadableReceipts', header);
  }
  context.counts.proven += headers.length - open.length;
  return proven;
}

/** Keeps what an endpoint proved. Returns the blocks that it could not prove. */
function take(
  rpc: Rpc,
  headers: readonly Header[],
  answers: readonly ReceiptsAnswer[],
  found: {
    proven: Map<number, readonly RawLog[]>;
    said: Map<number, { rpc: Rpc; logs: readonly RawLog[] }[]>;
    context: ScanContext;
  },
): Header[] {
  return headers.filter((header, i) => {
    const { isProven, logs } = answers[i]!;
    const before = found.said.get(header.number) ?? [];
    if (!isProven) {
      found.said.set(header.number, [...before, { rpc, logs }]);
      return true;
    }
    found.proven.set(header.number, logs);
    for (const liar of before) {
      found.context.convict(
        liar.rpc,
        `${liar.rpc.name} answered receipts of block ${header.number} that do not hash to the root in its header`,
      );
    }
    return false;
  });
}

function agreedLogs(
  rpc: Rpc,
  header: Header,
  said: readonly { logs: readonly RawLog[] }[],
  answered: LogsByBlock,
  { witnesses }: ScanContext,
): readonly RawLog[] {
  const total = witnesses.length + 1;
  const needed = majorityOf(total);
  const groups = new Map<string, (readonly RawLog[])[]>();
  for (const { logs } of said) {
    const key = logs.map(logKey).join('|');
    groups.set(key, [...(groups.get(key) ?? []), logs]);
  }
  const agreed = [...groups.values()].find((group) => group.length >= needed)?.[0];
  if (agreed === undefined)
    throw new NoMajorityError(
      `receipts of block ${header.number} do not hash to the root in its header, and no ${needed} of ${total} endpoints agree on its logs`,
    );
  if (total === 1 && !sameLogs(answered.get(header.number), agreed))
    throw new RpcContradictionError(
      `${rpc.name} answered ${answered.get(header.number)?.length ?? 0} logs of block ${header.number}, its receipts hold ${agreed.length}`,
      rpc,
    );
  return agreed;
}

/** The truth is known; an endpoint that answered other logs is not to be asked next. */
function compare(
  rpc: Rpc,
  answered: LogsByBlock,
  proven: ReadonlyMap<number, readonly RawLog[]>,
  context: ScanContext,
): void {
  const wrong = [...proven].find(([number, logs]) => !sameLogs(answered.get(number), logs));
  if (wrong === undefined) return;
  const [number, logs] = wrong;
  context.counts.wrongLogs += 1;
  const problem = `answered ${answered.get(number)?.length ?? 0} logs of block ${number}, its receipts hold ${logs.length}`;
  context.convict(rpc, `${rpc.name} ${problem}`);
}

/**
 * Receipts don't prove the hashes of their transactions. Where the second endpoint names another one, the majority of all decides. Throws
 * RpcContradictionError when it is against the endpoint that is read, NoMajorityError when there is none.
 */
async function checkTransactions(
  rpc: Rpc,
  proven: ReadonlyMap<number, readonly RawLog[]>,
  second: Opinion,
  context: ScanContext,
): Promise<void> {
  const needed = majorityOf(context.witnesses.length + 1);
  for (const [number, logs] of proven) {
    const other = second.logs.get(number) ?? [];
    if (!otherTransactions(logs, other)) continue;
    const addresses = [...new Set(logs.map(({ address }) => address))];
    const rest = context.witnesses.filter((one) => one !== second.rpc);
    const answers = await Promise.all(
      rest.map((one) => askLogs(one, { from: number, to: number, parent: null, addresses }, context)),
    );
    const said = answers.filter((answer) => answer !== null && sameLogs(answer, logs)) as RawLog[][];
    const agree = (ours: readonly RawLog[]): number => 1 + said.filter((one) => !otherTransactions(ours, one)).length;
    const problem = `names other transactions of block ${number} than the majority`;
    if (agree(other) >= needed) throw new RpcContradictionError(`${rpc.name} ${problem}`, rpc);
    if (agree(logs) < needed)
      throw new NoMajorityError(`${rpc.name} and ${second.rpc.name} name other transactions of block ${number}`);
    context.convict(second.rpc, `${second.rpc.name} ${problem}`);
  }
}

/** True when both have the same log in different transactions. */
function otherTransactions(one: readonly RawLog[], other: readonly RawLog[]): boolean {
  const hashes = new Map(other.map(({ logIndex, txHash }) => [logIndex, txHash]));
  return one.some(({ logIndex, txHash }) => (hashes.get(logIndex) ?? txHash) !== txHash);
}

function decodeAll(proven: ReadonlyMap<number, readonly RawLog[]>): SeenEvent[] {
  const events: SeenEvent[] = [];
  for (const logs of proven.values()) {
    for (const log of logs) {
      const event = decodeLog(log);
      if (event !== null) events.push({ log, event });
    }
  }
  return events.sort((a, b) => a.log.blockNumber - b.log.blockNumber || a.log.logIndex - b.log.logIndex);
}
