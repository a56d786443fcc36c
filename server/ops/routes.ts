import Router from '@koa/router';
import type { Registry } from 'prom-client';

/** For machines that watch this process, on a port that the public does not reach: GET /metrics. */
export function metricsRoutes(registry: Registry): Router {
  const router = new Router();
  router.get('/metrics', async (ctx) => {
    ctx.body = await registry.metrics();
    ctx.set('content-type', registry.contentType);
  });
  return router;
}
