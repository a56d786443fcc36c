/**
 * Checks each RPC endpoint separately for everything that roles request of it. Its answers are bounded in size and time, and may be wrong.
 */
import { median } from './median.js';
import { toSafeInt } from '../../../core/amounts.js';
import type { Address, Hex } from '../../../core/types.js';
import { createRpc, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { hashesToItself, parseHeader, type Header } from '../../../keepers/watcher/scan/headers.js';
import { MAX_HEAD_AGE_MS } from '../../../keepers/watcher/status.js';
import { MAX_REORG_BLOCKS } from '../../../keepers/watcher/reconcile.js';
import { reasonOf, type Report } from './finding.js';

const REQUEST_MS = 5_000;
/** For all questions to one endpoint. */
const ENDPOINT_MS = 20_000;
/** The pool's limit: endpoints that lag more are not used. */
const MAX_LAG_BLOCKS = 2;
/** Nodes without an archive usually keep the state of 128 blocks. */
const PACE_BLOCKS = 32;
const ZERO: Address = '0x0000000000000000000000000000000000000000';

/** What is known of the chain before any endpoint is asked. */
interface Expectation {
  /** Null before there is a configuration. */
  chainId: number | null;
  /** Null before there is a deployment. */
  deploymentBlock: number | null;
  /** Of ours, for logs and proofs. */
  contract: Address | null;
  scanMaxBlocks: number;
}

/** One that answers, and serves the chain. */
export interface Usable {
  rpc: Rpc;
  url: string;
  head: Header;
  /** When it was answered, by this machine's clock. */
  headAgeMs: number;
  baseFeeWei: bigint;
  /** By the last blocks; null where it does not have them. */
  blockTimeMs: number | null;
}

/** A client whose answers are bounded. */
export const boundedRpc = (url: string): Rpc => createRpc(url, REQUEST_MS);

/** Asks all of them at once. Findings come in the order in which they are configured. */
export async function checkEndpoints(
  urls: readonly string[],
  expected: Expectation,
  report: Report,
  nowMs: () => number,
): Promise<Usable[]> {
  judgeCount(urls.length, report);
  const usable = (await Promise.all(urls.map((url) => open(url, expected, report, nowMs)))).filter(
    (one) => one !== null,
  );
  const heads = usable.map(({ head }) => head.number);
  const furthest = Math.max(...heads);
  for (const { rpc, head } of usable) {
    const behind = furthest - head.number;
    const text = `block ${head.number}${behind === 0 ? '' : `, ${behind} behind the furthest`}`;
    if (behind > MAX_LAG_BLOCKS) report.fail('ENDPOINT_LAG', rpc.name, text);
    else report.ok('ENDPOINT_LAG', rpc.name, text);
    judgeHeader(rpc, head, report);
  }
  await Promise.all(usable.map((one) => checkAbilities(one, expected, report)));
  if (usable.length > 1) await checkAgreement(usable, Math.min(...heads), report);
  const ageMs = median(usable.map(({ headAgeMs }) => headAgeMs));
  if (ageMs !== null) judgeAge(ageMs, report);
  return usable;
}

function judgeCount(count: number, report: Report): void {
  const [subject, text] = ['RPC_URL', `${count} ${count === 1 ? 'endpoint' : 'endpoints'}`];
  if (count === 0) report.fail('ENDPOINTS', subject, 'no endpoint is named');
  else if (count === 1) report.warn('ENDPOINTS', subject, `${text}, which may tell a chain of its own`);
  else if (count === 2) report.warn('ENDPOINTS', subject, `${text}, of which either can stop the ledger`);
  else report.ok('ENDPOINTS', subject, text);
}

/** Null for one that does not answer, or serves another chain. */
async function open(url: string, expected: Expectation, report: Report, nowMs: () => number): Promise<Usable | null> {
  const rpc = boundedRpc(url);
  try {
    // A connection that was closed meanwhile says nothing of the endpoint.
    const answered = await rpc.call('eth_chainId').catch(() => rpc.call('eth_chainId'));
    const chainId = toSafeInt(BigInt(answered as string));
    if (expected.chainId !== null && chainId !== expected.chainId) {
      report.fail('ENDPOINT_CHAIN', rpc.name, `serves chain ${chainId}, not ${expected.chainId}`);
      return null;
    }
    const answer = await rpc.call('eth_getBlockByNumber', ['latest', false]);
    const head = parseHeader(answer);
    if (head === null) throw new Error('it has no newest block');
    // Judged now: the questions that follow may take longer than a head may be old.
    const headAgeMs = nowMs() - head.timestampSec * 1_000;
    const baseFee = (answer as { baseFeePerGas?: unknown }).baseFeePerGas;
    const baseFeeWei = typeof baseFee === 'string' ? BigInt(baseFee) : 0n;
    const earlier = parseHeader(
      await rpc.call('eth_getBlockByNumber', [toQuantity(Math.max(head.number - PACE_BLOCKS, 0)), false]),
    );
    const blocks = earlier === null ? 0 : head.number - earlier.number;
    const blockTimeMs =
      earlier === null || blocks <= 0 ? null : ((head.timestampSec - earlier.timestampSec) * 1_000) / blocks;
    report.ok('ENDPOINT', rpc.name, 'answers');
    if (expected.chainId !== null) report.ok('ENDPOINT_CHAIN', rpc.name, `serves chain ${chainId}`);
    return { rpc, url, head, headAgeMs, baseFeeWei, blockTimeMs };
  } catch (error) {
    report.fail('ENDPOINT', rpc.name, reasonOf(error));
    return null;
  }
}

function judgeHeader(rpc: Rpc, head: Header, report: Report): void {
  if (hashesToItself(head)) report.ok('ENDPOINT_HEADER', rpc.name, 'headers hash to what they are called');
  else report.warn('ENDPOINT_HEADER', rpc.name, `the header of block ${head.number} does not hash to ${head.hash}`);
}

/** What the roles ask for beside the head. Ends after `ENDPOINT_MS`, with what was not answered until then. */
async function checkAbilities({ rpc, head }: Usable, expected: Expectation, report: Report): Promise<void> {
  const who = expected.contract ?? ZERO;
  const from = Math.max(head.number - expected.scanMaxBlocks + 1, 0);
  const deep = Math.max(head.number - MAX_REORG_BLOCKS, 0);
  const number = toQuantity(head.number);
  const questions: {
    code: 'ENDPOINT_STATE' | 'ENDPOINT_LOGS' | 'ENDPOINT_RECEIPTS' | 'ENDPOINT_PROOFS';
    does: string;
    ask(): Promise<unknown>;
  }[] = [
    {
      code: 'ENDPOINT_STATE',
      does: `has the state of block ${deep}`,
      ask: () => rpc.call('eth_getBalance', [who, toQuantity(deep)]),
    },
    {
      code: 'ENDPOINT_LOGS',
      does: `answers logs of ${head.number - from + 1} blocks`,
      ask: async () =>
        mustBeList(await rpc.call('eth_getLogs', [{ address: who, fromBlock: toQuantity(from), toBlock: number }])),
    },
    {
      code: 'ENDPOINT_RECEIPTS',
      does: 'answers the receipts of a block',
      ask: async () => mustBeList(await rpc.call('eth_getBlockReceipts', [number])),
    },
    { code: 'ENDPOINT_PROOFS', does: 'proves accounts', ask: () => rpc.call('eth_getProof', [who, [], number]) },
  ];
  const first = expected.deploymentBlock;
  if (first !== null && first <= head.number) {
    questions.push({
      code: 'ENDPOINT_LOGS',
      does: `has block ${first}, in which the deployment began`,
      ask: async () => {
        if (parseHeader(await rpc.call('eth_getBlockByNumber', [toQuantity(first), false])) === null)
          throw new Error('it does not');
      },
    });
  }
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ENDPOINT_MS / 1_000} s of questions`)), ENDPOINT_MS);
  });
  over.catch(() => undefined);
  for (const { code, does, ask } of questions) {
    try {
      await Promise.race([ask(), over]);
      report.ok(code, rpc.name, does);
    } catch (error) {
      report.warn(code, rpc.name, `${does}: ${reasonOf(error)}`);
    }
  }
  clearTimeout(timer);
}

function mustBeList(answer: unknown): void {
  if (!Array.isArray(answer)) throw new Error('the answer is no list');
}

/** Endpoints of one chain name one hash for a block that all of them have. */
async function checkAgreement(usable: readonly Usable[], lowest: number, report: Report): Promise<void> {
  const block = Math.max(lowest - MAX_LAG_BLOCKS, 0);
  const votes = new Map<Hex, string[]>();
  await Promise.all(
    usable.map(async ({ rpc }) => {
      const hash = await rpc
        .call('eth_getBlockByNumber', [toQuantity(block), false])
        .then((answer) => parseHeader(answer)?.hash ?? null)
        .catch(() => null);
      if (hash !== null) votes.set(hash, [...(votes.get(hash) ?? []), rpc.name]);
    }),
  );
  const sides = [...votes.values()].map((names) => names.sort().join(' and '));
  if (sides.length <= 1)
    report.ok(
      'ENDPOINTS_AGREE',
      `block ${block}`,
      `${votes.values().next().value?.length ?? 0} of ${usable.length} endpoints name one hash`,
    );
  else report.fail('ENDPOINTS_AGREE', `block ${block}`, `${sides.join(' against ')} name different hashes`);
}

function judgeAge(ageMs: number, report: Report): void {
  const text = `the newest block is ${Math.round(ageMs / 100) / 10} s old`;
  if (ageMs > MAX_HEAD_AGE_MS) report.fail('CHAIN_AGE', 'chain', text);
  else report.ok('CHAIN_AGE', 'chain', text);
}
