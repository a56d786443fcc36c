import { toSafeInt } from '../../../core/amounts.js';
import type { Hex } from '../../../core/types.js';
import type { RpcPool } from '../../chain/pool.js';
import { RpcContradictionError, type Rpc } from '../../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { headerRequest, parseHeader } from './headers.js';

/**
 * The endpoints don't decide a question between them: too many are silent, or they contradict each other and no majority agrees. No
 * endpoint is convicted by it; nothing is read until more of them answer the same.
 */
export class NoMajorityError extends Error {
  override readonly name = 'NoMajorityError';
}

/** How many of the configured endpoints must agree: more than half. */
export function majorityOf(endpoints: number): number {
  return Math.floor(endpoints / 2) + 1;
}

/** The height of the newest block that a majority of all endpoints has reached. Throws NoMajorityError while fewer answer. */
export async function majorityHeight(pool: Pick<RpcPool, 'endpoints' | 'survey'>): Promise<number> {
  const total = pool.endpoints.length;
  const needed = majorityOf(total);
  const votes = await pool.survey(async (one) => toSafeInt(BigInt((await one.call('eth_blockNumber')) as Hex)), needed);
  const height = votes.map(({ answer }) => answer).sort((a, b) => b - a)[needed - 1];
  if (height === undefined)
    throw new NoMajorityError(`${votes.length} of ${total} endpoints say how far the chain is, ${needed} must`);
  return height;
}

/** What the other endpoints answer about a block of one endpoint. */
type Confirmation =
  /** A majority names the same hash; `by` are the others that do. */
  | { kind: 'confirmed'; by: readonly Rpc[] }
  /** A majority is not that far yet, and no further than this block. */
  | { kind: 'ahead'; height: number }
  /** Endpoints name different blocks, none of which a majority has. At `height` enough answer to decide which of them to believe. */
  | { kind: 'split'; height: number; problem: string }
  /** There are two endpoints, and the other one does not answer at all. */
  | { kind: 'alone' };

interface HeadVote {
  rpc: Rpc;
  /** Null when it does not have the block. */
  hash: Hex | null;
  head: number;
}

/** Endpoints that did not answer lately need not be waited for again each time. */
export interface Silence {
  isSilent(rpc: Rpc): boolean;
  note(rpc: Rpc, answered: boolean): void;
}

/**
 * The last block of a range from `from` on that is to be asked about again instead, because endpoints are not that far yet or contradict each
 * other there: `from - 1` when that leaves none. Null for an answer about the block itself. Throws NoMajorityError where they contradict each other
 * at the first block already.
 */
export function lowerEnd(confirmation: Confirmation, from: number): number | null {
  switch (confirmation.kind) {
    case 'confirmed':
    case 'alone':
      return null;
    case 'split':
      if (confirmation.height < from) throw new NoMajorityError(confirmation.problem);
      return confirmation.height;
    case 'ahead':
      return Math.max(confirmation.height, from - 1);
  }
}

/**
 * Asks the other endpoints for the block that `rpc` has at a height. Its hash proves all headers up to it that hash to themselves and
 * link to each other, so that one question is enough for a range. An endpoint that is ahead of the others is waited with. Where endpoints
 * contradict each other, those that are not that far yet decide, at the highest block that enough of them have: else one that invents blocks
 * would stop all others for as long as one trails. Throws RpcContradictionError when a majority names another block, NoMajorityError when
 * none agrees, nor could with those that trail. Of two endpoints, one that does not answer at all leaves the other one alone: it must not
 * stop what one endpoint could do.
 */
export async function confirmBlock(
  rpc: Rpc,
  block: KnownBlock,
  witnesses: readonly Rpc[],
  silence: Silence,
): Promise<Confirmation> {
  if (witnesses.length === 0) return { kind: 'confirmed', by: [] };
  const total = witnesses.length + 1;
  const needed = majorityOf(total);
  const votes = await collect(witnesses, block, needed - 1, silence);
  const by = votes.filter(({ hash }) => hash === block.hash).map((vote) => vote.rpc);
  if (by.length + 1 >= needed) return { kind: 'confirmed', by };

  const others = new Map<Hex, number>();
  for (const { hash } of votes) {
    if (hash !== null && hash !== block.hash) others.set(hash, (others.get(hash) ?? 0) + 1);
  }
  for (const [hash, count] of others) {
    if (count < needed) continue;
    throw new RpcContradictionError(
      `${rpc.name} has ${block.hash} as block ${block.number}, ${count} of ${total} endpoints have ${hash}`,
      rpc,
    );
  }
  const trailing = votes.filter(({ hash }) => hash === null).map(({ head }) => Math.min(head, block.number - 1));
  trailing.sort((a, b) => b - a);
  /** What `needed` endpoints have reached if so many are at the block itself. */
  const reached = (there: number): number | undefined => (there < needed ? trailing[needed - there - 1] : block.number);
  const height = reached(1 + votes.length - trailing.length);
  if (height !== undefined && height < block.number) return { kind: 'ahead', height };
  if (total === 2 && votes.length === 0) return { kind: 'alone' };
  const problem = `${by.length + 1} of ${total} endpoints have ${block.hash} as block ${block.number}, ${needed} must say the same`;
  const lower = reached(Math.max(by.length + 1, ...others.values()));
  if (lower === undefined) throw new NoMajorityError(problem);
  return { kind: 'split', height: lower, problem };
}

/**
 * The answers of the endpoints, no more than are needed for `enough` of them to agree. Silent ones are asked when the others don't decide it:
 * they may be back, and without them nothing is read. The only other endpoint is always asked, for nobody else confirms anything; after it was
 * silent it is not waited for as long.
 */
async function collect(
  witnesses: readonly Rpc[],
  block: KnownBlock,
  enough: number,
  silence: Silence,
): Promise<HeadVote[]> {
  const votes: HeadVote[] = [];
  let agree = 0;
  const askAll = (asked: readonly Rpc[], patienceMs?: number): Promise<void> =>
    new Promise<void>((done) => {
      let left = asked.length;
      const timer = patienceMs === undefined ? undefined : setTimeout(done, patienceMs);
      const resolve = (): void => {
        clearTimeout(timer);
        done();
      };
      if (left === 0) resolve();
      for (const rpc of asked) {
        void ask(rpc, block.number).then((vote) => {
          silence.note(rpc, vote !== null);
          if (vote !== null) votes.push(vote);
          if (vote?.hash === block.hash) agree += 1;
          left -= 1;
          if (left === 0 || agree >= enough) resolve();
        });
      }
    });
  const silent = witnesses.filter((rpc) => silence.isSilent(rpc));
  await askAll(witnesses.filter((rpc) => !silent.includes(rpc)));
  if (agree < enough) await askAll(silent, witnesses.length > 1 ? undefined : SHORT_PATIENCE_MS);
  // A copy, so that later answers do not change the decision.
  return [...votes];
}

async function ask(rpc: Rpc, number: number): Promise<HeadVote | null> {
  try {
    const [block, head] = await rpc.batch([headerRequest(number), { method: 'eth_blockNumber', params: [] }]);
    const header = parseHeader(block);
    if (header !== null && header.number !== number) return null;
    return { rpc, hash: header?.hash ?? null, head: toSafeInt(BigInt(head as Hex)) };
  } catch {
    return null;
  }
}

/** For the only other endpoint after it was silent: a round trip, not a timeout. */
const SHORT_PATIENCE_MS = 500;
const FIRST_SILENCE_MS = 2_000;
const LONGEST_SILENCE_MS = 60_000;

/** Remembers which endpoints did not answer, for longer each time. `nowMs` is monotonic: a step of the wall clock must not keep one unasked. */
export function createSilence(nowMs: () => number): Silence {
  const silent = new Map<Rpc, { count: number; untilMs: number }>();
  return {
    isSilent: (rpc) => (silent.get(rpc)?.untilMs ?? 0) > nowMs(),
    note(rpc, answered) {
      if (answered) {
        silent.delete(rpc);
        return;
      }
      const count = (silent.get(rpc)?.count ?? 0) + 1;
      silent.set(rpc, { count, untilMs: nowMs() + Math.min(FIRST_SILENCE_MS * 2 ** (count - 1), LONGEST_SILENCE_MS) });
    },
  };
}
