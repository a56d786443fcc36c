/** Processes of the backend: the real roles over one database file, ended by crashes and started again, with standbys that wait. */
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Koa from 'koa';
import type { Logger } from 'pino';
import { loadConfig, type Config } from '../../cli/config.js';
import { startExecutor } from '../../cli/roles/executor/role.js';
import { startCompactor } from '../../cli/roles/gateway/role.js';
import { swapRouter } from '../../cli/roles/gateway/swap-api.js';
import { warmPoster } from '../../cli/roles/poster/start.js';
import { startSettler } from '../../cli/roles/settler/role.js';
import type { RoleContext } from '../../cli/roles/context.js';
import type { RoleRun, RoleTopic } from '../../cli/roles/role.js';
import { wakeByHints } from '../../cli/roles/wakes.js';
import { startLedger } from '../../cli/roles/watcher/ledger.js';
import { createMinOrderUnits } from '../../core/min-order.js';
import { judgeReadiness, type WatcherStatus } from '../../keepers/watcher/status.js';
import type { Readiness } from '../../core/types.js';
import { openDb, prepareDb } from '../../ledger/db/db.js';
import { LOG_OF_ROLE, type LogName, type Role } from '../../ledger/roles.js';
import type { Writer } from '../../ledger/types.js';
import type { ArchiveStore } from '../../keepers/archive/store.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { createApp } from '../../server/app.js';
import { createGateway, type Gateway } from '../../server/orders/engine.js';
import type { Locks } from './locks.js';
import type { HintBoard } from './sql/hints.js';
import { gatewayDeps, standBy } from './roles/standby.js';
import { createActor, type Actor } from './scheduler.js';
import type { Simulation } from './world.js';

/** A place where a process runs, one after the other. */
interface Place {
  readonly name: string;
  readonly roles: readonly Role[];
  actor: Actor | null;
  /** Null while it serves none. */
  gateway: Gateway | null;
  /** The swap API, beside the gateway. */
  swaps: Koa | null;
  readiness: (() => Readiness) | null;
  status: (() => WatcherStatus) | null;
  startedMs: number;
}

const SETTINGS = {
  ROLES: 'watcher,gateway,poster,settler,executor',
  LOG_LEVEL: 'silent',
  CURVE_TTL_SEC: '30',
  CHECKPOINT_INTERVAL_SEC: '60',
  CLAIM_INTERVAL_SEC: '5',
  SMALL_CLAIM_INTERVAL_SEC: '5',
  MIN_ORDER_VALUES: 'USDC=1,DAI=1',
  SWAP_ORDER_TTL_SEC: '30',
};

/** Looks that find nothing are most of what a run takes. A watcher must look more often than its ledger gets stale. */
const POLL_INTERVALS_MS: readonly string[] = ['1000', '2500', '4000'];
const SETTLE_INTERVALS_MS: readonly string[] = ['1000', '3000', '6000'];

/** Few orders are tried as often as the default lets them. */
const MOST_SENDS: readonly string[] = ['1', '2', '5'];

/** The configuration of all processes, as `curvebook serve` would read it. */
export function configOf(world: Simulation, urls: readonly string[]): Config {
  const { manifest } = world.chain.setting;
  const path = join(world.folder, 'manifest.json');
  writeFileSync(path, JSON.stringify({ ...manifest, deploymentId: '00000000000000d0', rpcUrl: urls[0] }));
  const paces = {
    POLL_INTERVAL_MS: world.decisions.pick('poll interval', POLL_INTERVALS_MS),
    SETTLE_INTERVAL_MS: world.decisions.pick('settle interval', SETTLE_INTERVALS_MS),
    SWAP_MAX_SENDS: world.decisions.pick('most sends', MOST_SENDS),
  };
  return loadConfig({ ...SETTINGS, ...paces, MANIFEST: path, RPC_URL: urls.join() }, {});
}

/** In memory where the system has such a place: commits are synced to the disk, and no power fails here. */
export const temporaryFolder = (): string =>
  mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'curvebook-simulation-'));

/** A logger that counts what is told, which says what paths were taken. */
function countingLogger({ record, scheduler }: Simulation, place: string): Logger {
  const tell =
    (level: string) =>
    (...args: unknown[]): void => {
      const text = args.find((one): one is string => typeof one === 'string') ?? '';
      if (level !== 'debug') record.count(`says ${text}`);
      record.trace(() => `${scheduler.nowMs()} ${place} ${level}: ${text} ${describe(args[0])}`);
    };
  const logger = {
    debug: tell('debug'),
    info: tell('info'),
    warn: tell('warn'),
    error: tell('error'),
    fatal: tell('fatal'),
  };
  return logger as unknown as Logger;
}

function describe(fields: unknown): string {
  const error = (fields as { err?: unknown } | undefined)?.err;
  if (error instanceof Error) return `${error.name}: ${error.message.split('\n')[0]}`;
  return typeof fields === 'object'
    ? JSON.stringify(fields, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)).slice(0, 160)
    : '';
}

export interface Backend {
  readonly places: readonly Place[];
  readonly config: Config;
  start(place: Place): void;
  /** The one that serves orders now. */
  activeGateway(): (Place & { gateway: Gateway; swaps: Koa; actor: Actor }) | undefined;
  databaseUrl(): string;
  /** Kills everybody, and starts nobody before the promise has resolved. */
  hold(until: Promise<void>): void;
  /** How often the database was another one; whoever is answered in another era can't rely on what was said. */
  era(): number;
}

/** Sets the places up; `start` brings each to life. */
export function createBackend(
  world: Simulation,
  locks: Locks,
  hints: HintBoard,
  config: Config,
  layout: readonly { name: string; roles: readonly Role[] }[],
  databaseUrl: () => string,
  archiveStore: ArchiveStore | null,
): Backend {
  const { scheduler, record, decisions } = world;
  let held: Promise<void> | null = null;
  let era = 0;
  const places = layout.map(({ name, roles }): Place => ({
    name,
    roles,
    actor: null,
    gateway: null,
    swaps: null,
    readiness: null,
    status: null,
    startedMs: 0,
  }));

  function start(place: Place): void {
    if (held !== null) return void held.then(() => start(place));
    const actor = createActor(place.name);
    place.actor = actor;
    place.startedMs = scheduler.nowMs();
    record.count('process started');
    record.trace(() => `${scheduler.nowMs()} ${place.name} starts`);
    actor.onDeath.push(() => {
      place.actor = null;
      place.gateway = null;
      place.swaps = null;
      place.readiness = null;
      place.status = null;
      record.trace(() => `${scheduler.nowMs()} ${place.name} dies`);
      scheduler.after(decisions.int('restartMs', 300, 4_000), () => start(place), null);
    });
    const end = (error: unknown): void => {
      record.count('process ended');
      record.trace(() => `${scheduler.nowMs()} ${place.name} ends: ${String(error)}`);
      scheduler.kill(actor);
    };
    scheduler.after(0, () => void run(place, actor, end).catch(end), actor);
  }

  /** As cli/roles/run.ts puts them together, less the HTTP server. */
  async function run(place: Place, actor: Actor, end: (error: unknown) => void): Promise<void> {
    const { signal } = new AbortController();
    const logger = countingLogger(world, place.name);
    const db = await openDb(databaseUrl());
    await prepareDb(db, config.manifest.deploymentId);
    const markets: RoleContext['markets'] = [];
    const writers = new Map<LogName, Writer>();
    let readStatus: (() => WatcherStatus) | null = null;
    const watcherStatus = (): WatcherStatus => {
      if (readStatus === null) throw new Error('no role follows the ledger yet');
      return readStatus();
    };
    const context = {
      config: { ...config, ROLES: [...place.roles] },
      // Nothing listens.
      doors: {} as RoleContext['doors'],
      db,
      hints: hints.of(actor),
      logger,
      markets,
      minOrderUnits: createMinOrderUnits(config.MIN_ORDER_VALUES),
      writers,
      keepers: { signers: [], endpoints: [], poster: null, settler: null, transfers: null, proofs: null, heads: null },
      watcherStatus,
      readiness: () => judgeReadiness(watcherStatus(), Date.now()),
      nowMs: () => Date.now(),
      monotonicMs: () => performance.now(),
      ...(archiveStore === null ? {} : { archiveStore }),
    } as unknown as RoleContext<Config>;
    const onReversal = (): void => end(new Error('what the roles hold in memory is out of date'));
    const acquired = Promise.withResolvers<void>();
    const warm = place.roles.includes('poster') ? warmPoster(context, acquired.promise, signal) : null;
    const standing = place.roles.includes('gateway') ? standBy(context, acquired.promise, onReversal) : null;
    for (const role of place.roles) {
      const log = LOG_OF_ROLE[role];
      await locks.take(log, actor);
      writers.set(log, await acquireWriter(db, log, { signal, onLost: end }));
    }
    acquired.resolve();
    await warm?.takeOver();
    const listeners = new Map<RoleTopic, (() => void)[]>();
    const tell = (topic: RoleTopic): void => listeners.get(topic)?.forEach((wake) => wake());
    const notify = (): void => tell('generations');
    const ledger = await startLedger(context, signal, { notify, onReversal }, ({ custody }) => {
      if (custody.length > 0) tell('claims');
    });
    readStatus = ledger.status;
    const ownsLedger = writers.has('ledger');
    wakeByHints(context, ownsLedger ? ['operator'] : ['ledger', 'operator'], ledger.loop.wake, signal);
    wakeByHints(context, ['operator'], notify, signal);
    const owns = { generations: true, claims: ownsLedger, swaps: writers.has('order'), operator: false };
    function wakeBy(topics: readonly RoleTopic[], wake: () => void): void {
      for (const topic of topics) listeners.set(topic, [...(listeners.get(topic) ?? []), wake]);
      for (const topic of topics)
        if (topic !== 'generations' && !owns[topic]) wakeByHints(context, [topic], wake, signal);
    }
    /** A process that dies in the middle of its start goes on until its next statement, and must not stand for the one after it. */
    const show = (part: Partial<Pick<Place, 'gateway' | 'swaps' | 'readiness' | 'status'>>): void => {
      if (place.actor === actor) Object.assign(place, part);
    };
    show({ readiness: context.readiness, status: ledger.status });
    const swapWriter = writers.get('swap');
    const executor = swapWriter === undefined ? null : await startExecutor(context, swapWriter, signal);
    if (executor !== null) wakeBy(['generations', 'swaps'], executor.wake);
    const orderWriter = writers.get('order');
    if (orderWriter !== undefined) {
      const promoted = await standing!.promoted(orderWriter);
      const gateway = promoted ?? (await createGateway({ ...gatewayDeps(context), writer: orderWriter }));
      record.count(promoted === null ? 'gateway begins' : 'gateway promoted in place');
      if (promoted === null) gateway.run(signal).catch(end);
      wakeBy(['generations'], gateway.onGeneration);
      show({ gateway, swaps: createApp({ routers: [swapRouter(context, () => tell('swaps'))!], logger }) });
      startCompactor(context, orderWriter, signal);
    }
    const postWriter = writers.get('publication');
    const run = { context, signal, wakeBy, onOutdated: onReversal } as Omit<RoleRun<Config>, 'writer'>;
    if (postWriter !== undefined) await warm!.start({ ...run, writer: postWriter });
    const settleWriter = writers.get('settlement');
    if (settleWriter !== undefined)
      wakeBy(['claims', 'operator'], (await startSettler(context, settleWriter, signal)).wake);
    record.count('process ready to serve');
  }

  return {
    places,
    config,
    start,
    databaseUrl,
    era: () => era,
    hold(until) {
      era += 1;
      held = until.finally(() => (held = null));
      for (const { actor } of places) if (actor !== null) scheduler.kill(actor);
    },
    activeGateway: () =>
      places.find(
        (place): place is Place & { gateway: Gateway; swaps: Koa; actor: Actor } =>
          place.gateway !== null && place.swaps !== null && place.actor !== null && place.gateway.isActive(),
      ),
  };
}
