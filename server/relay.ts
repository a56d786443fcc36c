/** What a process that does not own the order log does with requests that only the active gateway takes: hands them over to it, by HTTP. */
import { request as requestPlain, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import { toSafeInt } from '../core/amounts.js';
import { ApiError } from './errors.js';
import { standby } from './orders/group-commit.js';
import { GatewayUnavailableError, RateLimitedError } from './orders/refusals.js';
import type { ActionRelay, ExchangeReply } from './orders/types.js';
import { READING } from './reader-guard.js';
import { readText } from './swap/body.js';

export interface Relay extends ActionRelay {
  /** Hands over any other request, and writes the answer. Throws 503 `STANDBY` or `OUTCOME_UNKNOWN`. */
  answer(ctx: Context): Promise<void>;
  /** Requests without an answer. */
  waiting(): number;
}

interface RelayOptions {
  /** Of all gateways, this one's among them or not. */
  urls: readonly string[];
  timeoutMs: number;
  maxWaiting: number;
  monotonicMs(): number;
  logger: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
}

/** Who gets a request with this header does not hand it over again: of two that take each other for the active one, neither is. */
const RELAYED = 'x-curvebook-relayed';
const HANDED_OVER = /^\/(?:exchange|api\/v1)(?:\/|$)/i;
/** An answer with this header says that nothing was stored, because the process does not own the order log. */
const STANDBY = 'x-curvebook-standby';
const PROBE_MS = 1_000;
/** How long a connection may take; a machine that is gone takes none, and says nothing. */
const CONNECT_MS = 1_000;
/** One maker, or one address, has at most one part in so many of what may wait. */
const SHARE = 4;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Pause before nobody's being active is looked at again. */
const PAUSE_MS = 200;
/** Nothing is sent that has less time for its answer: without one nobody could say whether it was stored. */
const LEAST_ANSWER_MS = 200;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** What the active gateway says of its answer beside the text. */
const ANSWER_HEADERS = new Set([
  'content-type',
  'retry-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]);
interface Asked {
  method: string;
  /** As it came, with the query: it is not a URL, and names no server. */
  path: string;
  text?: string;
  /** Of the client. */
  address?: string | undefined;
}

interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Looks for the active gateway when there is something to hand over. */
export function createRelay({ urls, timeoutMs, maxWaiting, monotonicMs, logger }: RelayOptions): Relay {
  const leastMs = Math.min(LEAST_ANSWER_MS, timeoutMs);
  let active: string | null = null;
  let looking: Promise<string | null> | null = null;
  let waiting = 0;
  let waitingBytes = 0;
  /** Of makers, and of addresses for what is not an action. */
  const shares = new Map<string, number>();
  /** The log says that nobody is active. */
  let isMissed = false;

  const isActive = (url: string): Promise<boolean> =>
    send(url, { method: 'GET', path: '/active' }, PROBE_MS).then(
      (answer) => answer?.status === 200,
      () => false,
    );

  async function look(): Promise<string | null> {
    // Whoever says so first: one that hangs must not hold this up.
    const next = await Promise.any(
      urls.map(async (url) => ((await isActive(url)) ? url : Promise.reject(new Error('not active')))),
    ).catch(() => null);
    if (next !== active) logger.info({ url: next }, 'the gateway that takes actions');
    active = next;
    return next;
  }

  const find = (): Promise<string | null> => (looking ??= look().finally(() => (looking = null)));

  /** Null when nothing of the request has reached a process that would store it. */
  async function ask(url: string, asked: Asked, leftMs: number): Promise<Answered | null> {
    try {
      const answer = await send(url, asked, leftMs);
      const isStored = answer !== null && answer.headers[STANDBY] === undefined && !answer.text.startsWith('standby:');
      // One that errs is not asked next, before it has said again that it is active.
      if (!isStored || answer.status >= 500) forget(url);
      return isStored ? answer : null;
    } catch (error) {
      // It may hang for good, with connections that are still taken, and another gateway have its log.
      forget(url);
      throw unknown(error);
    }
  }

  function forget(url: string): void {
    if (active === url) active = null;
  }

  /** Asks whoever is active until somebody has the request, for as long as the client may be kept waiting. */
  async function handOver(asked: Asked, who: string): Promise<Answered> {
    const bytes = Buffer.byteLength(asked.text ?? '');
    const own = shares.get(who) ?? 0;
    // Whoever sends much must not keep out all others.
    if (waiting >= maxWaiting || own >= Math.ceil(maxWaiting / SHARE) || waitingBytes + bytes > MAX_WAITING_BYTES)
      throw new GatewayUnavailableError('write_failed', 'Too much waits for the active gateway; nothing was stored');
    const untilMs = monotonicMs() + timeoutMs;
    waiting += 1;
    waitingBytes += bytes;
    shares.set(who, own + 1);
    try {
      while (monotonicMs() < untilMs) {
        const url = active ?? (await find());
        const leftMs = Math.ceil(untilMs - monotonicMs());
        const answer = url === null || leftMs < leastMs ? null : await ask(url, asked, leftMs);
        if (answer !== null) {
          isMissed = false;
          return answer;
        }
        await delay(PAUSE_MS);
      }
    } finally {
      waiting -= 1;
      waitingBytes -= bytes;
      const left = shares.get(who)! - 1;
      if (left === 0) shares.delete(who);
      else shares.set(who, left);
    }
    // Once, however many wait.
    if (!isMissed) logger.warn({ gateways: urls.length }, 'no gateway takes what is handed over');
    isMissed = true;
    throw standby();
  }

  return {
    waiting: () => waiting,
    async action(body, maker, address) {
      const asked = { method: 'POST', path: '/exchange', text: wireText(body), address };
      const { status, headers, text: said } = await handOver(asked, maker);
      if (status === 429) throw new RateLimitedError(secondsOf(headers['retry-after']));
      // What it says of itself is told as it is.
      const [, code, message] = (status === 503 ? /^(write_failed|outcome_unknown): ([^]+)$/.exec(said) : null) ?? [];
      if (code !== undefined) throw new GatewayUnavailableError(code as 'write_failed' | 'outcome_unknown', message!);
      const reply = status === 200 ? replyOf(said) : null;
      if (reply === null) throw unknown(new Error(`the active gateway answered ${status}`));
      return reply;
    },
    async answer(ctx) {
      const text = await readText(ctx.req);
      try {
        const asked = { method: ctx.method, path: `${ctx.path}${ctx.search}`, text, address: ctx.ip };
        const { status, headers, text: said } = await handOver(asked, ctx.ip);
        ctx.status = status;
        for (const [name, value] of Object.entries(headers))
          if (ANSWER_HEADERS.has(name) && typeof value === 'string') ctx.set(name, value);
        ctx.body = said;
      } catch (error) {
        if (!(error instanceof GatewayUnavailableError)) throw error;
        throw new ApiError(503, error.code.toUpperCase(), error.message, error.cause);
      }
    },
  };
}

/** Of an app: refuses what another process handed over to this one, unless it takes it, so that nothing goes round. */
export const refuseRelayed =
  (isActive: () => boolean): Middleware =>
  (ctx, next): unknown => {
    if (ctx.headers[RELAYED] === undefined || !HANDED_OVER.test(ctx.path) || READING.includes(ctx.method))
      return next();
    if (isActive()) return next();
    ctx.set(STANDBY, '1');
    throw new ApiError(503, 'STANDBY', standby().message);
  };

/** Of routes: hands over what is stored, unless this process takes it; the rest goes on to `guard`. */
export const relayed =
  (relay: Relay, isActive: () => boolean, guard: Middleware | null): Middleware =>
  (ctx, next): unknown => {
    if (!isActive() && !READING.includes(ctx.method)) return relay.answer(ctx);
    return guard === null ? next() : guard(ctx, next);
  };

function unknown(cause: unknown): GatewayUnavailableError {
  const message = 'The request reached the active gateway, which did not answer; it may or may not have been stored';
  return new GatewayUnavailableError('outcome_unknown', message, { cause });
}

const secondsOf = (text: string | undefined): number => (/^\d{1,6}$/.test(text ?? '') ? toSafeInt(text!) : 1);

/** The parts of an action that mean something, and no others. */
function wireText(body: unknown): string {
  const { action, nonce, signature, vaultAddress, expiresAfter } = body as Record<string, unknown>;
  return JSON.stringify({ action, nonce, signature, vaultAddress, expiresAfter });
}

/** Null for what is no reply of the wire. */
function replyOf(text: string): ExchangeReply | null {
  try {
    const said = JSON.parse(text) as { status?: unknown } | null;
    return said?.status === 'ok' || said?.status === 'err' ? (said as ExchangeReply) : null;
  } catch {
    return null;
  }
}

/** One request to one gateway. Null when the connection did not come about, so that nothing was sent; rejects when something may have been. */
function send(base: string, { method, path, text = '', address }: Asked, timeoutMs: number): Promise<Answered | null> {
  const { protocol, hostname, port } = new URL(base);
  const isTls = protocol === 'https:';
  return new Promise((resolve, reject) => {
    let isConnected = false;
    let hasAnswer = false;
    const request = (isTls ? requestTls : requestPlain)({
      // A connection of its own: on one that was kept, the other end's leaving could not be told from its having read the request.
      agent: false,
      ...{ hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port, path, method },
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        [RELAYED]: '1',
        ...(address === undefined ? {} : { 'x-forwarded-for': address }),
      },
    });
    const connecting = setTimeout(() => request.destroy(new Error('no connection')), Math.min(CONNECT_MS, timeoutMs));
    const answering = setTimeout(() => request.destroy(new Error('no answer in time')), timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(connecting);
      clearTimeout(answering);
      if (isConnected) reject(error);
      else resolve(null);
    };
    request.on('socket', (socket) => {
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        isConnected = true;
        clearTimeout(connecting);
      });
    });
    request.on('error', fail);
    request.on('close', () => {
      clearTimeout(answering);
      // Of an answer that is cut off its own reading tells.
      if (!hasAnswer) fail(new Error('the connection ended without an answer'));
    });
    request.on('upgrade', (_, socket) => socket.destroy());
    request.on('response', (answer) => {
      hasAnswer = true;
      readAnswer(answer).then(
        (said) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: said }),
        reject,
      );
    });
    request.end(text);
  });
}

async function readAnswer(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
