import { toSafeInt } from '../../core/amounts.js';
import { CurvebookError } from './errors.js';

export interface HttpOptions {
  /** Another implementation than the global one. */
  fetch?: typeof fetch;
  /** How long an answer may take; 10 s by default. */
  timeoutMs?: number;
}

interface Reply {
  status: number;
  etag: string | null;
  /** Null for 304. */
  body: unknown;
}

interface Ask {
  method?: 'GET' | 'POST' | 'DELETE';
  body?: unknown;
  etag?: string;
  signal?: AbortSignal;
}

const TIMEOUT_MS = 10_000;
/** Timers take no longer one. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** A longer answer is refused, so that a server can't fill its client's memory. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

type Http = (path: string, ask?: Ask) => Promise<Reply>;

/**
 * Asks a server for JSON. Throws CurvebookError if there is no answer, if it is not JSON, and for every status but 200 and 304; the reason of `signal`
 * where that aborts.
 */
export function createHttp(baseUrl: string, { fetch: fetcher = fetch, timeoutMs = TIMEOUT_MS }: HttpOptions): Http {
  if (typeof baseUrl !== 'string') throw new CurvebookError('BAD_ARGUMENT', 'url is that of a server, as a string');
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw new CurvebookError('BAD_ARGUMENT', `timeoutMs is a whole number from 1 to ${MAX_TIMEOUT_MS}`);
  const base = baseUrl.replace(/\/+$/, '');
  return async (path, { method = 'GET', body, etag, signal } = {}) => {
    const sent = body === undefined ? {} : { body: textOf(body) };
    const timeout = AbortSignal.timeout(timeoutMs);
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(etag === undefined ? {} : { 'if-none-match': etag }),
    };
    let response: Response;
    let text: string;
    try {
      response = await fetcher(base + path, {
        method,
        headers,
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
        ...sent,
      });
      text = await readText(response);
    } catch (error) {
      if (error instanceof CurvebookError || signal?.aborted === true) throw error;
      throw new CurvebookError('NO_ANSWER', `${method} ${path}: no answer`, { cause: error });
    }
    if (response.status === 304) return { status: 304, etag: response.headers.get('etag'), body: null };
    if (!response.ok) throw refusal(response, text, `${method} ${path}`);
    return { status: response.status, etag: response.headers.get('etag'), body: parse(text, `${method} ${path}`) };
  };
}

function textOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw new CurvebookError('BAD_ARGUMENT', 'what is to be sent can not be written as JSON', { cause: error });
  }
}

async function readText(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = (await reader.read()) as { done: boolean; value: Uint8Array };
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new CurvebookError('TOO_LONG', `the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CurvebookError('NOT_JSON', `${what}: the answer is not JSON`, { cause: error });
  }
}

/** Errors under /v0 and /api/v1 are an envelope; the order interface answers in plain text, `<code>: <text>`. */
function refusal(response: Response, text: string, what: string): CurvebookError {
  const retryAfter = response.headers.get('retry-after') ?? '';
  const more = {
    status: response.status,
    retryAfterSec: /^\d{1,6}$/.test(retryAfter) ? toSafeInt(retryAfter) : null,
  };
  const { error } = envelopeOf(text);
  if (error !== undefined) return new CurvebookError(error.code, error.message, more);
  const code = /^([a-z_]{1,40}): /.exec(text)?.[1] ?? (response.status === 429 ? 'RATE_LIMITED' : 'HTTP_ERROR');
  return new CurvebookError(code, text.slice(0, 500) || `${what}: status ${response.status}`, more);
}

function envelopeOf(text: string): { error?: { code: string; message: string } } {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } };
    const { code, message } = error ?? {};
    return typeof code === 'string' && typeof message === 'string' ? { error: { code, message } } : {};
  } catch {
    return {};
  }
}
