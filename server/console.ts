import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import Router from '@koa/router';
import type { Middleware } from 'koa';
import { notFound } from './errors.js';
import { notModified, tagOf } from './rendered.js';

/** Where `npm run build` leaves the console. */
const BUILT = fileURLToPath(new URL('../dist/web/', import.meta.url));

/** Paths of its pages: the page itself knows what to show at each. */
const PAGES = ['/', '/market', '/market/:pair', '/swap', '/maker', '/operator', '/fills/:pair/:seq'];

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css' };

/**
 * Only what this server sends may run or be shown, no page of others may frame it, and it talks to nobody but this server and the chain's endpoint
 * that GET /v0/deployment names, if it names one. Pictures may also come with the page itself.
 */
function policyOf(rpcUrl: string | null): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self'${originOf(rpcUrl)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Of a URL only what says who is talked to; a path may hold a key, and nothing but http and https is talked. */
function originOf(url: string | null): string {
  if (url === null || !URL.canParse(url)) return '';
  const { origin, protocol } = new URL(url);
  return protocol === 'http:' || protocol === 'https:' ? ` ${origin}` : '';
}

interface ConsoleOptions {
  /** The chain's endpoint for clients; null where they are given none. */
  rpcUrl?: string | null;
  folder?: string;
}

/**
 * GET / and the other pages of the console, and what they load from /assets. Read once; without a build there are no such pages, and null is
 * returned. Files in /assets are named by their contents, so that they never change; the page is asked for each time. `limit` counts requests.
 */
export function consoleRoutes(
  limit: Middleware,
  { rpcUrl = null, folder = BUILT }: ConsoleOptions = {},
): Router | null {
  const built = readBuilt(folder);
  if (built === null) return null;
  const router = new Router();
  const policy = policyOf(rpcUrl);
  const tag = `"${tagOf(built.page)}"`;
  for (const path of PAGES) {
    router.get(path, limit, (ctx) => {
      ctx.set('Content-Security-Policy', policy);
      ctx.set('X-Content-Type-Options', 'nosniff');
      ctx.set('Referrer-Policy', 'no-referrer');
      ctx.set('Cache-Control', 'no-cache');
      if (notModified(ctx, tag)) return;
      ctx.type = 'text/html';
      ctx.body = built.page;
    });
  }
  router.get('/assets/:name', limit, (ctx) => {
    const { name = '' } = ctx.params as { name?: string };
    const file = built.assets.get(name);
    if (file === undefined) throw notFound(`No such file: ${name.slice(0, 80)}`);
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.type = file.type;
    ctx.body = file.body;
  });
  return router;
}

interface Built {
  page: string;
  assets: ReadonlyMap<string, { type: string; body: Buffer }>;
}

function readBuilt(folder: string): Built | null {
  try {
    const page = readFileSync(join(folder, 'index.html'), 'utf8');
    const names = readdirSync(join(folder, 'assets')).filter((name) => TYPES[ending(name)] !== undefined);
    const assets = names.map(
      (name) => [name, { type: TYPES[ending(name)] ?? '', body: readFileSync(join(folder, 'assets', name)) }] as const,
    );
    return { page, assets: new Map(assets) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

const ending = (name: string): string => name.slice(name.lastIndexOf('.') + 1);
