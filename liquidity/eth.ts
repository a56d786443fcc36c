import { toSafeInt } from '../core/amounts.js';
import { CALL_METHODS, RpcResponseError } from '../core/rpc-errors.js';
import type { Address, Hex } from '../core/types.js';

/** The part of a JSON-RPC client that reading liquidity needs. */
export interface EthReader {
  call(method: string, params?: unknown[]): Promise<unknown>;
  /** Answers in the order asked; the first error among them is thrown. */
  batch(requests: readonly { method: string; params: unknown[] }[]): Promise<unknown[]>;
  /** Runs work on one endpoint of several, and on the next one when that endpoint's answers can't be decoded. */
  attempt?<T>(work: (eth: EthReader) => Promise<T>): Promise<T>;
  /**
   * Asks each of several endpoints separately; silent ones have no vote. The one in use comes first. For `enough` votes, paused endpoints
   * are asked, too; unless `isPatient` is false, that many votes are waited for.
   */
  survey?<T>(ask: (eth: EthReader) => Promise<T>, enough?: number, isPatient?: boolean): Promise<Vote<T>[]>;
  /** As many as are asked in turn; absent for one. */
  readonly endpoints?: readonly unknown[];
}

/** What one of several endpoints answers. */
interface Vote<T> {
  answer: T;
  convict(problem: string): void;
}

/** A block as prices are read at it. */
export interface Head {
  number: number;
  hash: Hex;
  timestampSec: number;
  baseFeeWei: bigint;
}

interface HeadReader {
  /** The newest block after the call: a request that is already in progress is not reused. */
  head(): Promise<Head>;
  /** What `load` finds at that block, kept until the next one. A failure is not kept. */
  at<T>(head: Head, key: string, load: () => Promise<T>): Promise<T>;
}

/** One endpoint's head is accepted within so many blocks of the last majority's, either way, and its base fee within a factor of two. */
const STEP_BLOCKS = 16;
const FEE_FACTOR = 2n;

/**
 * Follows the newest block. An endpoint whose head the others don't have, or with another base fee, is penalised: nothing could be read at
 * that block, or gas would be priced wrongly. Concurrent callers share one request, and what was read at a block is read once.
 */
export function createHeadReader(eth: EthReader): HeadReader {
  let running: Promise<Head> | null = null;
  let queued: Promise<Head> | null = null;
  /** The last head of a majority. Never updated from one endpoint, which could otherwise move it step by step. */
  let agreed: Head | null = null;
  let kept: { hash: Hex; values: Map<string, Promise<unknown>> } = { hash: '0x', values: new Map() };

  async function believedHead(): Promise<Head> {
    const first = await onOne(eth, readHead);
    if (eth.survey === undefined || (agreed !== null && isNear(first, agreed))) return first;
    agreed = mostReached(await votesOf(eth, readHead));
    return agreed;
  }

  function start(): Promise<Head> {
    const request = believedHead();
    running = request;
    const done = (): void => {
      if (running === request) running = null;
    };
    request.then(done, done);
    return request;
  }

  function head(): Promise<Head> {
    if (running === null) return start();
    queued ??= running
      .catch(() => null)
      .then(() => {
        queued = null;
        return start();
      });
    return queued;
  }

  return {
    head,
    at<T>(block: Head, key: string, load: () => Promise<T>): Promise<T> {
      if (kept.hash !== block.hash) kept = { hash: block.hash, values: new Map() };
      const { values } = kept;
      const found = values.get(key) as Promise<T> | undefined;
      if (found !== undefined) return found;
      const loading = load();
      values.set(key, loading);
      loading.catch(() => {
        values.delete(key);
        // The block may not exist, so all endpoints are asked for the next head.
        agreed = null;
      });
      return loading;
    },
  };
}

const isNear = (one: Head, other: Head): boolean =>
  Math.abs(one.number - other.number) <= STEP_BLOCKS &&
  one.baseFeeWei <= FEE_FACTOR * other.baseFeeWei &&
  other.baseFeeWei <= FEE_FACTOR * one.baseFeeWei;

/**
 * The head that most of the endpoints have reached, of two the one that both have, with the base fee in the middle, of two the lower one. With
 * three and more, whoever is far from it is penalised.
 */
function mostReached(votes: readonly Vote<Head>[]): Head {
  const middle = Math.floor(votes.length / 2);
  const falling = votes.map(({ answer }) => answer).sort((a, b) => b.number - a.number);
  const fees = votes.map(({ answer }) => answer.baseFeeWei).sort((a, b) => (a > b ? -1 : 1));
  const reached = { ...falling[middle]!, baseFeeWei: fees[middle]! };
  for (const { answer, convict } of votes) {
    if (votes.length < 3 || isNear(answer, reached)) continue;
    convict(
      `its newest block is ${answer.number} with a base fee of ${answer.baseFeeWei}, and others are at ${reached.number} with ${reached.baseFeeWei}`,
    );
  }
  return reached;
}

/** Hex as it is. Throws TypeError for anything else, which no node answers that is asked for code or a call. */
export function bytesOf(answer: unknown): Hex {
  if (typeof answer !== 'string' || !/^0x[0-9a-f]*$/i.test(answer)) throw new TypeError('not hex');
  return answer as Hex;
}

/** Code of an account at the newest block; `0x` where there is none. */
export function codeAt(eth: EthReader, address: Address): Promise<Hex> {
  return onOne(eth, async (one) => bytesOf(await one.call('eth_getCode', [address, 'latest'])));
}

async function readHead(eth: EthReader): Promise<Head> {
  const block = (await eth.call('eth_getBlockByNumber', ['latest', false])) as {
    number: Hex;
    hash: Hex;
    timestamp: Hex;
    baseFeePerGas?: Hex;
  };
  return {
    number: toSafeInt(BigInt(block.number)),
    hash: block.hash.toLowerCase() as Hex,
    timestampSec: toSafeInt(BigInt(block.timestamp)),
    baseFeeWei: BigInt(block.baseFeePerGas ?? '0x0'),
  };
}

/** An empty answer of a contract that has code; its error code is that of undecodable answers. */
class EmptyAnswerError extends Error {
  readonly code = 'BAD_DATA';
}

/** Calls of contracts at one block in one round trip. An endpoint that answers nothing for one of them is passed over. */
export async function callsAt(
  eth: EthReader,
  head: Head,
  calls: readonly { to: Address; data: string }[],
): Promise<Hex[]> {
  const block = `0x${head.number.toString(16)}`;
  const requests = calls.map((call) => ({ method: 'eth_call', params: [call, block] }));
  return onOne(eth, async (one) => {
    const answers = (await one.batch(requests)) as Hex[];
    if (answers.includes('0x')) throw new EmptyAnswerError(`a contract answers nothing at block ${head.number}`);
    return answers;
  });
}

/** Work on one endpoint of several; on the next one when what that one answers can't be read, or is an error. */
export function onOne<T>(eth: EthReader, work: (eth: EthReader) => Promise<T>): Promise<T> {
  return eth.attempt === undefined ? work(eth) : eth.attempt(work);
}

export const majorityOf = (count: number): number => Math.floor(count / 2) + 1;

/** Whether several endpoints are configured, so that answers can be confirmed. */
export const areSeveral = (eth: EthReader): boolean => eth.survey !== undefined && (eth.endpoints?.length ?? 1) > 1;

/**
 * Answers of each endpoint, also of paused ones where the others are no majority; late ones are waited for only shortly after the first.
 */
export async function votesOf<T>(eth: EthReader, ask: (eth: EthReader) => Promise<T>): Promise<Vote<T>[]> {
  if (eth.survey !== undefined) return eth.survey(ask, majorityOf(eth.endpoints?.length ?? 1), false);
  return [{ answer: await onOne(eth, ask), convict: () => undefined }];
}

/**
 * An answer that may be stored permanently, because it does not depend on one endpoint: that of more than half of those that answer, at
 * least two, or else one that `isProven` accepts. Null when there is none. Endpoints with another answer are penalised if three or more
 * answer, or if the answer is proven.
 */
export function agreedAmong<T>(
  votes: readonly Vote<T>[],
  nameOf: (answer: T) => string,
  isProven: (answer: T, all: readonly T[]) => boolean = () => false,
): { answer: T; isMajority: boolean } | null {
  const same = (answer: T) => votes.filter((vote) => nameOf(vote.answer) === nameOf(answer)).length;
  const most = votes.find(({ answer }) => same(answer) > 1 && 2 * same(answer) > votes.length);
  const all = votes.map(({ answer }) => answer);
  const proven = most === undefined ? votes.find(({ answer }) => isProven(answer, all)) : undefined;
  const agreed = most ?? proven;
  if (agreed === undefined) return null;
  if (votes.length > 2 || proven !== undefined) {
    for (const { answer, convict } of votes) {
      if (nameOf(answer) === nameOf(agreed.answer)) continue;
      convict(`it says ${nameOf(answer)}, and others ${nameOf(agreed.answer)}`);
    }
  }
  return { answer: agreed.answer, isMajority: most !== undefined };
}

/** The answer that the endpoints agree on, or that of the only one; null without agreement. */
export async function agreedOn<T>(
  eth: EthReader,
  ask: (eth: EthReader) => Promise<T>,
  nameOf: (answer: T) => string,
): Promise<T | null> {
  if (!areSeveral(eth)) return onOne(eth, ask);
  return agreedAmong(await votesOf(eth, ask), nameOf)?.answer ?? null;
}

/** What ends the outermost call beside a revert, which nodes word as they like, in the words of go-ethereum. */
const FAILURES = /revert|opcode|out of gas|stack|jump|uint64 overflow|out of bounds|write protection/i;

/**
 * True for the answer that a call fails in the contracts, by a revert or otherwise; false for anything that another try may change, such as a
 * limit of the node, or no answer, and for whatever a node answers to a method that runs no contract: that is a fault of its own.
 */
export function isFailedCall(error: unknown): boolean {
  if (!(error instanceof RpcResponseError) || !CALL_METHODS.includes(error.method)) return false;
  return error.code === 3 || FAILURES.test(error.message);
}
