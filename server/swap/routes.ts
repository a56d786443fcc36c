import Router from '@koa/router';
import { rateLimit } from '../rate-limit.js';
import type { SwapDeps } from './deps.js';
import { orderHandler } from './order.js';
import { createQuoteStore } from './quote-store.js';
import { quoteHandler } from './quote.js';
import { submitHandler } from './submit.js';
import { tokensHandler } from './tokens.js';

/** The swap API: tokens, quotes, signed orders and how they fare. `deploymentId` tells our Permit2 nonces from others. */
export function swapRoutes(deps: SwapDeps, deploymentId: string): Router {
  const router = new Router({ prefix: '/api/v1' });
  const { limits, nowMs } = deps;
  const domain = { chainId: deps.chainId, permit2: deps.permit2, spender: deps.settler };
  const store = createQuoteStore(deps.db, domain, deploymentId);
  router.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  router.get('/tokens', rateLimit(limits.tokens, nowMs), tokensHandler(deps));
  router.post('/quote', rateLimit(limits.quotes, nowMs), quoteHandler(deps, store));
  router.post('/orders', rateLimit(limits.submissions, nowMs), submitHandler(deps));
  router.get('/orders/:orderId', rateLimit(limits.orders, nowMs), orderHandler(deps));
  return router;
}
