/** One simulation, from a seed to a verdict. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Address } from '../../core/types.js';
import type { Role } from '../../ledger/roles.js';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { createAuditor } from './auditor.js';
import { createSimulatedChain } from './chain.js';
import { createClients } from './clients.js';
import { createTurns, installClock } from './clock.js';
import { installDatabaseFaults, rememberConnections } from './database.js';
import { createDecisions } from './decisions.js';
import { createEndpoints } from './endpoints.js';
import { createLocks } from './locks.js';
import { createHintBoard } from './sql/hints.js';
import { installDecodedOnce } from './speed/decoded.js';
import { installLeanKnex } from './speed/lean-knex.js';
import { installRowMakers } from './speed/row-makers.js';
import { writeTemplate } from './speed/template.js';
import { installNativeCrypto } from './speed/native-crypto.js';
import { createOrderAuditor } from './order-auditor.js';
import { createOperator } from './operator.js';
import { configOf, createBackend, temporaryFolder } from './processes.js';
import { demandProgress } from './progress.js';
import { createMemoryStore, createReplica } from './roles/replica.js';
import { createScheduler } from './scheduler.js';
import { createWeather } from './weather.js';
import { createRecord, strikes, type FaultRates, type Simulation } from './world.js';

export interface RunOptions {
  seed: number;
  /** Blocks with faults; the demand for progress comes after them. */
  blocks: number;
  faults: FaultRates;
  /** Only these may happen, as `taken` of an earlier run names them. */
  only?: ReadonlySet<string> | null;
  /** Receives the lines of the trace. */
  lines?: string[] | null;
}

export interface RunResult {
  seed: number;
  violations: readonly string[];
  /** Blocks with faults that it was to have. */
  asked: number;
  /** What happened that need not have. */
  taken: readonly string[];
  counts: ReadonlyMap<string, number>;
  digest: string;
  blocks: number;
  simulatedMs: number;
  cpuMs: number;
  events: number;
}

const START_MS = 1_750_000_000_000;
const ENDPOINTS = 3;
/** Between two looks at how signed orders fare. */
const ORDER_LOOK_MS = 8_000;

const LAYOUTS: readonly (readonly { name: string; roles: readonly Role[] }[])[] = [
  [
    { name: 'a', roles: ['watcher', 'gateway', 'poster', 'settler', 'executor'] },
    { name: 'b', roles: ['watcher', 'gateway', 'poster', 'settler', 'executor'] },
  ],
  [
    { name: 'watcher', roles: ['watcher'] },
    { name: 'gateway', roles: ['gateway'] },
    { name: 'poster', roles: ['poster'] },
    { name: 'settler', roles: ['settler'] },
    { name: 'executor', roles: ['executor'] },
    { name: 'standby', roles: ['watcher'] },
    { name: 'standby2', roles: ['executor'] },
  ],
  [
    { name: 'ledger', roles: ['watcher', 'settler', 'executor'] },
    { name: 'orders', roles: ['gateway', 'poster'] },
    { name: 'standby', roles: ['gateway', 'poster'] },
  ],
];

/** Runs one seed to its end or to its first violation. Nothing else of this process may run meanwhile. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const decisions = createDecisions(options.seed, options.only ?? null);
  const scheduler = createScheduler(START_MS, decisions, createTurns());
  const record = createRecord(options.lines ?? null);
  const folder = temporaryFolder();
  installNativeCrypto();
  const { stackTraceLimit } = Error;
  // Endpoints that refuse make thousands of errors, and nobody reads where.
  if ((options.lines ?? null) === null) Error.stackTraceLimit = 0;
  const startedCpu = process.threadCpuUsage();
  let fetcher: typeof fetch = () => Promise.reject(new Error('no network yet'));
  let path = join(folder, 'ledger.sqlite');
  await writeTemplate(path);
  const uninstallLean = installLeanKnex();
  const uninstallRowMakers = installRowMakers();
  const uninstallDecoded = installDecodedOnce();
  const closeConnections = rememberConnections();
  const uninstall = installClock(scheduler, decisions, (...args) => fetcher(...args));
  let uninstallFaults = (): void => undefined;
  let blocks = 0;
  try {
    const world: Simulation = {
      decisions,
      scheduler,
      chain: await createSimulatedChain(),
      faults: options.faults,
      folder,
      record,
      isCalm: false,
    };
    const endpoints = createEndpoints(world, ENDPOINTS);
    fetcher = endpoints.fetch;
    const locks = createLocks(world);
    const config = configOf(world, endpoints.urls);
    const layout = decisions.pick('layout', LAYOUTS);
    const hints = createHintBoard(world);
    const store = strikes(world, 'replicaLag') ? createMemoryStore(world) : null;
    const backend = createBackend(world, locks, hints, config, layout, () => `sqlite:${path}`, store);
    const operator = createOperator(world, backend);
    const weather = createWeather(world, backend, endpoints, locks);
    const starting = operator.start();
    await scheduler.runUntil(START_MS + 3_000, () => undefined);
    await starting;
    const listed = world.chain.setting.markets;
    const clients = createClients(world, backend, listed);
    const isSilent = (token: Address): boolean => endpoints.silentTokens.has(token);
    const auditor = createAuditor(world, backend, clients.promises, weather.reorganisedMs, path, isSilent);
    const orders = createOrderAuditor(world, clients.swappers, {
      reorganisedMs: weather.reorganisedMs,
      isReady() {
        const place = backend.activeGateway();
        const readiness = place?.readiness ?? null;
        return place !== undefined && readiness !== null && scheduler.as(place.actor, readiness).ready;
      },
    });
    uninstallFaults = installDatabaseFaults(world, hints, auditor.committed);
    const isOver = (): boolean => record.violations.length > 0;
    let nextLookMs = scheduler.nowMs();
    let nextOrdersMs = scheduler.nowMs();
    let isLooking = false;
    const afterEach = (): void => {
      auditor.afterStep();
      if (scheduler.nowMs() < nextLookMs) return;
      nextLookMs = scheduler.nowMs() + 1_000;
      auditor.judgeReadiness();
      if (isLooking || scheduler.nowMs() < nextOrdersMs) return;
      isLooking = true;
      nextOrdersMs = scheduler.nowMs() + ORDER_LOOK_MS;
      void orders.look().then(() => (isLooking = false));
    };
    try {
      weather.start();
      clients.start();
      for (const place of backend.places) backend.start(place);
      const use = (next: string): void => void (path = next);
      const replica =
        store === null ? null : createReplica({ world, backend, operator, auditor, clients, store, path, use });
      replica?.start(options.blocks);
      while ((weather.blocks() < options.blocks || replica?.isBusy() === true) && !isOver())
        await scheduler.runUntil(scheduler.nowMs() + 1_000, afterEach);
      if (!isOver()) await demandProgress({ world, backend, endpoints, weather, clients, orders, afterEach });
      if (!isOver()) {
        let isVerified = false;
        void verify().then(() => (isVerified = true));
        // It waits for turns, which are events.
        while (!isVerified) await scheduler.runUntil(scheduler.nowMs() + 1, () => undefined);
      }
    } finally {
      auditor.close();
      blocks = weather.blocks();
    }

    /** Everything derived again by the backend's own audit, against the true chain. */
    async function verify(): Promise<void> {
      const { contracts, deploymentId, deploymentBlock } = config.manifest;
      const { custodian, curveBook, entrypoint, orderSettler } = contracts;
      const places = { custodian, curveBook, entrypoint, orderSettler };
      const { operator: account } = config;
      try {
        await verifyLedger({
          db: operator.db(),
          deploymentId,
          deploymentBlock,
          operator: account,
          contracts: places,
          rpc: null,
          onProgress: () => undefined,
        });
        record.count('verified');
      } catch (error) {
        record.violate(`verify: ${String(error)}`);
      }
    }
  } catch (error) {
    record.violate(`the simulation itself: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  } finally {
    uninstallFaults();
    closeConnections();
    uninstall();
    uninstallDecoded();
    uninstallRowMakers();
    uninstallLean();
    Error.stackTraceLimit = stackTraceLimit;
    rmSync(folder, { recursive: true, force: true });
  }
  const cpu = process.threadCpuUsage(startedCpu);
  return {
    seed: options.seed,
    asked: options.blocks,
    violations: record.violations,
    taken: decisions.taken,
    counts: record.counts,
    digest: record.digest(),
    blocks,
    simulatedMs: scheduler.nowMs() - START_MS,
    cpuMs: (cpu.user + cpu.system) / 1_000,
    events: scheduler.count(),
  };
}
