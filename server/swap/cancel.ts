import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { cancellationTypedData } from '../../core/swap/typed-data.js';
import { cancelOrder } from '../../ledger/swaps/swap-cancellations.js';
import { readOrder } from '../../ledger/swaps/swap-log.js';
import { codeAt } from '../../liquidity/eth.js';
import { ApiError, badRequest, notFound } from '../errors.js';
import { readBody } from './body.js';
import type { SwapDeps } from './deps.js';
import { ORDER_ID, orderStatus } from './order.js';
import { DEFAULT_CHECK_GAS, acceptedSignature, digestOf } from './signature.js';
import { signatureSchema } from './submit.js';

export const cancellationSchema = z.object({ signature: signatureSchema });

/**
 * DELETE /api/v1/orders/{orderId}: cancels an order by its owner's signature, free of charge, unless a transaction was sent for it. A
 * repeated request gets the same answer.
 */
export function cancelHandler(deps: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const id = ctx.params['orderId'] ?? '';
    if (!ORDER_ID.test(id)) throw notFound(`Unknown order: ${id.slice(0, 64)}`);
    const { signature } = await readBody(ctx.req, cancellationSchema);
    const order = await readOrder(deps.db.knex, id);
    if (order === null) throw notFound(`Unknown order: ${id}`);
    const { eth, permit2, settler, chainId, maxGas = DEFAULT_CHECK_GAS } = deps;
    const { owner } = order;
    const code = await codeAt(eth, owner);
    const digest = digestOf(cancellationTypedData(id, { chainId, settler }));
    const signed = await acceptedSignature(eth, { owner, code }, digest, signature, { maxGas, permit2 });
    if (signed === null)
      throw badRequest(`Invalid signature: it is not that of ${owner} over the order's cancellation`);
    const result = await cancelOrder(deps.db, { orderId: id, signature: signed, timeMs: deps.nowMs() });
    const status = await orderStatus(deps.db, order);
    if (result === 'sent' && status === 'pending') throw tooLate(id);
    if (result !== 'cancelled') throw ended(id, status);
    ctx.body = { orderId: id, quoteId: order.quoteId, status };
  };
}

const tooLate = (id: string): ApiError =>
  new ApiError(
    409,
    'ORDER_SENT',
    `Order ${id} was sent already and may be filled; invalidate its nonce at Permit2 to keep it from being sent again`,
  );

const ended = (id: string, status: string): ApiError => new ApiError(409, 'ORDER_ENDED', `Order ${id} is ${status}`);
