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
/** An answer with this header says that nothing was stored, because the process does not own the order log. */
const STANDBY = 'x-curvebook-standby';
const PROBE_MS = 1_000;
/** Pause before nobody's being active is looked at again. */
const PAUSE_MS = 200;
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
  let active: string | null = null;
  let looking: Promise<string | null> | null = null;
  let waiting = 0;

  const isActive = (url: string): Promise<boolean> =>
    send(url, { method: 'GET', path: '/active' }, PROBE_MS).then(
      (answer) => answer?.status === 200,
      () => false,
    );

  async function look(): Promise<string | null> {
    const found = await Promise.all(urls.map(isActive));
    const next = urls.find((_, i) => found[i]) ?? null;
    if (next !== active) logger.info({ url: next }, 'the gateway that takes actions');
    active = next;
    return next;
  }

  const find = (): Promise<string | null> => (looking ??= look().finally(() => (looking = null)));

  /** Null when nothing of the request has reached a process that would store it. */
  async function ask(url: string, asked: Asked, leftMs: number): Promise<Answered | null> {
    const answer = await send(url, asked, leftMs).catch((error: unknown) => Promise.reject(unknown(error)));
    return answer === null || answer.headers[STANDBY] !== undefined ? null : answer;
  }

  /** Asks whoever is active until somebody has the request, for as long as the client may be kept waiting. */
  async function handOver(asked: Asked): Promise<Answered> {
    if (waiting >= maxWaiting) throw standby();
    const untilMs = monotonicMs() + timeoutMs;
    waiting += 1;
    try {
      while (monotonicMs() < untilMs) {
        const url = active ?? (await find());
        const leftMs = Math.ceil(untilMs - monotonicMs());
        const answer = url === null || leftMs <= 0 ? null : await ask(url, asked, leftMs);
        if (answer !== null) return answer;
        if (active === url) active = null;
        await delay(PAUSE_MS);
      }
    } finally {
      waiting -= 1;
    }
    logger.warn({ gateways: urls.length }, 'no gateway takes what is handed over');
    throw standby();
  }

  return {
    waiting: () => waiting,
    async action(body, address) {
      const text = JSON.stringify(body);
      const { status, headers, text: said } = await handOver({ method: 'POST', path: '/exchange', text, address });
      if (status === 429) throw new RateLimitedError(secondsOf(headers['retry-after']));
      if (status !== 200) throw unknown(new Error(`the active gateway answered ${status}`));
      return JSON.parse(said) as ExchangeReply;
    },
    async answer(ctx) {
      const text = await readText(ctx.req);
      try {
        const asked = { method: ctx.method, path: `${ctx.path}${ctx.search}`, text, address: ctx.ip };
        const { status, headers, text: said } = await handOver(asked);
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
    if (ctx.headers[RELAYED] === undefined || isActive()) return next();
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

/** One request to one gateway. Null when the connection did not come about, so that nothing was sent; rejects when something may have been. */
function send(base: string, { method, path, text = '', address }: Asked, timeoutMs: number): Promise<Answered | null> {
  const { protocol, hostname, port } = new URL(base);
  const isTls = protocol === 'https:';
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const request = (isTls ? requestTls : requestPlain)({
      // A connection of its own: on one that was kept, the other end's leaving could not be told from its having read the request.
      agent: false,
      ...{ hostname, port, path, method, signal: AbortSignal.timeout(timeoutMs) },
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        [RELAYED]: '1',
        ...(address === undefined ? {} : { 'x-forwarded-for': address }),
      },
    });
    request.on('socket', (socket) => {
      const connected = (): boolean => (isConnected = true);
      if (socket.connecting) socket.once(isTls ? 'secureConnect' : 'connect', connected);
      else connected();
    });
    request.on('error', (error) => (isConnected ? reject(error) : resolve(null)));
    request.on('response', (answer) => {
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
