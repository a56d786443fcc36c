import Router from '@koa/router';
import type { Registry } from 'prom-client';

export interface OpsDeps {
  registry: Registry;
  /** Null while everything that this process runs is alive; else what is not. A restart is the remedy. */
  failure(): string | null;
  /** Whether requests should be sent here: the ledger's readiness, and for a gateway that it owns its log. */
  readiness(): { ready: boolean; reason: string | null };
}

/** For machines that watch this process, on a port that the public does not reach: GET /metrics, /live and /ready. */
export function opsRoutes({ registry, failure, readiness }: OpsDeps): Router {
  const router = new Router();
  router.get('/metrics', async (ctx) => {
    ctx.body = await registry.metrics();
    ctx.set('content-type', registry.contentType);
  });
  router.get('/live', (ctx) => {
    const problem = failure();
    ctx.status = problem === null ? 200 : 503;
    ctx.body = { live: problem === null, problem };
  });
  router.get('/ready', (ctx) => {
    const { ready, reason } = readiness();
    ctx.status = ready ? 200 : 503;
    ctx.body = { ready, reason };
  });
  return router;
}
