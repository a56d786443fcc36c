import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { notFound } from './errors.js';
import { notModified, tagOf } from './rendered.js';

/** Output folder of `npm run build` for the console. */
const BUILT = fileURLToPath(new URL('../dist/web/', import.meta.url));

/** Paths of its pages; the same HTML is served at each, and its script routes by path. */
const PAGES = ['/', '/market', '/market/:pair', '/swap', '/maker', '/operator', '/fills/:pair/:seq'];

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css', json: 'application/json' };

/**
 * Content security policy: scripts and styles come from this server only, no other site may frame the page, and it connects only to this
 * server and to the chain's endpoint that GET /v0/deployment names, if any. Images may also be data URLs.
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

/** Only the origin of a URL, since its path may hold a key; null for other schemes than http and https. */
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
 * GET / and the other pages of the console, GET /docs and the pages below it, and what they load from /assets. Read once; without a build
 * there are no such pages, and null is returned. Files in /assets are named by their contents, so they may be cached for ever; pages must
 * be revalidated. `limit` counts requests.
 */
export function consoleRoutes(
  limit: Middleware,
  { rpcUrl = null, folder = BUILT }: ConsoleOptions = {},
): Router | null {
  const built = readBuilt(folder);
  if (built === null) return null;
  const router = new Router();
  const page = pageOf(built.page);
  const policy = policyOf(rpcUrl);
  for (const path of PAGES) router.get(path, limit, (ctx) => sendPage(ctx, page, policy));
  // Paths are case-sensitive, because codes of errors are.
  const docs = new Map(Object.entries(built.docs).map(([path, html]) => [path, pageOf(html)]));
  const unknown = docs.get('404');
  for (const path of ['/docs', '/docs/{*rest}']) {
    router.get(path, limit, (ctx) => {
      const found = docs.get(ctx.path.length > 1 && ctx.path.endsWith('/') ? ctx.path.slice(0, -1) : ctx.path);
      const shown = found ?? unknown;
      if (shown === undefined) throw notFound('No such page');
      sendPage(ctx, shown, policyOf(null), found === undefined ? 404 : 200);
    });
  }
  router.get('/assets/:name', limit, (ctx) => {
    const { name = '' } = ctx.params as { name?: string };
    const file = built.assets.get(name);
    if (file === undefined) {
      // Outside the APIs an error is plain text.
      ctx.status = 404;
      ctx.type = 'text/plain';
      ctx.body = `No such file: ${name.slice(0, 80)}`;
      return;
    }
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.type = file.type;
    ctx.body = file.body;
  });
  return router;
}

interface Page {
  html: string;
  tag: string;
}

const pageOf = (html: string): Page => ({ html, tag: `"${tagOf(html)}"` });

function sendPage(ctx: Context, { html, tag }: Page, policy: string, status: 200 | 404 = 200): void {
  ctx.set('Content-Security-Policy', policy);
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.set('Cache-Control', 'no-cache');
  if (status === 200 && notModified(ctx, tag)) return;
  ctx.status = status;
  ctx.type = 'text/html';
  ctx.body = html;
}

interface Built {
  page: string;
  /** Pages of the docs by their paths; the one of `404` stands for all others. */
  docs: Readonly<Record<string, string>>;
  assets: ReadonlyMap<string, { type: string; body: Buffer }>;
}

function readBuilt(folder: string): Built | null {
  try {
    const page = readFileSync(join(folder, 'index.html'), 'utf8');
    const names = readdirSync(join(folder, 'assets')).filter((name) => TYPES[ending(name)] !== undefined);
    const assets = names.map(
      (name) => [name, { type: TYPES[ending(name)] ?? '', body: readFileSync(join(folder, 'assets', name)) }] as const,
    );
    const docs = JSON.parse(readFileSync(join(folder, 'docs.json'), 'utf8')) as Record<string, string>;
    return { page, docs, assets: new Map(assets) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

const ending = (name: string): string => name.slice(name.lastIndexOf('.') + 1);
