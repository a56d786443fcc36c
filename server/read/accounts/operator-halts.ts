import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { stringify } from '../../../core/json.js';
import type { Stop } from '../../../ledger/views/stops.js';
import { sendText } from '../../rendered.js';
import type { ReadDeps } from '../deps.js';
import { lostBody, lostSchema } from '../lost.js';
import { integerSchema } from '../schemas.js';
import { sharedFor, STATUS_MAX_AGE_MS } from '../status.js';

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

/**
 * GET /v0/operator/halts: what stopped the platform, when it went on, and what the chain took back. What reversals took back may be thousands of fills,
 * so that an answer is made at most once a second and shared.
 */
export function operatorHaltsHandler(deps: ReadDeps): RouterMiddleware {
  const read = sharedFor(STATUS_MAX_AGE_MS, deps.nowMs, async (): Promise<string> => {
    const { halts, reversals } = await deps.store.stops({ halts: HALTS_LIMIT, reversals: REVERSALS_LIMIT });
    const body: z.infer<typeof operatorHaltsSchema> = {
      halts: halts.map(haltBody),
      reversals: reversals.map((one) => lostBody(one, deps.markets())),
    };
    return stringify(body);
  });
  return async (ctx) => sendText(ctx, await read());
}

const haltBody = ({ code, message, timeMs, byOperator, ended }: Stop) => ({
  ...{ code, message, by_operator: byOperator },
  time_ms: timeMs,
  ended_ms: ended?.timeMs ?? null,
  ended_by: ended?.by ?? null,
});
