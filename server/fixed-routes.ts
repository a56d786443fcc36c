import type Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';

/** What runs for one method and path. */
interface FixedRoute {
  path: string;
  handlers: readonly RouterMiddleware[];
}

/** A route whose path is made of plain segments, some of which are parameters. */
interface Pattern extends FixedRoute {
  /** Null for a parameter. */
  segments: readonly (string | null)[];
  /** Names of the parameters, and which segment each is. */
  params: readonly (readonly [name: string, at: number])[];
}

const PLAIN_PATH = /^[\w/-]+$/;
const PATTERN_PATH = /^(\/:?[\w-]+)+$/;

/**
 * Serves the routes of these routers by one look-up, because a router tests one regular expression after the other for every request. The
 * result is that of the routers: the first router with a matching route answers, after its own middleware. Paths with parameters are looked
 * up only if all routers up to theirs have plain paths. Everything else goes on to `next`, among it a path that several patterns match,
 * paths with escapes, in another letter case, or with a slash at the end.
 */
export function fixedRoutes(routers: readonly Router[]): Middleware {
  const byPath = fixedPaths(routers);
  const patterns = patternsOf(routers);
  return (ctx, next) => {
    const { path, method } = ctx;
    const fixed = byPath.get(path)?.get(method);
    if (fixed !== undefined) return serve(fixed, {}, ctx, next);
    if (path.includes('%')) return next();
    const segments = path.split('/');
    let found: Pattern | null = null;
    for (const pattern of patterns.get(method)?.get(segments.length) ?? []) {
      if (!takes(pattern, segments)) continue;
      if (found !== null) return next();
      found = pattern;
    }
    if (found === null || found.handlers.length === 0) return next();
    const params: Record<string, string> = {};
    for (const [name, at] of found.params) params[name] = segments[at] ?? '';
    return serve(found, params, ctx, next);
  };
}

function takes(pattern: Pattern, segments: readonly string[]): boolean {
  return pattern.segments.every((segment, i) => (segment === null ? segments[i] !== '' : segment === segments[i]));
}

function serve(
  { path, handlers }: FixedRoute,
  params: Readonly<Record<string, string>>,
  ctx: Parameters<Middleware>[0],
  next: () => Promise<unknown>,
): Promise<unknown> {
  const routed = ctx as typeof ctx & { params: typeof params; _matchedRoute: string };
  routed.params = params;
  // Set as the routers do, for metrics by route.
  routed._matchedRoute = path;
  return run(handlers, 0, ctx as Parameters<RouterMiddleware>[0], next);
}

function fixedPaths(routers: readonly Router[]): Map<string, Map<string, FixedRoute>> {
  const byPath = new Map<string, Map<string, FixedRoute>>();
  for (const path of new Set(routers.flatMap((router) => router.stack.map((layer) => layer.path)))) {
    // A path may also be an expression.
    if (typeof path !== 'string' || !PLAIN_PATH.test(path)) continue;
    const byMethod = new Map<string, FixedRoute>();
    for (const method of routers.flatMap(({ methods }) => methods)) {
      const handlers = handlersOf(routers, path, method);
      if (handlers !== null) byMethod.set(method, { path, handlers });
    }
    byPath.set(path, byMethod);
  }
  return byPath;
}

/** By method and number of segments. Paths without parameters are among them, so that a path that both would take is seen to be one. */
function patternsOf(routers: readonly Router[]): Map<string, Map<number, Pattern[]>> {
  const byMethod = new Map<string, Map<number, Pattern[]>>();
  for (const router of routers) {
    if (router.host !== undefined) break;
    if (router.stack.some(({ path, methods }) => !PATTERN_PATH.test(`${path}`) || methods.length === 0)) break;
    for (const { path, methods, stack } of router.stack) {
      const parts = `${path}`.split('/');
      const segments = parts.map((part) => (part.startsWith(':') ? null : part));
      const params = parts.flatMap((part, at) => (part.startsWith(':') ? [[part.slice(1), at] as const] : []));
      const pattern = { path: `${path}`, segments, params, handlers: stack as RouterMiddleware[] };
      for (const method of methods) {
        const byLength = byMethod.get(method) ?? new Map<number, Pattern[]>();
        byMethod.set(method, byLength.set(parts.length, [...(byLength.get(parts.length) ?? []), pattern]));
      }
    }
  }
  return byMethod;
}

/** Handlers of the first router that matches the request; null when there is none, or when a route with a parameter comes first. */
function handlersOf(routers: readonly Router[], path: string, method: string): RouterMiddleware[] | null {
  for (const router of routers) {
    const { route, pathAndMethod } = router.match(path, method);
    if (route === false) continue;
    if (router.host !== undefined || pathAndMethod.some(({ paramNames }) => paramNames.length > 0)) return null;
    return pathAndMethod.flatMap(({ stack }) => stack as RouterMiddleware[]);
  }
  return null;
}

/**
 * Runs handlers as Koa does: a synchronous throw becomes a rejection. Not an async function, which would cost a microtask turn per handler.
 */
function run(
  handlers: readonly RouterMiddleware[],
  at: number,
  ctx: Parameters<RouterMiddleware>[0],
  next: () => Promise<unknown>,
): Promise<unknown> {
  const handler = handlers[at];
  if (handler === undefined) return next();
  try {
    return Promise.resolve(handler(ctx, () => run(handlers, at + 1, ctx, next)));
  } catch (error) {
    return Promise.reject(error instanceof Error ? error : new Error(String(error)));
  }
}
