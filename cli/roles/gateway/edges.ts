import type { Writer } from '../../../ledger/types.js';
import { createBus } from '../../../server/edge/bus.js';
import { subjectOf } from '../../../server/edge/link.js';
import { createSequencer, type Sequencer, type SequencerFacts } from '../../../server/edge/sequencer.js';
import type { Gateway } from '../../../server/orders/engine.js';
import type { Config } from '../../config.js';
import { busOf } from '../../settings/edge.js';
import type { RoleContext } from '../context.js';

interface Edges {
  /** Takes actions of edges from now on, by this right to append. Called at most once. */
  open(writer: Writer): void;
  /** Null before that. */
  facts(): SequencerFacts | null;
  /** To NATS; from the start on, so that a standby that takes over is reached at once. */
  isConnected(): boolean;
  /** Takes no more. What was begun is answered. */
  close(): Promise<void>;
}

/** Serves the edges of a gateway, once it owns the order log. Null when none are configured. */
export function serveEdges(context: RoleContext<Config>, gateway: Gateway): Edges | null {
  const { config, logger, nowMs } = context;
  const settings = busOf(config);
  if (settings === null) return null;
  const { deploymentId } = config.manifest;
  const bus = createBus({ ...settings.bus, name: 'curvebook gateway', logger });
  let sequencer: Sequencer | null = null;
  let leave = (): void => undefined;

  return {
    open(writer) {
      sequencer = createSequencer({
        gateway,
        secret: settings.secret,
        deploymentId,
        epoch: writer.epoch,
        verifies: config.EDGE_VERIFY,
        clock: nowMs,
        logger,
      });
      leave = bus.serve(subjectOf(deploymentId, writer.epoch), sequencer.handle);
    },
    facts: () => sequencer?.facts() ?? null,
    isConnected: bus.isConnected,
    async close() {
      leave();
      await gateway.idle();
      await bus.close();
    },
  };
}
