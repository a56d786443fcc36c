/** The gateway of a process that waits for its logs: follows them meanwhile, and is promoted in place. As cli/roles/gateway/standby.ts, less HTTP. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../../cli/config.js';
import type { RoleContext } from '../../../cli/roles/context.js';
import { wakeByHints } from '../../../cli/roles/wakes.js';
import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import type { Writer } from '../../../ledger/types.js';
import { createGateway, type Gateway } from '../../../server/orders/engine.js';
import type { GatewayDeps } from '../../../server/orders/types.js';

interface Standby {
  /** What followed the logs until now, as the one that takes actions; null when there is none, or it is out of date. */
  promoted(writer: Writer): Promise<Gateway | null>;
}

const PATIENCE_MS = 1_000;
const REBUILD_MS = 100;

/** What every gateway of the simulation is made of. */
export const gatewayDeps = ({
  db,
  config,
  minOrderUnits,
  readiness,
  nowMs,
  logger,
}: RoleContext<Config>): Omit<GatewayDeps, 'writer'> => ({
  db,
  config: {
    sources: config.ORDER_SOURCES,
    signatureChainIds: config.signatureChainIds,
    failuresPerMinute: config.ORDER_FAILURES_PER_MINUTE,
    pollMs: config.POLL_INTERVAL_MS / 2,
    referencePrices: {},
    minOrderUnits,
  },
  readiness,
  clock: nowMs,
  logger,
});

/** Begins to follow unless `acquired` resolves soon. `onOutdated` is called when that happens after the promotion. */
export function standBy(context: RoleContext<Config>, acquired: Promise<void>, onOutdated: () => void): Standby {
  const { config, db, logger } = context;
  let isOver = false;
  const ended = acquired.then(() => void (isOver = true));

  /** One attempt; null when it is out of date before `ended`. */
  async function follow(): Promise<Gateway | null> {
    const stopping = new AbortController();
    const waiting = new AbortController();
    const whileWaiting = AbortSignal.any([stopping.signal, waiting.signal]);
    const outdated = Promise.withResolvers<null>();
    let isPromoted = false;
    const remote = createRemoteStatus({
      ...{ db, markets: [], deploymentBlock: config.manifest.deploymentBlock, logger },
      pollIntervalMs: config.POLL_INTERVAL_MS,
      onGeneration: () => undefined,
      onReversal: () => outdated.resolve(null),
    });
    const loop = remote.start(whileWaiting);
    try {
      const gateway = await createGateway({
        ...gatewayDeps(context),
        readiness: () => (isPromoted ? context.readiness() : { ready: false, reason: 'standby' }),
        writer: null,
      });
      gateway.run(stopping.signal).catch(() => (isPromoted ? onOutdated() : outdated.resolve(null)));
      wakeByHints(context, ['ledger', 'operator'], loop.wake, whileWaiting);
      wakeByHints(context, ['ledger', 'orders', 'operator'], gateway.onGeneration, whileWaiting);
      const current = await Promise.race([ended.then(() => gateway), outdated.promise]);
      if (current === null) stopping.abort();
      else isPromoted = true;
      return current;
    } catch {
      // What is stored moved on between two reads of the start.
      stopping.abort();
      return null;
    } finally {
      waiting.abort();
    }
  }

  async function serve(): Promise<Gateway | null> {
    await Promise.race([ended, delay(PATIENCE_MS)]);
    while (!isOver) {
      const gateway = await follow();
      if (gateway !== null) return gateway;
      if (!isOver) await Promise.race([ended, delay(REBUILD_MS)]);
    }
    return null;
  }

  const serving = serve();
  return {
    async promoted(writer) {
      const gateway = await serving;
      if (gateway === null) return null;
      try {
        await gateway.promote(writer);
        return gateway;
      } catch {
        return null;
      }
    },
  };
}
