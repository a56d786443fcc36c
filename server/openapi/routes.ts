import Router from '@koa/router';
import { createHash } from 'node:crypto';
import { openApiDocument, type DocumentInfo } from './document.js';
import type { Endpoint } from './endpoint.js';
import { documentPage } from './page.js';

/** GET /openapi.json and GET /docs. Both are built once; an unchanged one costs a client no bytes (ETag). */
export function openApiRoutes(endpoints: readonly Endpoint[], info: DocumentInfo): Router {
  const document = openApiDocument(endpoints, info);
  const router = new Router();
  serve(router, '/openapi.json', 'application/json', JSON.stringify(document, null, 2));
  serve(router, '/docs', 'text/html', documentPage(document));
  return router;
}

function serve(router: Router, path: string, type: string, body: string): void {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  router.get(path, (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=60');
    ctx.set('ETag', etag);
    ctx.status = 200;
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    ctx.type = type;
    ctx.body = body;
  });
}
