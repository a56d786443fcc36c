import Router from '@koa/router';
import { rateLimit } from '../rate-limit.js';
import { bookHandler } from './book.js';
import { decompositionHandler } from './decomposition.js';
import type { ReadDeps } from './deps.js';
import { fillsHandler } from './fills.js';
import { healthHandler } from './health.js';
import { limitsHandler } from './limits.js';
import { pairsHandler } from './pairs.js';

/** The public read API. Answers are never cached: each one is true when it is sent. */
export function readRoutes(deps: ReadDeps): Router {
  const router = new Router();
  router.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  router.use('/v0', rateLimit({ name: 'read', requests: deps.requestsPerMinute, windowSec: 60 }));
  router.get('/health', healthHandler(deps));
  router.get('/v0/pairs', pairsHandler(deps));
  router.get('/v0/book/:pair', bookHandler(deps));
  router.get('/v0/makers/:maker/limits', limitsHandler(deps));
  router.get('/v0/fills', fillsHandler(deps));
  router.get('/v0/fills/:fill_seq/decomposition', decompositionHandler(deps));
  return router;
}
