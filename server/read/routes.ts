import Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import { accountHandler } from './account.js';
import { bookHandler } from './book.js';
import { checkpointHandler, proofHandler } from './checkpoint.js';
import { curveHandler } from './curve.js';
import { decompositionHandler } from './decomposition.js';
import { deploymentHandler } from './deployment.js';
import type { ReadDeps } from './deps.js';
import { feesHandler } from './fees.js';
import { fillsHandler } from './fills.js';
import { healthHandler } from './health.js';
import { limitsHandler } from './limits.js';
import { pairsHandler } from './pairs.js';
import { statusHandler, statusReader } from './status.js';
import { withdrawalsHandler } from './withdrawals.js';

/**
 * The public read API. What an answer says is true when it is sent: balances are never to be kept, and what is the same for everybody
 * has a tag by which a client can ask whether its copy still is.
 */
export function readRoutes(deps: ReadDeps): Router {
  const router = new Router();
  const get = (path: string, handler: RouterMiddleware): void =>
    void router.get(path, notKept, deps.limits.read, handler);
  router.get('/health', notKept, deps.limits.health, healthHandler(deps));
  get('/v0/deployment', deploymentHandler(deps));
  get('/v0/status', statusHandler(statusReader(deps)));
  get('/v0/pairs', pairsHandler(deps));
  get('/v0/book/:pair', bookHandler(deps));
  get('/v0/curves/:pair/:curve_seq', curveHandler(deps));
  get('/v0/makers/:maker/account', accountHandler(deps));
  get('/v0/makers/:maker/limits', limitsHandler(deps));
  get('/v0/fills', fillsHandler(deps));
  get('/v0/fills/:fill_seq/decomposition', decompositionHandler(deps));
  get('/v0/makers/:maker/withdrawals', withdrawalsHandler(deps));
  get('/v0/checkpoints/latest', checkpointHandler(deps));
  get('/v0/checkpoints/latest/proof', proofHandler(deps));
  get('/v0/fees', feesHandler(deps));
  return router;
}

/** What is not said to be kept is not to be. */
const notKept: RouterMiddleware = (ctx, next) => {
  ctx.set('Cache-Control', 'no-store');
  return next();
};
