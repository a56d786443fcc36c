import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { integerSchema } from './schemas.js';

/** The process answers; whether inventory is safe to quote against is in GET /v0/makers/{maker}/limits. */
export const healthSchema = z
  .strictObject({
    status: z.literal('ok'),
    version: z.string(),
    chain_id: integerSchema,
    deployment_id: z.string(),
    /** Newest block that the chain's node named; null until it has been asked once. */
    block_number: integerSchema.nullable(),
  })
  .meta({ id: 'Health' });

/** GET /health. It uses neither database nor chain, so that it answers even when those are down. */
export function healthHandler(deps: ReadDeps): RouterMiddleware {
  return (ctx) => {
    const body: z.infer<typeof healthSchema> = {
      status: 'ok',
      version: deps.version,
      chain_id: deps.chainId,
      deployment_id: deps.deploymentId,
      block_number: deps.watcher().head,
    };
    ctx.body = body;
  };
}
