import { unescape } from 'node:querystring';
import { RpcResponseError, RpcUnavailableError } from '../../core/rpc-errors.js';
import type { Hex } from '../../core/types.js';

export { RpcResponseError, RpcUnavailableError };

/**
 * The endpoint answered, and its answer can't be true: it breaks its own hashes, contradicts itself, or the majority of the endpoints
 * contradicts it. Whoever asked several endpoints has that one penalised and goes on with the next at once.
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

export interface RpcRequest {
  method: string;
  params: unknown[];
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

/** A JSON-RPC client over HTTP. Every request is bounded by `timeoutMs`, and its answer by `maxBytes` where there is such a bound. */
export function createRpc(url: string, timeoutMs = 5_000, maxBytes: number | null = null): Rpc {
  const target = new URL(url);
  const name = target.host;
  const headers = { 'content-type': 'application/json', ...authorization(target) };
  target.username = target.password = '';

  async function send(body: unknown): Promise<unknown> {
    try {
      const response = await fetch(target, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return maxBytes === null ? await response.json() : JSON.parse(await boundedText(response, maxBytes));
    } catch (error) {
      throw new RpcUnavailableError(`no answer from ${name}: ${describe(error)}`, error);
    }
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
    const answer = await send(requests.map(({ method, params }, id) => ({ jsonrpc: '2.0', id, method, params })));
    if (!Array.isArray(answer)) throw new RpcUnavailableError(`${name} did not answer the batch`);
    const byId = new Map((answer as RpcAnswer[]).map((one) => [one.id, one]));
    return requests.map(({ method }, id) => unwrap(method, byId.get(id)));
  }

  return {
    name,
    batch,
    async call(method, params = []) {
      const answer = await send({ jsonrpc: '2.0', id: 1, method, params });
      return unwrap(method, answer as RpcAnswer);
    },
  };
}

/** Leaves an answer that is longer, after as many bytes. */
export async function boundedText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`an answer of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** `fetch` takes no URL with a name and a password in it; they are sent as the header that they stand for, a lone % as it is. */
function authorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const credentials = `${unescape(username)}:${unescape(password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
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
