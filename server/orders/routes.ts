import Router from '@koa/router';
import { stringify } from '../../core/json.js';
import { answer } from './answer.js';
import { exchangeHandler } from './exchange.js';
import { answerInfo } from './info/registry.js';
import type { InfoDeps } from './info/types.js';
import { MAX_INFO_BYTES } from './limits.js';

/** POST /exchange and POST /info. */
export function ordersRoutes(deps: InfoDeps): Router {
  const router = new Router();
  const exchange = exchangeHandler(deps.gateway);
  router.post('/exchange', (ctx) => {
    const origin = { socket: ctx.req.socket, address: ctx.ip };
    // Replies of the exchange hold no bigint, so the plain serialiser does.
    return answer(ctx, async (body, bytes) => JSON.stringify(await exchange.serve(body, origin, bytes)), {
      parse: (text) => exchange.parse(text, origin),
    });
  });
  router.post('/info', (ctx) =>
    answer(
      ctx,
      async (body) => {
        const origin = { socket: ctx.req.socket, address: ctx.ip };
        const queries = exchange.isProven(origin) ? undefined : deps.queries;
        queries?.take(origin.address);
        const text = stringify(await answerInfo(body, deps));
        queries?.answered(origin.address, text.length);
        return text;
      },
      { maxBytes: MAX_INFO_BYTES },
    ),
  );
  return router;
}
