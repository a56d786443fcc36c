import type { RouterMiddleware } from '@koa/router';
import { stringify } from '../../core/json.js';
import { answer } from './answer.js';
import { answerInfo } from './info/registry.js';
import type { InfoDeps } from './info/types.js';
import { answerWeight, queryWeight } from './info/weights.js';
import { MAX_INFO_BYTES } from './limits.js';
import type { Socket } from 'node:net';
import type { ExchangeReply } from './types.js';
import type { Gateway } from './engine.js';
import type { ConnectionHint } from './verify.js';

/** Dependencies of the order interface: those of queries, and one reader of signed actions for both endpoints. */
export interface OrderEndpointDeps extends InfoDeps {
  exchange: ExchangeHandler;
}

/** POST /exchange. */
export const exchangeEndpoint =
  ({ exchange }: OrderEndpointDeps): RouterMiddleware =>
  (ctx) => {
    const origin = { socket: ctx.req.socket, address: ctx.ip };
    // Replies of the exchange hold no bigint, so the plain serialiser does.
    return answer(ctx, async (body, bytes) => JSON.stringify(await exchange.serve(body, origin, bytes)), {
      parse: (text) => exchange.parse(text, origin),
    });
  };

/** POST /info. Its budget of queries is that of the client's address, unless a maker has signed over the connection. */
export const infoEndpoint =
  (deps: OrderEndpointDeps): RouterMiddleware =>
  (ctx) =>
    answer(
      ctx,
      async (body) => {
        const origin = { socket: ctx.req.socket, address: ctx.ip };
        const queries = deps.exchange.isProven(origin) ? undefined : deps.queries;
        queries?.take(origin.address, queryWeight(body));
        const reply = await answerInfo(body, deps);
        queries?.add(origin.address, answerWeight(body, reply));
        return stringify(reply);
      },
      { maxBytes: MAX_INFO_BYTES },
    );

/** Where a request came from: its connection, and the client's address, which a proxy may have named. */
interface RequestOrigin {
  socket: Socket;
  address: string;
}

/** Reads and serves requests of POST /exchange. */
interface ExchangeHandler {
  /** The JSON value of a body, or a promise of it. Throws SyntaxError. */
  parse(text: string, origin: RequestOrigin): unknown;
  serve(body: unknown, origin: RequestOrigin, bytes: number): Promise<ExchangeReply>;
  /** The last signature over the connection was of a signer that may act. */
  isProven(origin: RequestOrigin): boolean;
}

/** Hints of a connection are kept while it is open, and only as long as a proxy sends the same client over it. */
export function exchangeHandler(gateway: Gateway): ExchangeHandler {
  const hints = new WeakMap<Socket, ConnectionHint>();

  function hintOf({ socket, address }: RequestOrigin): ConnectionHint {
    const known = hints.get(socket);
    if (known?.address === address) return known;
    const hint = { address };
    hints.set(socket, hint);
    return hint;
  }

  return {
    parse: (text, origin) => gateway.parse(text, hintOf(origin)),
    serve: async (body, origin, bytes) => (await gateway.submit(body, hintOf(origin), bytes)).reply,
    isProven: (origin) => hintOf(origin).isProven === true,
  };
}
