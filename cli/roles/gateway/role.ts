import { z } from 'zod';
import { createCompactor, LEAST_AGE_MS } from '../../../keepers/compactor.js';
import type { Loop } from '../../../keepers/loop.js';
import type { Writer } from '../../../ledger/types.js';
import { MAX_CLOSED_ORDERS } from '../../../server/orders/limits.js';
import type { BaseConfig } from '../../base-config.js';
import { httpUrl, integer } from '../../settings/fields.js';
import { defineRole } from '../role.js';
import type { RoleContext } from '../context.js';

const gatewaySettings = {
  RETENTION_HOURS: integer(1, 87_600, 72).describe(
    'age from which rows of the order log are compacted, once no curve that may still be executed was cut from them',
  ),
  RETENTION_ROWS: integer(0, 1_000_000_000, 2_000_000).describe(
    `most rows of the order log that are kept for their age: beyond the newest so many, others are compacted before they are RETENTION_HOURS old, but not before ${LEAST_AGE_MS / 60_000} minutes, nor while a curve that may still be executed was cut from them; 0 for no limit`,
  ),
  ORDER_SOURCES: z
    .string()
    .default('a,b')
    .transform((list) => list.split(',').map((source) => source.trim()))
    .pipe(z.array(z.enum(['a', 'b'])).min(1))
    .describe('accepted source letters of signed actions'),
  READ_REQUESTS_PER_MINUTE: integer(1, 1_000_000, 6_000).describe('requests to /v0 per client address and minute'),
  PUBLIC_URL: httpUrl.optional().describe('base URL as clients see it, for /openapi.json'),
  ORDER_FAILURES_PER_MINUTE: integer(1, 1_000_000, 120).describe(
    'signatures of unknown accounts per minute and IP address before further ones are refused there; a request counts once more for each 8 KiB',
  ),
  QUERIES_PER_MINUTE: integer(1, 10_000_000, 6_000).describe(
    'points of queries of the order interface, by their weights (docs/orders.md), and of WebSocket messages without an action, per minute and IP address',
  ),
};

/** Takes orders, and serves the public interfaces. */
export const gateway = defineRole({
  name: 'gateway',
  signs: false,
  settings: gatewaySettings,
  status: ({ lastOrderMs }) => ({ lastActMs: lastOrderMs }),
  async start({ context, signal, writer, serve, wakeBy }) {
    const { onGeneration } = await serve(writer);
    signal.throwIfAborted();
    wakeBy(['generations'], onGeneration);
    return [startCompactor(context, writer, signal)];
  },
});

type GatewaySettings = z.output<z.ZodObject<typeof gatewaySettings>>;

/** Compacts old rows of the order log, beside the gateway that writes it. */
export function startCompactor(
  { config, logger, nowMs }: Pick<RoleContext<BaseConfig & GatewaySettings>, 'config' | 'logger' | 'nowMs'>,
  writer: Writer,
  signal: AbortSignal,
): Loop {
  const retentionMs = config.RETENTION_HOURS * 3_600_000;
  const maxRows = config.RETENTION_ROWS;
  return createCompactor({ writer, retentionMs, maxRows, closedOrders: MAX_CLOSED_ORDERS, nowMs, logger }).start(
    signal,
  );
}
