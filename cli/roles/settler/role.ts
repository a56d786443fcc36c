import type { z } from 'zod';
import type { Market } from '../../../core/types.js';
import { startGasMeter, withMeter } from '../../../keepers/gas-meter.js';
import type { Loop } from '../../../keepers/loop.js';
import { createSettler } from '../../../keepers/settler/settler.js';
import { createSnapshotStore } from '../../../ledger/orders/snapshots.js';
import { storeKeeper } from '../../../ledger/transactions/senders.js';
import type { Writer } from '../../../ledger/types.js';
import type { BaseConfig } from '../../base-config.js';
import { settlePace } from '../../settings/common.js';
import { integer, privateKey } from '../../settings/fields.js';
import { defineRole } from '../role.js';
import { archiveOf, posterContract } from '../sender.js';
import { keeperOutbox, keyOf, rpcPool, type RoleContext } from '../context.js';

/** Settles withdrawals and cuts checkpoints. */
export const settler = defineRole({
  name: 'settler',
  signs: true,
  settings: {
    SETTLER_PRIVATE_KEY: privateKey.optional().describe("signs settlements; default: the manifest's settler account"),
    SETTLE_INTERVAL_MS: integer(20, 60_000, 1_000).describe('pause between two rounds of settling withdrawals'),
    SETTLE_BATCH_MAX: integer(1, 200, 50).describe('most settlements in one transaction'),
    EMPTY_SETTLEMENTS_PER_HOUR: integer(0, 100_000, 60).describe('most settlements per hour that raise no claim'),
    CHECKPOINT_INTERVAL_SEC: integer(1, 3_600, 60).describe('time from one checkpoint to the next'),
  },
  status: ({ checkpoint, pendingClaims }) => ({ lastActMs: checkpoint?.timestampMs ?? null, waiting: pendingClaims }),
  async start({ context, writer, signal, wakeBy }) {
    const loop = await startSettler(context, writer, signal);
    wakeBy(['claims', 'operator'], loop.wake);
    return [loop];
  },
});

type SettlerContext = RoleContext<BaseConfig & z.output<z.ZodObject<typeof settler.settings>>>;

/** Throws unless its key is there, which the configuration has checked. */
export async function startSettler(context: SettlerContext, writer: Writer, signal: AbortSignal): Promise<Loop> {
  const { config, db, logger, nowMs, monotonicMs } = context;
  const privateKey = keyOf(context, 'settler');
  const rpc = rpcPool(context, 'settler');
  // It reads listings itself, because a round computes on one state of the ledger.
  const markets: Market[] = [];
  const outbox = keeperOutbox(context, 'settler', {
    ...{ writer, rpc, privateKey, order: 'queue' },
    serves: posterContract(rpc, config.manifest.contracts.custodian),
  });
  await writer.tx((tx) => storeKeeper(tx, 'settler', { signer: outbox.signer, budgetWei: null }));
  const settler = createSettler({
    db,
    writer,
    outbox,
    rpc,
    custodian: config.manifest.contracts.custodian,
    markets,
    snapshots: createSnapshotStore(markets),
    readiness: context.readiness,
    pollIntervalMs: config.SETTLE_INTERVAL_MS,
    checkpointIntervalMs: config.CHECKPOINT_INTERVAL_SEC * 1_000,
    batchMax: config.SETTLE_BATCH_MAX,
    emptyPerHour: config.EMPTY_SETTLEMENTS_PER_HOUR,
    pace: settlePace(config),
    archive: await archiveOf(context, privateKey),
    nowMs,
    monotonicMs,
    logger,
  });
  context.keepers.settler = () => settler.status();
  const { signer } = outbox;
  const meter = startGasMeter({ role: 'settler', db, writer, rpc, signer, nowMs, monotonicMs, logger }, signal);
  return withMeter(settler.start(signal), meter);
}
