import Router from '@koa/router';
import type { Middleware } from 'koa';
import { notModified, tagOf } from '../etag.js';
import { openApiDocument, type DocumentInfo } from './document.js';
import { asyncApiDocument } from '../stream/document.js';
import type { Endpoint } from './endpoint.js';
import { documentPage } from './page.js';

/** GET /openapi.json, GET /asyncapi.json and GET /docs. They are built once; an unchanged one costs a client no bytes (ETag). `limit` counts requests. */
export function openApiRoutes(endpoints: readonly Endpoint[], info: DocumentInfo, limit: Middleware): Router {
  const document = openApiDocument(endpoints, info);
  const router = new Router();
  serve(router, limit, '/openapi.json', 'application/json', JSON.stringify(document, null, 2));
  serve(router, limit, '/asyncapi.json', 'application/json', JSON.stringify(asyncApiDocument(info), null, 2));
  serve(router, limit, '/docs', 'text/html', documentPage(document));
  return router;
}

function serve(router: Router, limit: Middleware, path: string, type: string, body: string): void {
  const etag = `"${tagOf(body)}"`;
  router.get(path, limit, (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=60');
    if (notModified(ctx, etag)) return;
    ctx.type = type;
    ctx.body = body;
  });
}
