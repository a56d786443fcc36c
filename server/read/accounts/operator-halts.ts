import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { Stop } from '../../../ledger/views/stops.js';
import type { ReadDeps } from '../deps.js';
import { lostBody, lostSchema } from '../lost.js';
import { integerSchema } from '../schemas.js';

/** Most halts and most reversals of one answer. */
const HALTS_LIMIT = 20;
const REVERSALS_LIMIT = 5;

export const operatorHaltsSchema = z
  .strictObject({
    /** The newest, newest first. */
    halts: z
      .array(
        z.strictObject({
          code: z.string(),
          message: z.string(),
          by_operator: z.boolean(),
          time_ms: integerSchema,
          /** Null while it stands. */
          ended_ms: integerSchema.nullable(),
          /** `resume`: by the operator's command; `reversal`: the ledger followed the chain. */
          ended_by: z.enum(['resume', 'reversal']).nullable(),
        }),
      )
      .max(HALTS_LIMIT),
    /** The newest, newest first, each with the fills that it took back and the makers who had been told of them. */
    reversals: z.array(lostSchema).max(REVERSALS_LIMIT),
  })
  .meta({ id: 'OperatorHalts' });

/** GET /v0/operator/halts: what stopped the platform, when it went on, and what the chain took back. */
export function operatorHaltsHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const { halts, reversals } = await deps.store.stops({ halts: HALTS_LIMIT, reversals: REVERSALS_LIMIT });
    const body: z.infer<typeof operatorHaltsSchema> = {
      halts: halts.map(haltBody),
      reversals: reversals.map((one) => lostBody(one, deps.markets())),
    };
    ctx.body = body;
  };
}

const haltBody = ({ code, message, timeMs, byOperator, ended }: Stop) => ({
  ...{ code, message, by_operator: byOperator },
  time_ms: timeMs,
  ended_ms: ended?.timeMs ?? null,
  ended_by: ended?.by ?? null,
});
