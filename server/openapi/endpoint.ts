import Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import type { z } from 'zod';

/** A parameter of the path or of the query. The same schema validates requests. */
export interface Parameter {
  schema: z.ZodType;
  description: string;
  /** Of the query only; a parameter of the path is always there. */
  required?: boolean;
  example?: string | number;
}

/** What the OpenAPI document says about one endpoint. Schemas are those that validate requests and, in tests, responses. */
export interface Endpoint {
  method: 'get' | 'post' | 'delete';
  /** With parameters in braces: `/v0/book/{pair}`. */
  path: string;
  /** Heading under which it is listed. */
  group: string;
  summary: string;
  description?: string;
  params?: Readonly<Record<string, Parameter>>;
  query?: Readonly<Record<string, Parameter>>;
  body?: z.ZodType;
  /** The body of a 200. */
  answer: z.ZodType;
  /** Statuses beside 200 whose body has the same shape, with what each means here. */
  alsoAnswers?: Readonly<Record<number, string>>;
  /** Statuses other than 200, with what each means here. Their body is the error envelope. */
  refusals: Readonly<Record<number, string>>;
  /** Of the order interface: refusals are plain text, and answers have no rate limit headers. */
  isWire?: boolean;
  /** The answer has an ETag, and is 304 for a client that names it. */
  tagged?: boolean;
  /** All rows may also be downloaded as NDJSON or CSV, without an ETag. */
  downloads?: boolean;
}

/** How often one client may ask. */
export interface RequestLimit<Deps> {
  /** The setting that says so. */
  setting: string;
  /** Middleware that counts requests; null where the handler counts, because the cost is known only once a request is read. */
  count: ((deps: Deps) => Middleware) | null;
}

/** An endpoint with its handler and limit. */
export interface ServedEndpoint<Deps> extends Endpoint {
  limit: RequestLimit<Deps>;
  handler: (deps: Deps) => RouterMiddleware;
}

/** The routes of a table of endpoints; `before` runs first on each of them, and `guard` once the request was counted. */
export function routesOf<Deps>(
  endpoints: readonly ServedEndpoint<Deps>[],
  deps: Deps,
  before: readonly RouterMiddleware[] = [],
  guard: Middleware | null = null,
): Router {
  const router = new Router();
  for (const { method, path, limit, handler } of endpoints) {
    const counted = limit.count === null ? [] : [limit.count(deps)];
    const handlers = [...before, ...counted, ...(guard === null ? [] : [guard]), handler(deps)];
    router[method](path.replace(/\{(\w+)\}/g, ':$1'), ...handlers);
  }
  return router;
}

/** Answers are not cached unless a handler says so. */
export const notKept: RouterMiddleware = (ctx, next) => {
  ctx.set('Cache-Control', 'no-store');
  return next();
};
