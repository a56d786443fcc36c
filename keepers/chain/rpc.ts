import { unescape } from 'node:querystring';
import { toSafeInt } from '../../core/amounts.js';
import { CALL_METHODS, RpcResponseError, RpcUnavailableError } from '../../core/rpc-errors.js';
import type { Hex } from '../../core/types.js';

export { RpcResponseError, RpcUnavailableError };

/**
 * The endpoint answered, and its answer can't be true: it breaks its own hashes, contradicts itself, or the majority of the endpoints
 * contradicts it. A pool penalises it and goes on with the next endpoint at once.
 */
export class RpcContradictionError extends RpcUnavailableError {
  /** The endpoint that is at fault; null when it is the one that was in use. */
  readonly endpoint: Rpc | null;
  constructor(message: string, endpoint: Rpc | null = null, cause?: unknown) {
    super(message, cause);
    this.name = 'RpcContradictionError';
    this.endpoint = endpoint;
  }
}

/** The endpoint answered more than the answer to such a question can have, or a text that would take far more memory than its length. */
export class RpcAnswerTooLargeError extends RpcContradictionError {
  readonly code = 'RPC_ANSWER_TOO_LARGE';
  constructor(message: string) {
    super(`RPC_ANSWER_TOO_LARGE: ${message}`);
    this.name = 'RpcAnswerTooLargeError';
  }
}

/** The endpoint has asked not to be asked for a while. */
export class RpcBusyError extends RpcUnavailableError {
  /** How much longer, at most MAX_RETRY_AFTER_MS. */
  readonly waitMs: number;
  constructor(message: string, waitMs: number) {
    super(message);
    this.name = 'RpcBusyError';
    this.waitMs = waitMs;
  }
}

/** JSON-RPC code for a request or an answer that is too large for the endpoint. */
const LIMIT_EXCEEDED = -32_005;

/**
 * The answer to a call is longer than what its gas pays for. The called contract may cause that on a node that grants more gas, so an
 * endpoint is penalised only when another one answers; and the error does not tell how the call ends.
 */
export class RpcCallTooLargeError extends RpcResponseError {
  constructor(method: string, problem: string) {
    super(method, LIMIT_EXCEEDED, `RPC_ANSWER_TOO_LARGE: the answer has ${problem}`, undefined);
    this.name = 'RpcCallTooLargeError';
  }
}

export interface RpcRequest {
  method: string;
  params: unknown[];
  /** Most bytes of its answer, if less than the method's limit is known. */
  maxBytes?: number;
}

export interface Rpc {
  /** What the endpoint is called in logs and messages: its host. The rest of its URL may hold a key. */
  readonly name: string;
  /** One request. Throws `RpcResponseError` or `RpcUnavailableError`. */
  call(method: string, params?: unknown[]): Promise<unknown>;
  /** Several requests in one round trip, answers in the order asked; the first error among them is thrown. */
  batch(requests: readonly RpcRequest[]): Promise<unknown[]>;
}

/** What one endpoint answered. */
export interface Vote<T> {
  endpoint: Rpc;
  answer: T;
  /** Penalises the endpoint for an answer that can't be true. */
  convict(problem: string): void;
}

interface RpcAnswer {
  id: number;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** Longest time for which an endpoint can have itself left alone: one that says a day must not be lost for a day. */
const MAX_RETRY_AFTER_MS = 30_000;
/** Statuses with which a server may say when to come back. */
const BUSY: readonly number[] = [429, 503];

/**
 * A JSON-RPC client over HTTP. Every request is limited by `timeoutMs`, and its answer by the method's byte limit. Reading stops at the
 * limit and throws RpcAnswerTooLargeError. Redirections are not followed: requests go where the operator said, and nowhere else. After a 429
 * or 503 that says when to come back, nothing is sent before that, for half a minute at most: RpcBusyError. `nowMs` is for intervals.
 */
export function createRpc(url: string, timeoutMs = 5_000, nowMs = (): number => performance.now()): Rpc {
  const target = new URL(url);
  const name = target.host;
  const headers = { 'content-type': 'application/json', ...authorization(target) };
  target.username = target.password = '';
  let busyUntilMs = Number.NEGATIVE_INFINITY;

  function throwWhileBusy(): void {
    const waitMs = busyUntilMs - nowMs();
    if (waitMs <= 0) return;
    throw new RpcBusyError(`${name} asked to be left alone for ${Math.ceil(waitMs / 1_000)} s`, waitMs);
  }

  async function send(body: unknown, requests: readonly RpcRequest[]): Promise<unknown> {
    throwWhileBusy();
    try {
      const response = await fetch(target, {
        method: 'POST',
        redirect: 'error',
        headers,
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (BUSY.includes(response.status)) {
        busyUntilMs = nowMs() + retryAfterMs(response.headers.get('retry-after'));
        throwWhileBusy();
      }
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return parseAnswer(await readBounded(response, batchBytes(requests)));
    } catch (error) {
      if (error instanceof RpcBusyError) throw error;
      if (error instanceof TooLarge) throw tooLarge(requests, error);
      throw new RpcUnavailableError(`no answer from ${name}: ${describe(error)}`, error);
    }
  }

  function tooLarge(requests: readonly RpcRequest[], { message }: TooLarge): Error {
    const run = requests.find(({ method }) => CALL_METHODS.includes(method));
    return run === undefined
      ? new RpcAnswerTooLargeError(`${name} answered ${message}`)
      : new RpcCallTooLargeError(run.method, message);
  }

  function unwrap(method: string, answer: RpcAnswer | undefined): unknown {
    if (answer === undefined) throw new RpcUnavailableError(`${name} left ${method} unanswered`);
    if (answer.error !== undefined) {
      throw new RpcResponseError(method, answer.error.code, answer.error.message, answer.error.data);
    }
    return answer.result;
  }

  async function batch(requests: readonly RpcRequest[]): Promise<unknown[]> {
    if (requests.length === 0) return [];
    const asked = requests.map(({ method, params }, id) => ({ jsonrpc: '2.0', id, method, params }));
    const answer = await send(asked, requests);
    if (!Array.isArray(answer)) throw new RpcUnavailableError(`${name} did not answer the batch`);
    const byId = new Map((answer as RpcAnswer[]).map((one) => [one.id, one]));
    return requests.map(({ method }, id) => unwrap(method, byId.get(id)));
  }

  return {
    name,
    batch,
    async call(method, params = []) {
      const answer = await send({ jsonrpc: '2.0', id: 1, method, params }, [{ method, params }]);
      return unwrap(method, answer as RpcAnswer);
    },
  };
}

const KIB = 1_024;
const MIB = 1_024 * KIB;

/**
 * Most bytes of an answer, by method. A block names up to 60,000 transactions; logs are asked for in smaller ranges where they are too many.
 */
const METHOD_BYTES: Readonly<Record<string, number>> = {
  eth_blockNumber: 64 * KIB,
  eth_chainId: 64 * KIB,
  eth_getBalance: 64 * KIB,
  eth_getTransactionCount: 64 * KIB,
  eth_sendRawTransaction: 64 * KIB,
  eth_getCode: 2 * MIB,
  eth_getProof: 2 * MIB,
  eth_getTransactionByHash: 4 * MIB,
  eth_getBlockByNumber: 4 * MIB,
  eth_getLogs: 32 * MIB,
  eth_getBlockReceipts: 32 * MIB,
};
const OTHER_BYTES = 16 * MIB;
/** Gas that nodes grant a call without a gas field. */
const NODE_GAS = 50_000_000;
/** Answer bytes per byte that a call returns or reverts with: two as hex, up to six escaped ones in an error message, and a reserve. */
const BYTES_PER_RETURNED = 10;
/** Most bytes of a batch answer, unless one of its answers alone may have more. */
export const BATCH_BYTES = 64 * MIB;
/**
 * Longer answers are checked before they are parsed: parsing a text of brackets takes 40 times its length in memory, and a second per MiB.
 */
const UNCHECKED_BYTES = 256 * KIB;
/** An answer needs at least this many bytes per value; receipts and logs have one value per 30 bytes or more. */
const BYTES_PER_VALUE = 16;

function batchBytes(requests: readonly RpcRequest[]): number {
  const each = requests.map(answerBytes);
  const sum = each.reduce((all, one) => all + one, 0);
  return Math.min(sum, Math.max(BATCH_BYTES, ...each));
}

function answerBytes({ method, params, maxBytes }: RpcRequest): number {
  if (maxBytes !== undefined) return maxBytes;
  return CALL_METHODS.includes(method) ? callBytes(params[0]) : (METHOD_BYTES[method] ?? OTHER_BYTES);
}

/** Most bytes that a call can return: memory of w words costs 3w + w²/512 gas, and returned data must be in memory. */
function callBytes(call: unknown): number {
  const { gas } = (call ?? {}) as { gas?: string };
  const most = gas === undefined ? NODE_GAS : Math.min(parseInt(gas, 16), NODE_GAS);
  const words = Math.floor((Math.sqrt(9 + most / 128) - 3) * 256);
  return 64 * KIB + 32 * words * BYTES_PER_RETURNED;
}

class TooLarge extends Error {}

/** Throws SyntaxError for what is no JSON. */
function parseAnswer(bytes: Buffer): unknown {
  if (bytes.length > UNCHECKED_BYTES) {
    const most = Math.floor(bytes.length / BYTES_PER_VALUE);
    if (countValues(bytes) > most) throw new TooLarge(`more than ${most} values in ${bytes.length} bytes`);
  }
  return JSON.parse(bytes.toString('utf8'));
}

/**
 * An upper bound of the values in a JSON text: opening brackets and separators, outside of strings, since outsiders choose strings, such as
 * revert reasons.
 */
function countValues(bytes: Uint8Array): number {
  let values = 0;
  let isText = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte === 0x22) isText = !isText;
    else if (isText) i += byte === 0x5c ? 1 : 0;
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) values += 1;
  }
  return values;
}

/** The text of an answer; reading stops after `maxBytes`. */
export async function boundedText(response: Response, maxBytes: number): Promise<string> {
  return (await readBounded(response, maxBytes)).toString('utf8');
}

async function readBounded(response: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new TooLarge(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** `fetch` refuses URLs with credentials, so they are sent as an Authorization header; a lone % stays as it is. */
function authorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const credentials = `${unescape(username)}:${unescape(password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** What a Retry-After header says, in seconds or as a date, within bounds; 0 for none, or one that can't be read. */
function retryAfterMs(header: string | null): number {
  if (header === null) return 0;
  const ms = /^\d{1,9}$/.test(header) ? 1_000 * toSafeInt(BigInt(header)) : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

/** A quantity as JSON-RPC writes it. */
export function toQuantity(value: number | bigint): Hex {
  return `0x${value.toString(16)}`;
}

/** The data of a revert out of an error's `data`: nodes put it there itself, or in an object; null for none. */
export function revertData(data: unknown): string | null {
  if (typeof data === 'string') return data;
  if (typeof data !== 'object' || data === null) return null;
  return revertData((data as { data?: unknown }).data);
}
