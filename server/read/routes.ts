import Router from '@koa/router';
import { rateLimit } from '../rate-limit.js';
import { bookHandler } from './book.js';
import { checkpointHandler, proofHandler } from './checkpoint.js';
import { curveHandler } from './curve.js';
import { decompositionHandler } from './decomposition.js';
import type { ReadDeps } from './deps.js';
import { feesHandler } from './fees.js';
import { fillsHandler } from './fills.js';
import { healthHandler } from './health.js';
import { limitsHandler } from './limits.js';
import { pairsHandler } from './pairs.js';
import { statusHandler } from './status.js';
import { withdrawalsHandler } from './withdrawals.js';

/** The public read API. Answers are never cached: each one is true when it is sent. */
export function readRoutes(deps: ReadDeps): Router {
  const router = new Router();
  router.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  router.use('/v0', rateLimit({ name: 'read', requests: deps.requestsPerMinute, windowSec: 60 }));
  router.get('/health', healthHandler(deps));
  router.get('/v0/status', statusHandler(deps));
  router.get('/v0/pairs', pairsHandler(deps));
  router.get('/v0/book/:pair', bookHandler(deps));
  router.get('/v0/curves/:pair/:curve_seq', curveHandler(deps));
  router.get('/v0/makers/:maker/limits', limitsHandler(deps));
  router.get('/v0/fills', fillsHandler(deps));
  router.get('/v0/fills/:fill_seq/decomposition', decompositionHandler(deps));
  router.get('/v0/makers/:maker/withdrawals', withdrawalsHandler(deps));
  router.get('/v0/checkpoints/latest', checkpointHandler(deps));
  router.get('/v0/checkpoints/latest/proof', proofHandler(deps));
  router.get('/v0/fees', feesHandler(deps));
  return router;
}
