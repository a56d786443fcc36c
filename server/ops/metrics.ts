import type { Middleware } from 'koa';
import { Counter, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { businessGauges, pairGauges } from './business-metrics.js';
import { edgeGauges } from './edge-metrics.js';
import { replicaGauges } from './replica-metrics.js';
import { gauge, one, saturated, type Labels } from './gauge.js';
import { createActionMeter, type ActionMeter } from './observed-actions.js';
import type { ArchiveFacts, SignerFacts, EndpointFacts, MetricSources, SwapProfitFacts } from './metric-sources.js';

export type { GatewayFacts, MetricSources } from './metric-sources.js';

export interface Metrics {
  registry: Registry;
  /** Counts requests and their time, by route and status. */
  observe: Middleware;
  actions: ActionMeter;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const GWEI = 10n ** 9n;

/** Uses its own registry, so that several servers in one process do not share metrics. Names and meanings are in docs/operators.md. */
export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'curvebook_' });
  ledgerGauges(registry, sources);
  strangerGauges(registry, sources);
  operatorGauges(registry, sources);
  pairGauges(registry, sources);
  replicaGauges(registry, sources);
  businessGauges(registry, sources);
  signerGauges(registry, sources);
  endpointGauges(registry, sources);
  wakeGauges(registry, sources);
  posterGauges(registry, sources);
  settlerGauges(registry, sources);
  archiveGauges(registry, sources);
  gatewayGauges(registry, sources);
  edgeGauges(registry, sources);
  return { registry, observe: requestObserver(registry), actions: createActionMeter(registry) };
}

function ledgerGauges(
  registry: Registry,
  { readiness, ledger, solvency, proofs, tokens, unattributed, suspense, storage, nowMs }: MetricSources,
): void {
  gauge(registry, ['database_bytes', 'size of the database'], async () => one((await storage()).bytes));
  gauge(registry, ['folded_order_row', 'newest row of the order log that is compacted'], async () =>
    one((await storage()).foldedOrderSeq),
  );
  gauge(registry, ['ready', '1 while inventory is safe to quote against, else 0 with the reason', 'reason'], () => {
    const { ready, reason } = readiness();
    return [[{ reason: reason ?? '' }, ready ? 1 : 0]];
  });
  gauge(registry, ['chain_head_block', 'newest block that the node named'], () => one(ledger()?.head));
  gauge(registry, ['chain_lag_blocks', 'blocks that no durable generation includes'], () => {
    const facts = ledger();
    return one(facts && Math.max(facts.head - facts.nextBlock + 1, 0));
  });
  gauge(registry, ['chain_head_age_seconds', 'age of the newest block'], () => {
    const facts = ledger();
    return one(facts && (nowMs() - facts.headTimestampMs) / 1000);
  });
  gauge(registry, ['generation', 'number of the newest durable generation'], () => one(ledger()?.generation));
  gauge(
    registry,
    ['scan_age_seconds', 'time since the newest successful scan, also one that found no new block'],
    () => {
      const facts = ledger();
      return one(facts && (nowMs() - facts.scannedMs) / 1000);
    },
  );
  gauge(registry, ['block_proofs', 'blocks that were proven since the start, or believed for less', 'outcome'], () => {
    const counts = proofs();
    if (counts === null) return [];
    return [
      [{ outcome: 'proven' }, counts.proven],
      [{ outcome: 'unconfirmed' }, counts.unconfirmed],
      [{ outcome: 'unreadable_header' }, counts.unreadableHeaders],
      [{ outcome: 'unreadable_receipts' }, counts.unreadableReceipts],
      [{ outcome: 'wrong_logs' }, counts.wrongLogs],
    ];
  });
  gauge(
    registry,
    ['solvency_difference_units', 'what the vault holds beyond all rows; less than zero is missing', 'token'],
    () => solvency().map(({ token, differenceUnits }) => [{ token }, saturated(differenceUnits)]),
  );
  gauge(registry, ['token_quarantined', '1 for a token in quarantine: its markets stand still', 'token'], () =>
    tokens().map(({ token, quarantined }) => [{ token }, quarantined ? 1 : 0]),
  );
  gauge(
    registry,
    ['holdings_in_doubt', '1 for a token of which endpoints say otherwise than the ledger, unconfirmed', 'token'],
    () => tokens().map(({ token, doubted }) => [{ token }, doubted ? 1 : 0]),
  );
  gauge(registry, ['unattributed_units', 'smallest units in the vault that belong to nobody', 'token'], async () =>
    (await unattributed()).map(({ token, units }) => [{ token }, saturated(units)]),
  );
  gauge(
    registry,
    ['suspense_items', 'what waits for the operator because nothing stored explains it', 'kind'],
    async () => (await suspense()).items.map(({ kind, count }) => [{ kind }, count]),
  );
  gauge(registry, ['suspense_units', 'smallest units in suspense, signed', 'token'], async () =>
    (await suspense()).units.map(({ token, units }) => [{ token }, saturated(units)]),
  );
}

/** Gauges of losses that tokens and owners of signed orders may cause the operator. */
function strangerGauges(registry: Registry, { transfers, orderReverts, swapProfits, executors }: MetricSources): void {
  gauge(
    registry,
    ['token_uneven', '1 when transfers take or bring another amount than asked for, -1 while not measured', 'token'],
    () => transfers().map(({ token, isUneven }) => [{ token }, isUneven === null ? -1 : isUneven ? 1 : 0]),
  );
  gauge(registry, ['order_reverts_hour', "executors' transactions that reverted in the last hour"], async () =>
    one((await orderReverts())?.count),
  );
  gauge(registry, ['order_reverts_hour_gas', 'gas that they took'], async () => {
    const facts = await orderReverts();
    return one(facts && saturated(facts.gasUsed));
  });
  gauge(
    registry,
    [
      'executor_funded',
      '0 while an executor has less ETH than a node asks for before it takes an order of every kind',
      'signer',
    ],
    async () => (await executors()).map(({ signer, isFunded }) => [{ signer }, isFunded ? 1 : 0]),
  );
  const ofToken = (value: (profit: SwapProfitFacts) => number) => async (): Promise<[Labels, number][]> =>
    (await swapProfits()).map((profit) => [{ token: profit.token }, value(profit)]);
  gauge(
    registry,
    ['swap_orders_hour', 'signed orders filled in the last hour, by sell token', 'token'],
    ofToken(({ filled }) => filled),
  );
  gauge(
    registry,
    ['swap_fees_hour_gwei', 'what their fees were worth when they were filled', 'token'],
    ofToken(({ feesWei }) => saturated(feesWei / GWEI)),
  );
  gauge(
    registry,
    [
      'swap_costs_hour_gwei',
      'what transactions of executors cost in the last hour: filled, reverted, or gave_way for a transfer that took the place of one',
      'token',
      'outcome',
    ],
    async () =>
      (await swapProfits()).flatMap(({ token, filledCostWei, revertedCostWei, gaveWayCostWei }): [Labels, number][] => [
        [{ token, outcome: 'filled' }, saturated(filledCostWei / GWEI)],
        [{ token, outcome: 'reverted' }, saturated(revertedCostWei / GWEI)],
        [{ token, outcome: 'gave_way' }, saturated(gaveWayCostWei / GWEI)],
      ]),
  );
  gauge(
    registry,
    ['swap_worst_order_hour_gwei', 'least that one order brought, its fee less what its transactions cost', 'token'],
    ofToken(({ worstWei }) => saturated(worstWei / GWEI)),
  );
}

function operatorGauges(registry: Registry, { operator }: MetricSources): void {
  gauge(
    registry,
    ['operator_units', "smallest units in the operator's row, which may be negative", 'token'],
    async () => (await operator()).map(({ token, balanceUnits }) => [{ token }, saturated(balanceUnits)]),
  );
  gauge(registry, ['operator_floor_units', "least that the operator's row should have", 'token'], async () =>
    (await operator()).map(({ token, floorUnits }) => [{ token }, saturated(floorUnits)]),
  );
  // Compares exact amounts; the two gauges above may be rounded.
  gauge(registry, ['operator_below_floor', "1 when the operator's row should be topped up", 'token'], async () =>
    (await operator()).map(({ token, isBelow }) => [{ token }, isBelow ? 1 : 0]),
  );
}

function signerGauges(registry: Registry, { signers, nowMs }: MetricSources): void {
  const labels = ({ role, address }: SignerFacts): Labels => ({ role, signer: address });
  gauge(registry, ['signer_balance_gwei', 'what a signer has for gas', 'role', 'signer'], () =>
    signers().flatMap((signer): [Labels, number][] =>
      signer.balanceWei === null ? [] : [[labels(signer), saturated(signer.balanceWei / GWEI)]],
    ),
  );
  gauge(registry, ['signer_low_balance', '1 when a signer should be topped up', 'role', 'signer'], () =>
    signers().map((signer) => [labels(signer), signer.lowBalance ? 1 : 0]),
  );
  gauge(registry, ['outbox_unmined', 'transactions that are signed and not mined', 'role', 'signer'], () =>
    signers().map((signer) => [labels(signer), signer.unminedCount]),
  );
  gauge(
    registry,
    ['outbox_gap_transfers', 'transfers to itself since the start that filled a gap between nonces', 'role', 'signer'],
    () => signers().map((signer) => [labels(signer), signer.gapTransfers]),
  );
  gauge(
    registry,
    ['outbox_nonce_doubts', 'numbers of used nonces since the start that were not believed', 'role', 'signer'],
    () => signers().map((signer) => [labels(signer), signer.nonceDoubts]),
  );
  gauge(registry, ['outbox_oldest_seconds', 'age of the oldest unmined transaction', 'role', 'signer'], () =>
    signers().map((signer) => [
      labels(signer),
      signer.oldestSentMs === null ? 0 : (nowMs() - signer.oldestSentMs) / 1000,
    ]),
  );
}

function endpointGauges(registry: Registry, { endpoints }: MetricSources): void {
  const labels = ({ user, name }: EndpointFacts): Labels => ({ user, endpoint: name });
  gauge(
    registry,
    ['rpc_healthy', '1 while an RPC endpoint is used, 0 while it is passed over', 'user', 'endpoint'],
    () => endpoints().map((one) => [labels(one), one.healthy ? 1 : 0]),
  );
  gauge(
    registry,
    ['rpc_failures', 'what an RPC endpoint did wrong since the start, by kind', 'user', 'endpoint', 'kind'],
    () =>
      endpoints().flatMap((one): [Labels, number][] => [
        [{ ...labels(one), kind: 'silent' }, one.counts.silent],
        [{ ...labels(one), kind: 'contradiction' }, one.counts.contradiction],
        [{ ...labels(one), kind: 'wrong_chain' }, one.counts.wrongChain],
      ]),
  );
}

function wakeGauges(registry: Registry, { heads, hints }: MetricSources): void {
  gauge(registry, ['heads_connected', '1 while an endpoint tells of new heads, else 0', 'endpoint'], () =>
    (heads()?.endpoints ?? []).map(({ name, connected }) => [{ endpoint: name }, connected ? 1 : 0]),
  );
  gauge(registry, ['heads_told', 'new heads that an endpoint told since the start', 'endpoint'], () =>
    (heads()?.endpoints ?? []).map((each) => [{ endpoint: each.name }, each.heads]),
  );
  gauge(
    registry,
    ['heads_lost', 'connections to an endpoint that tells of heads that failed or ended', 'endpoint'],
    () => (heads()?.endpoints ?? []).map((each) => [{ endpoint: each.name }, each.failures]),
  );
  gauge(registry, ['head_wakes', 'looks at the chain that told heads caused since the start'], () =>
    one(heads()?.wakes),
  );
  gauge(registry, ['hints_connected', '1 while the database tells of commits, 0 while they are polled for'], () => {
    const facts = hints();
    return one(facts && (facts.connected ? 1 : 0));
  });
  gauge(registry, ['hints_received', 'commits that the database told of since the start'], () =>
    one(hints()?.received),
  );
}

function posterGauges(registry: Registry, { poster }: MetricSources): void {
  const latency = (name: 'orderToSignMs' | 'orderToLandedMs') => (): [Labels, number][] =>
    (poster()?.latency ?? []).flatMap((market) =>
      (['p50', 'p99'] as const).flatMap((quantile): [Labels, number][] => {
        const ms = market[name][quantile];
        return ms === null ? [] : [[{ pair: market.pair, quantile }, ms / 1000]];
      }),
    );
  gauge(
    registry,
    ['post_sign_seconds', 'from an acknowledged order to the signed post', 'pair', 'quantile'],
    latency('orderToSignMs'),
  );
  gauge(
    registry,
    ['post_landed_seconds', 'from an acknowledged order to the landed post', 'pair', 'quantile'],
    latency('orderToLandedMs'),
  );
  gauge(registry, ['post_records_sent', 'records sent since the start', 'kind'], () =>
    Object.entries(poster()?.sent ?? {}).map(([kind, count]) => [{ kind }, count]),
  );
  gauge(registry, ['post_transactions', 'transactions since the start, by what became of them', 'outcome'], () =>
    Object.entries(poster()?.transactions ?? {}).map(([outcome, count]) => [{ outcome }, count]),
  );
  gauge(registry, ['post_blocked', '1 while nothing may be posted, with the reason; else 0', 'reason'], () => {
    const facts = poster();
    return facts === null ? [] : [[{ reason: facts.blockedBy ?? '' }, facts.blockedBy === null ? 0 : 1]];
  });
  gauge(
    registry,
    ['post_crossing_orders', 'orders that the newest cut left out because they cross larger ones', 'pair'],
    () => (poster()?.crossing ?? []).map(({ pair, orders }) => [{ pair }, orders]),
  );
  gauge(
    registry,
    ['post_stopped', "1 for a pair that is not posted because the operator's row is below its floor; else 0", 'pair'],
    () => {
      const { pairs = [], stopped = [] } = poster() ?? {};
      return pairs.map((pair) => [{ pair }, stopped.includes(pair) ? 1 : 0]);
    },
  );
  gauge(registry, ['post_missed_blocks', 'blocks that went by while a post waited to be mined'], () =>
    one(poster()?.missedBlocks),
  );
  gauge(
    registry,
    ['post_left_out_lots', 'lots that the newest curve of a pair does not offer', 'pair', 'side', 'reason'],
    () => (poster()?.leftOut ?? []).map(({ lots, ...labels }) => [labels, saturated(lots)]),
  );
  gauge(registry, ['post_gas_used', 'gas of the newest post whose receipt was read'], () =>
    one(poster()?.fees.lastGasUsed),
  );
  gauge(registry, ['post_fees_hour_gwei', 'what posting has cost in the last hour'], () => {
    const facts = poster();
    return one(facts && saturated(facts.fees.spentLastHourWei / GWEI));
  });
  gauge(registry, ['post_budget_hour_gwei', 'what posting may cost in an hour; absent without a limit'], () => {
    const budgetWei = poster()?.fees.budgetWei ?? null;
    return one(budgetWei === null ? null : saturated(budgetWei / GWEI));
  });
}

function archiveGauges(registry: Registry, { poster, settler, nowMs }: MetricSources): void {
  const writers = (): [string, ArchiveFacts][] => {
    const facts: [string, ArchiveFacts | null | undefined][] = [
      ['poster', poster()?.archive],
      ['settler', settler()?.archive],
    ];
    return facts.flatMap(([role, one]) => (one ? [[role, one] as [string, ArchiveFacts]] : []));
  };
  const each = (value: (of: ArchiveFacts) => number) => () =>
    writers().map(([role, of]): [Labels, number] => [{ role }, value(of)]);
  gauge(
    registry,
    ['archive_files', 'files in the archive, as a writer of it knows', 'role'],
    each(({ files }) => files),
  );
  gauge(
    registry,
    ['archive_failures', 'writes to the archive that failed since the start', 'role'],
    each(({ failures }) => failures),
  );
  gauge(
    registry,
    ['archive_failing', '1 while the newest write to the archive has failed, else 0', 'role'],
    each(({ failing }) => (failing ? 1 : 0)),
  );
  gauge(
    registry,
    [
      'archive_unarchived_seconds',
      'age of the oldest publication or settlement that waits to be in the archive; 0 while none does',
      'role',
    ],
    each(({ waitingSinceMs }) => (waitingSinceMs === null ? 0 : Math.max(0, nowMs() - waitingSinceMs) / 1000)),
  );
  gauge(
    registry,
    [
      'archive_dropped',
      'entries since the start that were sent and neither written nor kept: only archive export writes them',
      'role',
    ],
    each(({ dropped }) => dropped),
  );
}

function settlerGauges(registry: Registry, { settler }: MetricSources): void {
  gauge(registry, ['settle_blocked', '1 while nothing may be settled, with the reason; else 0', 'reason'], () => {
    const facts = settler();
    return facts === null ? [] : [[{ reason: facts.blockedBy ?? '' }, facts.blockedBy === null ? 0 : 1]];
  });
}

function gatewayGauges(registry: Registry, { gateway }: MetricSources): void {
  gauge(registry, ['gateway_active', '1 while this process owns the order log'], () => {
    const facts = gateway();
    return one(facts && (facts.active ? 1 : 0));
  });
  gauge(registry, ['sockets', 'open WebSocket connections'], () => one(gateway()?.sockets));
  gauge(registry, ['open_orders', 'open orders of all makers'], () => one(gateway()?.openOrders));
  gauge(registry, ['queued_actions', 'signed actions that wait for a commit'], () => one(gateway()?.queued));
  gauge(
    registry,
    ['signature_backend', '1 for the library that recovers signatures: native, or wasm', 'backend'],
    () => {
      const facts = gateway();
      return facts === null ? [] : [[{ backend: facts.signatureBackend }, 1]];
    },
  );
}

function requestObserver(registry: Registry): Middleware {
  const requests = new Counter({
    name: 'curvebook_http_requests_total',
    help: 'requests answered',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'curvebook_http_request_seconds',
    help: 'time until the answer was ready; for /exchange that is the time to the acknowledgement',
    labelNames: ['route'],
    buckets: SECONDS,
    registers: [registry],
  });
  return async (ctx, next) => {
    const startedMs = performance.now();
    await next();
    // The route's pattern, never the path: one label per address would fill the memory.
    const route = (ctx as { routerPath?: string; _matchedRoute?: unknown })._matchedRoute;
    const name = typeof route === 'string' ? route : 'none';
    seconds.observe({ route: name }, (performance.now() - startedMs) / 1_000);
    requests.inc({ method: ctx.method, route: name, status: `${ctx.status}` });
  };
}
