import Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { stringify } from '../../core/json.js';
import { WireError } from '../../core/wire/errors.js';
import { BodyError, readJsonBody } from './body.js';
import { exchangeHandler } from './exchange.js';
import { answerInfo } from './info/registry.js';
import type { InfoDeps } from './info/types.js';
import { GatewayUnavailableError, RateLimitedError } from './refusals.js';

/** What clients of this wire expect to read when a request has another shape than any that is known. */
const SHAPE_TEXT = 'Failed to deserialize the JSON body into the target type';

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

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers with the JSON text, a bare string or null included; refusals of the request itself are plain text. */
async function answer(ctx: RouterContext, serve: (body: unknown) => Promise<string>): Promise<void> {
  try {
    const reply = await serve(await readJsonBody(ctx.req));
    ctx.status = 200;
    ctx.set('Content-Type', JSON_TYPE);
    ctx.body = reply;
  } catch (error) {
    if (error instanceof RateLimitedError) {
      ctx.status = 429;
      ctx.set('Retry-After', String(error.retryAfterSec));
      ctx.type = 'application/json';
      ctx.body = 'null';
      return;
    }
    const { status, message } = refusalOf(error);
    ctx.status = status;
    ctx.type = 'text/plain';
    ctx.body = message;
  }
}

/** Rethrows what is nobody's fault but ours. */
function refusalOf(error: unknown): { status: number; message: string } {
  if (error instanceof BodyError) return { status: error.status, message: error.message };
  if (error instanceof WireError) return { status: 422, message: `${SHAPE_TEXT}: ${error.message}` };
  if (error instanceof GatewayUnavailableError) return { status: 503, message: error.message };
  throw error;
}
