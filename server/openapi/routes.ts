import Router from '@koa/router';
import type { Middleware } from 'koa';
import { notModified, tagOf } from '../rendered.js';
import { openApiDocument, type DocumentInfo } from './document.js';
import { asyncApiDocument } from '../stream/document.js';
import type { Endpoint } from './endpoint.js';
import { documentPage } from './page.js';

/** GET /openapi.json, GET /asyncapi.json and GET /docs. They are built once; an unchanged one costs a client no bytes (ETag). `limit` counts requests. */
export function openApiRoutes(endpoints: readonly Endpoint[], info: DocumentInfo, limit: Middleware): Router {
  const document = openApiDocument(endpoints, info);
  const router = new Router();
  serve(router, limit, '/openapi.json', 'application/json', JSON.stringify(document, null, 2));
  serveStream(router, limit, info);
  serve(router, limit, '/docs', 'text/html', documentPage(document));
  return router;
}

/** AsyncAPI names a host, so that without a URL of its own the document says the one that it was asked at. */
function serveStream(router: Router, limit: Middleware, info: DocumentInfo): void {
  const ofHost = (url: string | null): string => JSON.stringify(asyncApiDocument({ ...info, url }), null, 2);
  const known = info.url === null ? null : ofHost(info.url);
  router.get('/asyncapi.json', limit, (ctx) => {
    const body = known ?? ofHost(HOST.test(ctx.host) ? `${ctx.protocol}://${ctx.host}` : null);
    ctx.set('Cache-Control', 'public, max-age=60');
    ctx.vary('Host');
    if (notModified(ctx, `"${tagOf(body)}"`)) return;
    ctx.type = 'application/json';
    ctx.body = body;
  });
}

/** A name or an address, and a port: nothing else of what a client sends gets into the answer. */
const HOST = /^(?:[a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

function serve(router: Router, limit: Middleware, path: string, type: string, body: string): void {
  const etag = `"${tagOf(body)}"`;
  router.get(path, limit, (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=60');
    if (notModified(ctx, etag)) return;
    ctx.type = type;
    ctx.body = body;
  });
}
