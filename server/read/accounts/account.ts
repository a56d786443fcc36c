import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from '../deps.js';
import { addressOf } from '../params.js';
import { addressSchema, integerSchema } from '../schemas.js';

export const accountSchema = z
  .strictObject({
    maker: addressSchema,
    approval: z.enum(['approved', 'suspended', 'none']),
    acts_for: addressSchema.nullable(),
    agents: z.array(z.strictObject({ address: addressSchema, name: z.string(), valid_until_ms: integerSchema })),
    /** When its scheduled cancel takes effect; null when none is armed. */
    scheduled_cancel_ms: integerSchema.nullable(),
    /** How many came due on this UTC day, of ten. */
    scheduled_cancels_today: integerSchema,
    open_orders: integerSchema,
  })
  .meta({ id: 'Account' });

/** GET /v0/makers/{maker}/account: whether it may quote, its agents, and its scheduled cancel. Unknown addresses have none. */
export function accountHandler(deps: ReadDeps): RouterMiddleware {
  return (ctx) => {
    const maker = addressOf(ctx.params.maker ?? '');
    const { approval, actsFor, agents, scheduledCancelMs, scheduledCancelsToday, openOrders } = deps.account(maker);
    const body: z.infer<typeof accountSchema> = {
      maker,
      approval,
      acts_for: actsFor,
      agents: agents.map(({ address, name, validUntilMs }) => ({ address, name, valid_until_ms: validUntilMs })),
      scheduled_cancel_ms: scheduledCancelMs,
      scheduled_cancels_today: scheduledCancelsToday,
      open_orders: openOrders,
    };
    ctx.body = body;
  };
}
