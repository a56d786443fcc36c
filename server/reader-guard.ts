/** What a process refuses that only reads a database, and never writes it. */
import type { Middleware } from 'koa';
import { ApiError } from './errors.js';

export const LAG_MESSAGE = 'replica_lag: what is read here is too old at the moment; ask another server, or try again';

/** Paths that are answered however old the data is: they say so. */
const ALWAYS = /^\/(?:health|v0\/status)\/?$/i;
/** Paths whose requests are stored, unless they only read. Actions of `/exchange` are refused by the gateway itself, as on a standby. */
const STORED = /^\/api\/v1\//i;
export const READING: readonly string[] = ['GET', 'HEAD'];
const RETRY_AFTER_SEC = '1';

/** Of routes with data: refuses what may be too old with 503 `REPLICA_LAG`, and what would be stored with 503 `READ_ONLY`. */
export const readerGuard =
  (isBehind: () => boolean): Middleware =>
  (ctx, next): unknown => {
    const refuse = (code: string, message: string): never => {
      ctx.set('Retry-After', RETRY_AFTER_SEC);
      throw new ApiError(503, code, message);
    };
    if (STORED.test(ctx.path) && !READING.includes(ctx.method))
      return refuse('READ_ONLY', 'this server only reads; send quotes and orders to one that takes them');
    if (!ALWAYS.test(ctx.path) && isBehind()) return refuse('REPLICA_LAG', LAG_MESSAGE);
    return next();
  };
