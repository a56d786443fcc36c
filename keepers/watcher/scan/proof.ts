import type { Logger } from 'pino';
import type { RpcPool } from '../../chain/pool.js';
import { RpcContradictionError, type Rpc } from '../../chain/rpc.js';
import type { ProveBlocks } from './cross-check.js';
import { hashesToItself, headerKey, readHeaders, type Header } from './headers.js';
import { NoMajorityError, createSilence, majorityOf, type Silence } from './majority.js';

/** How blocks were proven since the start. */
export interface ProofCounts {
  /** Proven from their receipts. */
  proven: number;
  /** Accepted from one endpoint, because the only other one was silent. */
  unconfirmed: number;
  /** Whose header does not hash to its hash with any endpoint: of a fork that this version does not know. */
  unreadableHeaders: number;
  /** Whose receipts do not hash to their root with any endpoint. */
  unreadableReceipts: number;
  /** In which the logs that an endpoint answered are not those of the block. */
  wrongLogs: number;
}

/** How a range is proven, and who is asked beside the endpoint that is read. */
export interface ScanContext {
  /** All other endpoints of the chain, preferred ones first. */
  witnesses: readonly Rpc[];
  prove: ProveBlocks;
  silence: Silence;
  /** Of those that answer for headers, who does not answer for logs. */
  logSilence: Silence;
  counts: ProofCounts;
  /** Told of an endpoint whose answer was found wrong while the truth was found elsewhere. */
  convict(endpoint: Rpc, problem: string): void;
  /** Told of a block that could be proven only in part. */
  warn(kind: 'unconfirmed' | 'unreadableHeaders' | 'unreadableReceipts', block: Header): void;
}

const noCounts = (): ProofCounts => ({
  proven: 0,
  unconfirmed: 0,
  unreadableHeaders: 0,
  unreadableReceipts: 0,
  wrongLogs: 0,
});

/** Context of a single endpoint, whose answers are only checked for consistency. */
export function aloneContext(prove: ProveBlocks = 'events'): ScanContext {
  const silence: Silence = { isSilent: () => false, note: () => undefined };
  const told = { convict: () => undefined, warn: () => undefined };
  return { witnesses: [], prove, silence, logSilence: silence, counts: noCounts(), ...told };
}

const WARNINGS = {
  unconfirmed: 'a block is booked on the word of one RPC endpoint: the other one does not answer',
  unreadableHeaders:
    'headers do not hash to the hash of their block with any RPC endpoint: several must agree instead, until this version is replaced by one that reads them',
  unreadableReceipts:
    'receipts do not hash to the root in the header with any RPC endpoint: several must agree instead, until this version is replaced by one that reads them',
} as const;

/** Makes the contexts of scans over a pool, which share what is known of its endpoints. */
export function createProofs(deps: {
  rpc: Pick<RpcPool, 'ranked' | 'endpoints' | 'penalize'>;
  prove: ProveBlocks;
  /** For intervals only; monotonic. */
  nowMs(): number;
  logger?: Pick<Logger, 'warn'> | undefined;
}): { context(rpc: Rpc, prove?: ProveBlocks): ScanContext; counts(): Readonly<ProofCounts> } {
  const counts = noCounts();
  const silence = createSilence(deps.nowMs);
  const logSilence = createSilence(deps.nowMs);
  const warned = new Set<string>();
  return {
    counts: () => counts,
    context: (rpc, prove = deps.prove) => ({
      witnesses: inOrder(deps.rpc).filter((one) => one !== rpc),
      prove,
      silence,
      logSilence,
      counts,
      convict: (endpoint, problem) => deps.rpc.penalize(problem, endpoint),
      warn(kind, block) {
        counts[kind] += 1;
        if (warned.has(kind)) return;
        warned.add(kind);
        deps.logger?.warn({ block: block.number, blockHash: block.hash }, WARNINGS[kind]);
      },
    }),
  };
}

/** All configured ones count for a majority, also those that the pool would not ask now. */
function inOrder({ ranked, endpoints }: Pick<RpcPool, 'ranked' | 'endpoints'>): Rpc[] {
  return [...new Set([...ranked(), ...endpoints])];
}

/**
 * Throws unless the headers of one endpoint are what their hashes were made of. Where an endpoint has a header that is, the one that has
 * not is convicted. Where none has, for whatever reason, a majority must have the very same header; a single endpoint is believed.
 */
export async function checkHeaders(rpc: Rpc, headers: readonly Header[], context: ScanContext): Promise<void> {
  const odd = headers.filter((header) => !hashesToItself(header));
  if (odd.length === 0) return;
  const numbers = odd.map(({ number }) => number);
  const answers = await Promise.all(context.witnesses.map((one) => readHeaders(one, numbers).catch(() => [])));
  odd.forEach((header, i) => {
    const said = answers.flatMap((list) => list[i] ?? []);
    judgeHeader(rpc, header, said, context.witnesses.length + 1);
  });
  for (const header of odd) context.warn('unreadableHeaders', header);
}

function judgeHeader(rpc: Rpc, header: Header, said: readonly Header[], total: number): void {
  const needed = majorityOf(total);
  const readable = said.filter(hashesToItself);
  const isConvicted =
    readable.some(({ hash }) => hash === header.hash) ||
    readable.some(({ hash }) => readable.filter((one) => one.hash === hash).length >= needed) ||
    said.some((one) => said.filter((other) => headerKey(other) === headerKey(one)).length >= needed && !same(one));
  if (isConvicted)
    throw new RpcContradictionError(
      `${rpc.name} has a header of block ${header.number} that is not what its hash is of`,
      rpc,
    );
  const agree = said.filter(same).length + 1;
  if (agree < needed)
    throw new NoMajorityError(
      `the header of block ${header.number} is not what its hash is of, and ${agree} of ${total} endpoints have it, ${needed} must`,
    );

  function same(other: Header): boolean {
    return headerKey(other) === headerKey(header);
  }
}
