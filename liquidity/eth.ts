import { toSafeInt } from '../core/amounts.js';
import type { Address, Hex } from '../core/types.js';

/** The part of a JSON-RPC client that reading liquidity needs. */
export interface EthReader {
  call(method: string, params?: unknown[]): Promise<unknown>;
  /** Answers in the order asked; the first error among them is thrown. */
  batch(requests: readonly { method: string; params: unknown[] }[]): Promise<unknown[]>;
  /** Runs work on one endpoint of several, and on the next one when what that one answered can't be read. */
  attempt?<T>(work: (eth: EthReader) => Promise<T>): Promise<T>;
  /** Asks each of several endpoints by itself; those that are silent have no vote. The one in use comes first. */
  survey?<T>(ask: (eth: EthReader) => Promise<T>): Promise<{ answer: T; convict(problem: string): void }[]>;
}

/** A block as prices are read at it. */
export interface Head {
  number: number;
  hash: Hex;
  timestampSec: number;
  baseFeeWei: bigint;
}

interface HeadReader {
  /** The newest block, as it is after the call: a request that is under way already does not answer it. */
  head(): Promise<Head>;
  /** What `load` finds at that block, kept until the next one. A failure is not kept. */
  at<T>(head: Head, key: string, load: () => Promise<T>): Promise<T>;
}

/** One endpoint is believed within so many blocks of what most of them said last, either way, and within a factor of two of their base fee. */
const STEP_BLOCKS = 16;
const FEE_FACTOR = 2n;

/**
 * Follows the newest block. An endpoint that names one which the others don't know, or another base fee, is passed over: nothing could be read
 * at that block, or nothing would seem to be worth its gas. Concurrent callers share one request, and what was read at a block is read once.
 */
export function createHeadReader(eth: EthReader): HeadReader {
  let running: Promise<Head> | null = null;
  let queued: Promise<Head> | null = null;
  /** Never one endpoint's word, which could walk away from it step by step. */
  let agreed: Head | null = null;
  let kept: { hash: Hex; values: Map<string, Promise<unknown>> } = { hash: '0x', values: new Map() };

  async function believedHead(): Promise<Head> {
    const first = await onOne(eth, readHead);
    if (eth.survey === undefined || (agreed !== null && isNear(first, agreed))) return first;
    agreed = mostReached(await eth.survey(readHead));
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
        // Perhaps there is no such block: the next head is asked of all.
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
function mostReached(votes: readonly { answer: Head; convict(problem: string): void }[]): Head {
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
    hash: block.hash,
    timestampSec: toSafeInt(BigInt(block.timestamp)),
    baseFeeWei: BigInt(block.baseFeePerGas ?? '0x0'),
  };
}

/** What a contract that has code does not answer; the code is that of answers which can't be decoded. */
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

/** What ends the outermost call beside a revert, which nodes word as they like, in the words of go-ethereum. */
const FAILURES = /revert|opcode|out of gas|stack|jump|uint64 overflow|out of bounds|write protection/i;

/**
 * True for the answer that a call fails in the contracts, by a revert or otherwise; false for anything that another try may change, such as a
 * limit of the node, or no answer.
 */
export function isFailedCall(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: string };
  return typeof code === 'number' && (code === 3 || FAILURES.test(message ?? ''));
}
