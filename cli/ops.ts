/** Metrics and probes of one process, whichever roles it plays. */
import { createApp } from '../server/app.js';
import { createMetrics, type MetricSources, type Metrics } from '../server/ops/metrics.js';
import { probeRoutes, metricsRoutes } from '../server/ops/probes.js';
import { UNATTRIBUTED } from '../ledger/types.js';
import { readBalances } from '../ledger/chain/ledger-log.js';
import { readOperatorStandings } from '../ledger/chain/operator-capital.js';
import { readWorstPairs } from '../ledger/chain/pair-gains.js';
import { readSwapProfits } from '../ledger/swaps/swap-costs.js';
import { readExecutors } from '../ledger/swaps/swap-executors.js';
import { sumReverts } from '../ledger/swaps/swap-wallets.js';
import { databaseBytes } from '../ledger/db/storage.js';
import { readSuspenseFacts } from '../ledger/chain/suspense.js';
import { readCompactionPosition } from '../ledger/orders/compacted-book.js';
import { servedTokens } from '../core/operator-row.js';
import { quarantinedTokens } from '../ledger/chain/token-findings.js';
import { isLosing } from '../core/attribution/gains.js';
import type { Address, Readiness } from '../core/types.js';
import { readBusiness, type BusinessFacts } from '../ledger/accounts/business.js';
import { readTx } from '../ledger/db/db.js';
import { createRemembered } from '../server/rendered.js';
import type { RoleContext } from './roles/context.js';
import { READER } from './settings/common.js';
import { EDGE } from './settings/edge.js';

/** Pairs of maker and taker per quote token that metrics name: each label costs memory where they are kept. */
const SHOWN_PAIRS = 5;

/** How long a reading of the business metrics is reused. */
const BUSINESS_MS = 10_000;

const HOUR_MS = 3_600_000;

export interface Ops {
  metrics: Metrics;
  /** Where /metrics and the probes are, null when they are not served. */
  url: string | null;
  close(): Promise<void>;
}

interface OpsSources {
  /** False while the process waits for its logs. */
  started(): boolean;
  /** Whether reads are served, by the gateway itself or while it waits for its logs, or by a reader. */
  serving(): Readiness;
  gateway: MetricSources['gateway'];
  nats: MetricSources['nats'];
  /** Null while everything that this process runs is alive. */
  failure(): string | null;
  /** Of a reader or an edge. */
  replica?: MetricSources['replica'];
  /** Of an edge. */
  edge?: MetricSources['edge'];
}

/** Serves metrics and probes on a port of their own when METRICS_PORT is set. */
export async function startOps(shared: RoleContext, sources: OpsSources): Promise<Ops> {
  const { config, logger } = shared;
  const metrics = createMetrics(metricSources(shared, sources));
  if (config.METRICS_PORT === undefined) return { metrics, url: null, close: () => Promise.resolve() };
  const servesReads = config.ROLES.some((role) => ['gateway', READER, EDGE].includes(role));
  const readiness = readinessOf(shared, sources);
  const probes = probeRoutes({
    failure: sources.failure,
    // A gateway is ready as soon as its port answers, even if the ledger is not ready: it then serves cancels and reads.
    ready: () => (servesReads ? sources.serving() : readiness()),
    active() {
      // An edge takes actions as long as it is ready.
      if (config.ROLES.includes(EDGE)) return { active: sources.serving().ready, reason: sources.serving().reason };
      return config.ROLES.includes('gateway') ? activityOf(sources) : { active: false, reason: 'no_gateway' };
    },
  });
  const answering = await shared.doors.ops.answer(
    createApp({ routers: [metricsRoutes(metrics.registry), probes], logger }),
  );
  return { metrics, url: answering.url, close: answering.leave };
}

function activityOf({ gateway, serving }: OpsSources): { active: boolean; reason: string | null } {
  if (gateway()?.active === true) return { active: true, reason: null };
  return { active: false, reason: serving().ready ? 'standby' : 'starting' };
}

/** A process that does not own its logs is on standby, whatever the ledger says. */
const readinessOf =
  ({ readiness }: RoleContext, { started, gateway }: OpsSources): MetricSources['readiness'] =>
  () =>
    started() && gateway()?.active !== false ? readiness() : { ready: false, reason: 'standby' };

function metricSources(shared: RoleContext, sources: OpsSources): MetricSources {
  const { keepers, markets, db, nowMs } = shared;
  const remembered = createRemembered<BusinessFacts>();
  const symbolOf = (address: Address): string =>
    markets.flatMap(({ base, quote }) => [base, quote]).find((token) => token.address === address)?.symbol ?? address;
  return {
    readiness: readinessOf(shared, sources),
    ledger() {
      if (!sources.started()) return null;
      const status = shared.watcherStatus();
      if (status.scannedBlockHash === null) return null;
      return {
        head: status.observedHead,
        nextBlock: status.nextBlock,
        headTimestampMs: status.observedHeadTimestampMs,
        scannedMs: status.lastSuccessfulScanMs,
        generation: status.durableInventoryRevision,
      };
    },
    solvency() {
      // A process that waits for its logs follows no ledger yet; its other metrics are wanted all the same.
      if (!sources.started()) return [];
      const { solvency } = shared.watcherStatus();
      return solvency.map(({ token, differenceUnits }) => ({ token: symbolOf(token), differenceUnits }));
    },
    tokens() {
      if (!sources.started()) return [];
      const { findings } = shared.watcherStatus();
      const held = quarantinedTokens(findings);
      const doubted = new Set(findings.filter(({ cause }) => cause === 'holdings').map(({ token }) => token));
      return servedTokens(markets).map(({ address, symbol }) => ({
        token: symbol,
        quarantined: held.has(address),
        doubted: doubted.has(address),
      }));
    },
    async unattributed() {
      const rows = await readBalances(db.reads, { account: UNATTRIBUTED });
      // A token without unattributed units has a zero sample, so that its first transfer is seen as a rise.
      const units = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map(({ address }) => [address, 0n]));
      for (const { token, balanceUnits } of rows) units.set(token, balanceUnits);
      return [...units].map(([token, balanceUnits]) => ({ token: symbolOf(token), units: balanceUnits }));
    },
    proofs: () => keepers.proofs?.() ?? null,
    transfers: () => (keepers.transfers?.() ?? []).map(({ token, isUneven }) => ({ token: symbolOf(token), isUneven })),
    async orderReverts() {
      if (!shared.config.ROLES.includes('executor')) return null;
      return sumReverts(db.reads, nowMs() - HOUR_MS);
    },
    async swapProfits() {
      if (!shared.config.ROLES.includes('executor')) return [];
      const profits = await readSwapProfits(db.reads, nowMs() - HOUR_MS);
      const nothing = {
        filled: 0,
        feesWei: 0n,
        worstWei: 0n,
        filledCostWei: 0n,
        revertedCostWei: 0n,
        gaveWayCostWei: 0n,
      };
      const served = servedTokens(markets);
      const others = profits.filter(({ token }) => served.every(({ address }) => address !== token));
      return [
        ...served.map(({ address, symbol }) => ({
          ...(profits.find(({ token }) => token === address) ?? nothing),
          token: symbol,
        })),
        ...others.map((profit) => ({ ...profit, token: profit.token ?? 'none' })),
      ];
    },
    executors: () =>
      shared.config.ROLES.includes('executor') ? readExecutors(db.reads, nowMs()) : Promise.resolve([]),
    async suspense() {
      const { items, units } = await readSuspenseFacts(db.reads);
      const tokens = new Map(markets.flatMap(({ base, quote }) => [base, quote]).map(({ address }) => [address, 0n]));
      for (const one of units) tokens.set(one.token, one.units);
      return {
        items: Object.entries(items).map(([kind, count]) => ({ kind, count })),
        units: [...tokens].map(([token, held]) => ({ token: symbolOf(token), units: held })),
      };
    },
    async operator() {
      const { operator, OPERATOR_FLOORS } = shared.config;
      const standings = await readOperatorStandings(db.reads, { operator, markets, floors: OPERATOR_FLOORS });
      return standings.map(({ token, ...facts }) => ({ token: token.symbol, ...facts }));
    },
    async pairs() {
      const worst = await readWorstPairs(db.knex, SHOWN_PAIRS);
      const nobody = new Set(markets.map(({ quote }) => quote.symbol));
      return [
        ...[...nobody].map((token) => ({ maker: '', taker: '', token, gainUnits: 0n, losing: false })),
        ...worst.map((pair) => ({ ...pair, token: symbolOf(pair.token), losing: isLosing(pair) })),
      ];
    },
    async business() {
      if (!shared.config.ROLES.includes('watcher')) return null;
      // Scrapes come more often than blocks that matter here.
      const { wrappedNative: nativeToken } = shared.config;
      const facts = await remembered.get(`${Math.floor(nowMs() / BUSINESS_MS)}`, () =>
        readTx(db, (q) => readBusiness(q, markets, { nativeToken, nowMs: nowMs() })),
      );
      return {
        markets: facts.markets.map((one) => {
          const { pair, base, quote } = markets[one.market]!;
          return { ...one, pair, baseDecimals: base.decimals, quoteDecimals: quote.decimals };
        }),
        gasWei: facts.gasWei,
      };
    },
    signers: () =>
      keepers.signers.map(({ role, status }) => {
        const { signer, ...facts } = status();
        return { role, address: signer, ...facts };
      }),
    endpoints: () => keepers.endpoints.flatMap(({ user, health }) => health().map((one) => ({ user, ...one }))),
    heads: () => keepers.heads?.() ?? null,
    hints: () => shared.hints.facts(),
    poster: () => keepers.poster?.() ?? null,
    settler: () => keepers.settler?.() ?? null,
    async storage() {
      const { orderSeq } = await readCompactionPosition(db.reads);
      return { bytes: await databaseBytes(db), foldedOrderSeq: orderSeq };
    },
    replication: () => shared.replication(),
    replica: sources.replica ?? (() => null),
    edge: sources.edge ?? (() => null),
    gateway: sources.gateway,
    nats: sources.nats,
    nowMs,
  };
}
