import { explorerUrlOf } from '../../settings/swap.js';
import { signatureBackend } from '../../../core/wire/recover.js';
import { ENDPOINTS } from '../../../server/endpoints.js';
import { createApp } from '../../../server/app.js';
import type { GatewayFacts, Metrics } from '../../../server/ops/metrics.js';
import { probeRoutes } from '../../../server/ops/probes.js';
import { consoleRoutes } from '../../../server/console.js';
import { openApiRoutes } from '../../../server/openapi/routes.js';
import { logActions } from '../../../server/ops/observed-actions.js';
import { createGateway, type Gateway } from '../../../server/orders/engine.js';
import { explainRoutes } from '../../../server/orders/explain.js';
import { createMarketDataView } from '../../../server/market-data/view.js';
import { createQueryBudget } from '../../../server/orders/query-budget.js';
import { ordersRoutes } from '../../../server/orders/endpoints.js';
import { createCheckpointView } from '../../../server/read/checkpoint-view.js';
import type { DeploymentFacts, ReadDeps } from '../../../server/read/deps.js';
import { fillJson } from '../../../server/read/fills.js';
import { statusReader } from '../../../server/read/status.js';
import { accountFacts } from '../../../server/orders/account-facts.js';
import { createFeed } from '../../../server/read/feed.js';
import { readLimits } from '../../../server/rate-limit.js';
import { readRoutes } from '../../../server/read/endpoints.js';
import { createReadStore } from '../../../server/read/store.js';
import { sandboxRoutes } from '../../../server/sandbox.js';
import type { Link } from '../../../server/edge/link.js';
import { LAG_MESSAGE, readerGuard } from '../../../server/reader-guard.js';
import { createRelay, refuseRelayed, relayed, type Relay } from '../../../server/relay.js';
import { CLOSE } from '../../../server/stream/limits.js';
import { serveStream } from '../../../server/stream/server.js';
import { createSessions, type Sessions } from '../../../server/stream/sessions.js';
import { quarantinedTokens } from '../../../ledger/chain/token-findings.js';
import type { Writer } from '../../../ledger/types.js';
import type { Config } from '../../config.js';
import { settlePace } from '../../settings/common.js';
import { serveEdges } from './edges.js';
import { onceListed } from './listings.js';
import { sandboxControls } from './sandbox-controls.js';
import type { RoleContext } from '../context.js';
import { ROLE_FACTS } from '../registry.js';
import { swapOrdersOf, swapRouter } from './swap-api.js';
import { API_DESCRIPTION, API_TITLE, VERSION } from '../../version.js';

export interface HttpHandle {
  url: string;
  port: number;
  /** Wakes the gateway's follower. */
  onGeneration(): void;
  /** Makes a standby the gateway, once its process has the log. */
  promote(writer: Writer): Promise<void>;
  /** Ends every WebSocket because what is read is too old. */
  disconnect(): void;
  facts(): GatewayFacts;
  /** Newest generation of the ledger that is served. */
  generation(): number;
  /** Whether NATS is reached, by which edges hand actions over; null where none are served. */
  isOnNats(): boolean | null;
  /** Stops answering; the address stays open, and requests wait for the next application. */
  close(): Promise<void>;
}

/** Pause between two reads of the logs when no hint arrives. */
const FOLLOW_INTERVAL_MS = 250;
/** Pause between two looks for a newer checkpoint. */
const CHECKPOINT_POLL_MS = 500;

export interface HttpOptions {
  signal: AbortSignal;
  /** Sees every request with its final status, and every action. */
  metrics: Pick<Metrics, 'observe' | 'actions'>;
  /** Null while everything that this process runs is alive. */
  failure(): string | null;
  /** Called when a gasless order was accepted. */
  onSwapOrder(): void;
  /** Called at most once, when the state can't be moved forward any more: the gateway must be started again. */
  onOutdated(): void;
  /** Of a process that writes nothing: a reader or an edge; null of any other. */
  reader: ReaderFacts | null;
}

interface ReaderFacts {
  lagMs(): number | null;
  isBehind(): boolean;
  /** Of an edge, which hands actions over; absent of one that only reads. */
  edge?: Pick<Link, 'forward' | 'unready'>;
}

/** Starts the gateway and the HTTP server in front of it; without a writer as a standby. */
export async function startHttp(
  context: RoleContext<Config>,
  writer: Writer | null,
  { signal, metrics, failure, onSwapOrder, onOutdated, reader }: HttpOptions,
): Promise<HttpHandle> {
  const { config, db, logger } = context;
  const startedMs = context.nowMs();
  const orderConfig = {
    sources: config.ORDER_SOURCES,
    signatureChainIds: config.signatureChainIds,
    failuresPerMinute: config.ORDER_FAILURES_PER_MINUTE,
    pollMs: FOLLOW_INTERVAL_MS,
    referencePrices: config.REFERENCE_PRICES,
    minOrderUnits: context.minOrderUnits,
  };
  const relay = relayOf(context);
  const gatewayDeps = {
    db,
    writer,
    forward: reader?.edge?.forward ?? null,
    relay,
    config: orderConfig,
    readiness: context.readiness,
    quarantined: () => quarantinedTokens(context.watcherStatus().findings),
    clock: context.nowMs,
    logger,
  };
  const untimed = await onceListed(() => createGateway(gatewayDeps), { signal, logger });
  const gateway = logActions(metrics.actions.timed(untimed), logger);
  const running = gateway.run(signal).catch((error: unknown) => {
    logger.warn({ err: error }, 'the gateway can not follow the logs any further');
    onOutdated();
  });
  const sessions = createSessions();
  const queries = createQueryBudget(config.QUERIES_PER_MINUTE, context.nowMs);
  const marketData = createMarketDataView({ db, generation: gateway.generation, clock: context.nowMs });
  const info = { db, gateway, clock: context.nowMs, config: orderConfig, queries, marketData };
  const checkpoints = createCheckpointView({
    db,
    deploymentId: config.manifest.deploymentId,
    pollIntervalMs: CHECKPOINT_POLL_MS,
    logger,
  });
  const following = checkpoints.run(signal);
  const guard = reader === null ? null : readerGuard(reader.isBehind);
  const swaps = swapRouter(
    context,
    ({ id: orderId, quoteId, owner }) => {
      logger.info({ orderId, quoteId, owner }, 'signed order accepted');
      onSwapOrder();
    },
    relay === null ? guard : relayed(relay, gateway.isActive, guard),
  );
  const limits = readLimits(config.READ_REQUESTS_PER_MINUTE);
  const reads = { ...readDeps(context, gateway, sessions, startedMs, reader), checkpoints, limits };
  const pages = consoleRoutes(limits.read, { rpcUrl: deploymentFacts(config).publicRpcUrl });
  const app = createApp({
    routers: [
      // The most requested routes come first, because each earlier router takes time.
      readRoutes(reads, guard),
      ordersRoutes(info, guard),
      ...(swaps === null ? [] : [swaps]),
      ...(config.manifest.accounts.length > 0 && reader === null
        ? [explainRoutes(info), sandboxRoutes(sandboxControls(context, onOutdated))]
        : []),
      probeRoutes(
        {
          failure,
          // An answer shows that requests are served.
          ready() {
            const reason = reader?.isBehind() === true ? 'replica_lag' : (reader?.edge?.unready() ?? null);
            return { ready: reason === null, reason };
          },
          active() {
            const reason = reader?.isBehind() === true ? 'replica_lag' : (reader?.edge?.unready() ?? null);
            const isActive = reader?.edge === undefined ? gateway.isActive() : reason === null;
            return { active: isActive, reason: isActive ? null : (reason ?? 'standby') };
          },
        },
        limits.health,
      ),
      openApiRoutes(
        ENDPOINTS,
        { title: API_TITLE, version: VERSION, description: API_DESCRIPTION, url: config.PUBLIC_URL ?? null },
        limits.read,
      ),
      // Takes what is left of the paths below /docs.
      ...(pages === null ? [] : [pages]),
    ],
    before: refuseRelayed(gateway.isActive),
    unmatched: limits.read,
    logger,
    trustProxy: config.TRUST_PROXY,
    observe: metrics.observe,
  });
  const answering = await context.doors.http.answer(app);
  const edges = reader === null ? serveEdges(context, gateway) : null;
  if (writer !== null) edges?.open(writer);
  const stream = serveStream({
    server: answering.upgrades,
    gateway,
    info,
    platform: {
      status: statusReader(reads),
      async fills(index, limit, before) {
        const market = gateway.markets()[index];
        const fills = market === undefined ? [] : await reads.store.fillsPage({ market: index, limit, before });
        return market === undefined ? [] : fills.toReversed().map((fill) => fillJson(market, fill));
      },
    },
    swapOrders: swapOrdersOf(context),
    sessions,
    logger,
    clock: context.nowMs,
    trustProxy: config.TRUST_PROXY,
    refusal: () => (reader?.isBehind() === true ? LAG_MESSAGE : null),
  });
  return {
    url: answering.url,
    port: answering.port,
    onGeneration: gateway.onGeneration,
    async promote(to) {
      await gateway.promote(to);
      edges?.open(to);
    },
    disconnect: () => stream.disconnect(CLOSE.replicaLag),
    facts() {
      const book = gateway.book();
      const openOrders = book.makersWithOrders().reduce((sum, maker) => sum + book.openOrders(maker).length, 0);
      return {
        active: gateway.isActive(),
        sockets: stream.connections(),
        openOrders,
        queued: gateway.queued(),
        signatureBackend,
        edges: edges?.facts() ?? null,
      };
    },
    generation: gateway.generation,
    isOnNats: () => edges?.isConnected() ?? null,
    async close() {
      await edges?.close();
      await Promise.all([stream.close(), answering.leave()]);
      await gateway.idle();
      await running;
      await following;
    },
  };
}

/** The operator's own endpoints may contain keys: only the one named for clients is published, or a sandbox's. */
function deploymentFacts(config: Config): DeploymentFacts {
  const { contracts, accounts, rpcUrl } = config.manifest;
  const { custodian, curveBook, entrypoint, orderSettler, lens, adapter, permit2 } = contracts;
  const isSandbox = accounts.length > 0;
  return {
    contracts: { custodian, curveBook, entrypoint, orderSettler, lens, adapter, permit2 },
    wrappedNative: config.wrappedNative,
    publicRpcUrl: config.PUBLIC_RPC_URL ?? (isSandbox ? (rpcUrl ?? null) : null),
    explorerUrl: explorerUrlOf(config),
    orderSources: config.ORDER_SOURCES,
    isSandbox,
  };
}

function readDeps(
  context: RoleContext<Config>,
  gateway: Gateway,
  sessions: Sessions,
  startedMs: number,
  reader: ReaderFacts | null,
): Omit<ReadDeps, 'checkpoints' | 'limits'> {
  const { config, db } = context;
  const status = context.watcherStatus;
  return {
    version: VERSION,
    chainId: config.manifest.chainId,
    deploymentId: config.manifest.deploymentId,
    capitalFlowStartBlock: config.manifest.deploymentBlock,
    deployment: deploymentFacts(config),
    account: accountFacts(gateway, context.nowMs),
    markets: gateway.markets,
    delisted: gateway.delisted,
    book: gateway.book,
    minOrderUnits: context.minOrderUnits,
    feed: createFeed({
      book: gateway.book,
      lastActionMs: gateway.lastActionMs,
      sessions,
      startedMs,
    }),
    readiness: context.readiness,
    halt: () => status().halt,
    findings: () => status().findings,
    roles: ROLE_FACTS,
    ownLogs: () => new Set(context.writers.keys()),
    replicaLagMs: reader === null ? null : reader.lagMs,
    nowMs: context.nowMs,
    watcher: () => {
      const { observedHead, nextBlock, lastSuccessfulScanMs } = status();
      const head = observedHead === 0 ? null : observedHead;
      const lastScanMs = lastSuccessfulScanMs === 0 ? null : lastSuccessfulScanMs;
      return { head, nextBlock, targetBlock: head, lastScanMs };
    },
    inventoryRevision: gateway.generation,
    untilApplied: gateway.untilApplied,
    store: createReadStore(db),
    settlePace: settlePace(config),
  };
}

/** Null where the other gateways are not named. */
function relayOf({ config, monotonicMs, logger }: RoleContext<Config>): Relay | null {
  if (config.GATEWAY_URLS === undefined) return null;
  return createRelay({
    urls: config.GATEWAY_URLS,
    timeoutMs: config.EDGE_TIMEOUT_MS,
    maxWaiting: config.EDGE_MAX_WAITING,
    monotonicMs,
    logger,
  });
}
