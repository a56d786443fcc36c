import Router from '@koa/router';
import { stringify } from '../../core/json.js';
import { answer } from './answer.js';
import { exchangeHandler } from './exchange.js';
import { answerInfo } from './info/registry.js';
import type { InfoDeps } from './info/types.js';

/** POST /exchange and POST /info. */
export function ordersRoutes(deps: InfoDeps): Router {
  const router = new Router();
  const exchange = exchangeHandler(deps.gateway);
  router.post('/exchange', (ctx) =>
    // Replies of the exchange hold no bigint, so the plain serialiser does.
    answer(ctx, async (body) => JSON.stringify(await exchange(body, { socket: ctx.req.socket, address: ctx.ip }))),
  );
  router.post('/info', (ctx) => answer(ctx, async (body) => stringify(await answerInfo(body, deps))));
  return router;
}
