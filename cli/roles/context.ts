import type { ArchiveStore } from '../../keepers/archive/store.js';
import type { Settler } from '../../keepers/settler/settler.js';
import type { Logger } from 'pino';
import { createMinOrderUnits, type MinOrderUnits } from '../../core/min-order.js';
import type { Hex, Market } from '../../core/types.js';
import { createOutbox, type Outbox, type OutboxStatus } from '../../keepers/chain/outbox.js';
import type { EndpointHealth } from '../../keepers/chain/endpoints.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import type { ServedContract } from '../../keepers/chain/retired-signers.js';
import type { HeadFeedFacts } from '../../keepers/chain/head-feed.js';
import type { PosterStatus } from '../../keepers/poster/poster.js';
import type { ProofCounts } from '../../keepers/watcher/scan/proof.js';
import type { TransferFacts } from '../../keepers/watcher/tokens/transfer-watch.js';
import type { ReplicationStatus } from '../../keepers/replication.js';
import type { WatcherStatus } from '../../keepers/watcher/status.js';
import type { Readiness } from '../../core/types.js';
import type { Door } from '../../server/door.js';
import type { Hints } from '../../ledger/db/hints.js';
import type { Db, LogName, Writer } from '../../ledger/types.js';
import type { Role } from '../../ledger/roles.js';
import type { BaseConfig } from '../base-config.js';
import { ConfigError } from '../errors.js';

/** Facts about this process's keepers for metrics and status. */
interface KeeperFacts {
  signers: { role: Role; status(): OutboxStatus }[];
  /** Endpoints as each user of them sees them. */
  endpoints: { user: string; health(): EndpointHealth[] }[];
  poster: (() => PosterStatus) | null;
  settler: (() => ReturnType<Settler['status']>) | null;
  /** Measured transfers of tokens. */
  transfers: (() => TransferFacts[]) | null;
  /** Of the watcher; null before it runs, or elsewhere. */
  proofs: (() => Readonly<ProofCounts>) | null;
  /** New heads that are pushed to the watcher; null without such endpoints. */
  heads: (() => { wakes: number; endpoints: HeadFeedFacts[] }) | null;
}

/** Addresses of a process, which stay taken while its roles start again: those of the interface, and of metrics and probes. */
export interface Doors {
  http: Door;
  ops: Door;
}

/** Everything the roles of one process share. A role sees the common settings and its own. */
export interface RoleContext<C extends BaseConfig = BaseConfig> {
  config: C;
  doors: Doors;
  db: Db;
  /** Hints of commits by other processes. */
  hints: Hints;
  logger: Logger;
  markets: Market[];
  minOrderUnits: MinOrderUnits;
  writers: Map<LogName, Writer>;
  keepers: KeeperFacts;
  /** Where the archive's files are, if not in ARCHIVE_DIR. */
  archiveStore?: ArchiveStore;
  watcherStatus(): WatcherStatus;
  readiness(): Readiness;
  /** Null on SQLite, and before the first look. */
  replication(): ReplicationStatus | null;
  /** Wall clock. */
  nowMs(): number;
  /** For intervals: it never steps. */
  monotonicMs(): number;
}

/** What differs from process to process. */
type OfProcess =
  'config' | 'doors' | 'db' | 'writers' | 'logger' | 'hints' | 'watcherStatus' | 'readiness' | 'replication';

/** The context of a process whose roles begin: no markets and no keepers yet, the clocks of the machine, and what is given. */
export const createRoleContext = <C extends BaseConfig>(given: Pick<RoleContext<C>, OfProcess>): RoleContext<C> => ({
  markets: [],
  minOrderUnits: createMinOrderUnits(given.config.MIN_ORDER_VALUES),
  keepers: { signers: [], endpoints: [], poster: null, settler: null, transfers: null, proofs: null, heads: null },
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  ...given,
});

/** A pool of endpoints for one user (a role or a part of one), with its own view of their health. */
export function rpcPool({ config, monotonicMs, logger, keepers }: RoleContext, user: string): RpcPool {
  const pool = createRpcPool(config.rpcUrls, { nowMs: monotonicMs, logger, chainId: config.manifest.chainId });
  keepers.endpoints.push({ user, health: () => pool.health() });
  return pool;
}

/** Calls `onOther` once if every endpoint serves another chain than the manifest's. One that does not answer may serve the right one. */
export async function checkChain(context: RoleContext, onOther: (error: ConfigError) => void): Promise<void> {
  const { config, monotonicMs, logger } = context;
  if (config.rpcUrls.length === 0) return;
  const { chainId } = config.manifest;
  const pool = createRpcPool(config.rpcUrls, { nowMs: monotonicMs, logger, chainId });
  await pool.probe();
  const others = pool.otherChains();
  if (others.length === 0) return;
  const served = [...new Set(others)].join(', ');
  onOther(
    new ConfigError([`RPC_URL: every endpoint serves chain ${served}, and the deployment is on chain ${chainId}`]),
  );
}

/** The key that a role signs with. The configuration has checked that it is there. */
export function keyOf({ config }: RoleContext, role: Role): Hex {
  const key = config.keys[role];
  if (key === undefined) throw new Error(`the ${role} needs its key`);
  return key;
}

/** The outbox of one keeper; each has a signer of its own. */
export function keeperOutbox(
  context: RoleContext,
  role: Role,
  options: { writer: Writer; rpc: RpcPool; privateKey: Hex; order: 'replace' | 'queue'; serves: ServedContract },
): Outbox {
  const { config, db, logger, nowMs, monotonicMs } = context;
  const outbox = createOutbox({
    ...options,
    db,
    chainId: config.manifest.chainId,
    feeCeilingWei: config.FEE_CEILING_GWEI,
    lowBalanceWei: config.LOW_BALANCE_ETHER,
    nowMs,
    monotonicMs,
    logger,
  });
  context.keepers.signers.push({ role, status: () => outbox.status() });
  return outbox;
}
