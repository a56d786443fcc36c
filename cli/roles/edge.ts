/** What an edge has beside a reader: the link to the gateway that owns the order log. */
import type { Logger } from 'pino';
import type { Db } from '../../ledger/types.js';
import { createBus } from '../../server/edge/bus.js';
import { createLink, type Link } from '../../server/edge/link.js';
import type { Config } from '../config.js';
import { busOf, EDGE } from '../settings/edge.js';

/** Connects to NATS, and looks for the gateway from now on; `close` ends both. The configuration has checked that NATS is set. */
export function startEdge(config: Config, db: Db, logger: Logger): Link {
  const settings = busOf(config);
  if (settings === null) throw new Error('an edge needs NATS_URL and EDGE_SECRET');
  const bus = createBus({ ...settings.bus, name: `curvebook ${EDGE}`, logger });
  const link = createLink({
    bus,
    db,
    secret: settings.secret,
    deploymentId: config.manifest.deploymentId,
    tickMs: config.EDGE_TICK_MS,
    timeoutMs: config.EDGE_TIMEOUT_MS,
    maxWaiting: config.EDGE_MAX_WAITING,
    clock: () => Date.now(),
    monotonicMs: () => performance.now(),
    logger,
  });
  return {
    ...link,
    async close() {
      await link.close();
      await bus.close();
    },
  };
}
