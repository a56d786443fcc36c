import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { notModified, tagOf } from '../rendered.js';
import { openApiDocument, type DocumentInfo } from './document.js';
import { asyncApiDocument } from '../stream/document.js';
import type { Endpoint } from './endpoint.js';
import { documentPage, PAGE_POLICY } from './page.js';

/** GET /openapi.json, GET /asyncapi.json and GET /docs/reference. They are built once; an unchanged one costs a client no bytes (ETag). `limit` counts requests. */
export function openApiRoutes(endpoints: readonly Endpoint[], info: DocumentInfo, limit: Middleware): Router {
  const document = openApiDocument(endpoints, info);
  const router = new Router();
  serve(router, limit, '/openapi.json', 'application/json', JSON.stringify(document, null, 2));
  serveStream(router, limit, info);
  serve(router, limit, '/docs/reference', 'text/html', documentPage(document), {
    'Content-Security-Policy': PAGE_POLICY,
  });
  return router;
}

/**
 * An AsyncAPI document must name a host; without a configured URL it names the host of the request. Making the document takes milliseconds
 * and clients choose the host: for each only the server is written, and nothing is kept.
 */
function serveStream(router: Router, limit: Middleware, info: DocumentInfo): void {
  const document = asyncApiDocument(info);
  const own = document.servers;
  const text = JSON.stringify({ ...document, servers: PLACE }, null, 2);
  const [before = '', after = ''] = text.split(JSON.stringify(PLACE));
  const tag = tagOf(text);
  router.get('/asyncapi.json', limit, (ctx) => {
    const servers = textOf((info.url === null ? serversOf(ctx) : null) ?? own);
    ctx.set('Cache-Control', 'public, max-age=60');
    ctx.vary('Host');
    if (notModified(ctx, `"${tagOf(tag + servers)}"`)) return;
    ctx.type = 'application/json';
    ctx.body = before + servers + after;
  });
}

const PLACE = '<servers>';

/** Of a field of the document. */
const textOf = (value: unknown): string => JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');

/** The server that a request came to; null when its Host header names none. */
function serversOf({ protocol, host }: Pick<Context, 'protocol' | 'host'>): object | null {
  const url = `${protocol}://${host}`;
  if (!HOST.test(host) || !URL.canParse(url)) return null;
  return { server: { host: new URL(url).host, protocol: protocol === 'https' ? 'wss' : 'ws' } };
}

/** A host name or address, and a port: nothing else of the client's Host header gets into the answer. */
const HOST = /^(?:[a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

function serve(
  router: Router,
  limit: Middleware,
  path: string,
  type: string,
  body: string,
  headers: Record<string, string> = {},
): void {
  const etag = `"${tagOf(body)}"`;
  router.get(path, limit, (ctx) => {
    ctx.set({ 'Cache-Control': 'public, max-age=60', ...headers });
    if (notModified(ctx, etag)) return;
    ctx.type = type;
    ctx.body = body;
  });
}
