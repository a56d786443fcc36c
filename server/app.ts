import cors from '@koa/cors';
import type Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import { stringify } from '../core/json.js';
import { ApiError, notFound } from './errors.js';
import { fixedRoutes } from './fixed-routes.js';

/** Paths of exchange clients: they parse the body of a 4xx as text only; a JSON object there breaks some of them. */
const PLAIN_TEXT_PATH = /^\/(?:exchange|info)(?:\/|$)/i;
/**
 * Paths below which errors are JSON, also for unknown ones. Any other unknown path gets plain text, since it may come from an exchange
 * client with a wrong path.
 */
const JSON_PATH = /^\/(?:v0|api\/v1)(?:\/|$)/i;

/** Response headers that browser code may read from another origin. */
const EXPOSED_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'x-request-id',
  'etag',
];

export type AppLogger = Pick<Logger, 'info' | 'error'> & Partial<Pick<Logger, 'debug' | 'isLevelEnabled'>>;

interface AppOptions {
  /** Tried in order; the first one that knows the path answers. */
  routers: readonly Router[];
  logger: AppLogger;
  /** Takes the client address from the end of X-Forwarded-For, where a proxy in front wrote it. Default: no. */
  trustProxy?: boolean;
  /** Called for every request, with its final status. */
  observe?: Koa.Middleware;
  /** Runs before any route. What it throws is answered. */
  before?: Koa.Middleware;
  /** Runs before a request without a matching route is refused. */
  unmatched?: Koa.Middleware;
}

/** Shape of every error body outside the order interface. */
interface ErrorBody {
  error: { code: string; message: string };
}

/**
 * The HTTP application. Handlers set `ctx.body` to a plain value, in which bigints become JSON integers, or throw an `ApiError`.
 * Anything else that is thrown is logged and answered with 500 INTERNAL_ERROR and no detail.
 */
export function createApp(options: AppOptions): Koa {
  // Only the address that the proxy itself wrote counts: a client may send any number of others in front of it.
  const app = new Koa({ proxy: options.trustProxy ?? false, maxIpsCount: 1 });
  app.silent = true;
  app.on('error', (error: unknown) => options.logger.error({ err: error }, 'response failed'));
  if (options.observe !== undefined) app.use(options.observe);
  if (options.logger.isLevelEnabled?.('debug') === true) app.use(logRequests(options.logger));
  app.use(anyOrigin());
  app.use(answers(options.logger));
  if (options.before !== undefined) app.use(options.before);
  app.use(fixedRoutes(options.routers));
  for (const router of options.routers) app.use(router.routes());
  if (options.unmatched !== undefined) app.use(options.unmatched);
  app.use((ctx) => {
    throw routeError(ctx, options.routers);
  });
  return app;
}

/** Longest part of a path that is logged. */
const PATH_MAX = 200;

/** One line per request, at the level `debug`. Query, headers and body stay out of it: they may hold signatures. */
function logRequests(logger: AppLogger): Koa.Middleware {
  return async (ctx, next) => {
    const startedMs = performance.now();
    await next();
    const ms = Math.round((performance.now() - startedMs) * 10) / 10;
    const { method, path, status, ip } = ctx;
    logger.debug?.({ method, path: path.slice(0, PATH_MAX), status, ms, ip }, 'request');
  };
}

/**
 * Lets browser code of any origin read every answer. Only preflights go through the library, which sets headers that other requests do not
 * need.
 */
function anyOrigin(): Koa.Middleware {
  const preflight = cors();
  const exposed = EXPOSED_HEADERS.join(',');
  return (ctx, next): unknown => {
    if (ctx.method === 'OPTIONS') return preflight(ctx, next);
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Access-Control-Expose-Headers', exposed);
    return next();
  };
}

/** Writes plain values as JSON, and turns any thrown error into an answer; details of an unexpected error go to the log only. */
function answers(logger: AppLogger): Koa.Middleware {
  return async (ctx, next) => {
    try {
      await next();
      writeJson(ctx);
    } catch (error) {
      const known = asApiError(error);
      const unexpected = known === null ? error : known.cause;
      if (unexpected !== undefined)
        logger.error({ err: unexpected, method: ctx.method, path: ctx.path }, 'request failed');
      answerError(ctx, known ?? new ApiError(500, 'INTERNAL_ERROR', 'Internal error'));
    }
  };
}

function answerError(ctx: Koa.Context, error: ApiError): void {
  ctx.status = error.status;
  if (isPlain(ctx)) {
    ctx.type = 'text/plain';
    ctx.body = error.message;
    return;
  }
  const body: ErrorBody = { error: { code: error.code, message: error.message } };
  ctx.type = 'application/json';
  ctx.body = stringify(body);
}

function isPlain(ctx: Koa.Context): boolean {
  if (PLAIN_TEXT_PATH.test(ctx.path)) return true;
  const { _matchedRoute } = ctx as { _matchedRoute?: unknown };
  return _matchedRoute === undefined && !JSON_PATH.test(ctx.path);
}

/** Koa's own errors (an exposed 4xx of `ctx.throw`) keep their status and message. */
function asApiError(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error;
  if (!(error instanceof Error)) return null;
  const { status, expose } = error as Error & { status?: unknown; expose?: unknown };
  if (typeof status !== 'number' || status < 400 || status > 499 || expose !== true) return null;
  return new ApiError(status, status === 404 ? 'NOT_FOUND' : 'BAD_REQUEST', error.message);
}

/** Plain values become JSON text here, because Koa's own serialiser knows no bigint. Strings and streams pass. */
function writeJson(ctx: Koa.Context): void {
  const body: unknown = ctx.body;
  if (!isPlainValue(body)) return;
  ctx.body = stringify(body);
  ctx.type = 'application/json';
}

function isPlainValue(body: unknown): boolean {
  if (Array.isArray(body)) return true;
  return typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype;
}

/** 405 when the path exists for another method, else 404. */
function routeError(ctx: Koa.Context, routers: readonly Router[]): ApiError {
  const allowed = new Set(
    routers.flatMap((router) => router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods)),
  );
  if (allowed.size === 0) return notFound(`No such resource: ${ctx.path}`);
  ctx.set('Allow', [...allowed].join(', '));
  return new ApiError(405, 'METHOD_NOT_ALLOWED', `${ctx.method} is not allowed here`);
}
