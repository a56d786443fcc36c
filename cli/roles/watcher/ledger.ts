import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import { narrate } from '../../../keepers/watcher/narrate.js';
import { createWatcher } from '../../../keepers/watcher/watcher.js';
import { createPace } from '../../../keepers/watcher/wakes.js';
import { createSnapshotStore } from '../../../ledger/orders/snapshots.js';
import type { GenerationWrite } from '../../../ledger/types.js';
import type { BaseConfig } from '../../base-config.js';
import { rpcPool, type RoleContext } from '../context.js';
import type { WatcherSettings } from './role.js';

/** The watcher where this process owns the ledger log, else what follows it. */
export async function startLedger(
  context: RoleContext<BaseConfig & WatcherSettings>,
  signal: AbortSignal,
  { notify, onReversal }: { notify: () => void; onReversal: () => void },
  onFills: (write: GenerationWrite) => void,
) {
  const { config, db, logger, markets } = context;
  const { custodian, curveBook, entrypoint, orderSettler } = config.manifest.contracts;
  const snapshots = createSnapshotStore(markets);
  const writer = context.writers.get('ledger');
  if (writer === undefined) {
    const remote = createRemoteStatus({
      db,
      markets,
      deploymentBlock: config.manifest.deploymentBlock,
      pollIntervalMs: config.POLL_INTERVAL_MS,
      logger,
      onGeneration: notify,
      onReversal,
    });
    return { status: remote.status, loop: remote.start(signal), snapshots };
  }
  const watcher = await createWatcher({
    db,
    writer,
    rpc: rpcPool(context, 'watcher'),
    contracts: { custodian, curveBook, entrypoint, orderSettler },
    deploymentId: config.manifest.deploymentId,
    deploymentBlock: config.manifest.deploymentBlock,
    operator: config.operator,
    markets,
    snapshots,
    pollIntervalMs: config.POLL_INTERVAL_MS,
    pace: config.WAKE ? createPace(config.POLL_INTERVAL_MS, context.monotonicMs) : undefined,
    haltOnSuspense: config.HALT_ON_SUSPENSE,
    scanMaxBlocks: config.SCAN_MAX_BLOCKS,
    proveBlocks: config.PROVE_BLOCKS,
    nowMs: context.nowMs,
    monotonicMs: context.monotonicMs,
    logger,
    onGeneration(write) {
      narrate(logger, markets, write);
      onFills(write);
      notify();
    },
    onReversal,
  });
  context.keepers.proofs = watcher.proofCounts;
  return { status: watcher.status, loop: watcher.start(signal), snapshots };
}
