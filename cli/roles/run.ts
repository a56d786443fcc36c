import type { Logger } from 'pino';
import type { Loop } from '../../keepers/loop.js';
import { judgeReadiness, type WatcherStatus } from '../../keepers/watcher/status.js';
import { createReplicationWatch } from '../../keepers/replication.js';
import { NO_HINTS, listenForHints } from '../../ledger/db/hints.js';
import { openDb } from '../../ledger/db/db.js';
import { LOG_OF_ROLE, type LogName, type Role } from '../../ledger/roles.js';
import type { Writer } from '../../ledger/types.js';
import type { Config } from '../config.js';
import { ListenError } from '../../server/listen.js';
import { prepareKnownDb } from '../database.js';
import { ConfigError } from '../errors.js';
import { fillLine } from '../fill-line.js';
import { createLogger } from '../logger.js';
import { startOps, type Ops } from '../ops.js';
import { startHttp, type HttpHandle, type HttpOptions } from './gateway/http.js';
import { serveStandby, type Standing } from './gateway/standby.js';
import { createLateStarts } from './late.js';
import { acquireLogs } from './logs.js';
import { ROLES } from './registry.js';
import type { Preparation, RoleRun, RoleTopic } from './role.js';
import { checkChain, createRoleContext, type Doors } from './context.js';
import { startSwapCheck } from './swap-check.js';
import { startTransferWatch } from './transfers.js';
import { unusedNames } from './unused-names.js';
import { wakeByHeads, wakeByHints } from './wakes.js';
import { READER } from '../settings/common.js';
import { EDGE } from '../settings/edge.js';
import { startLedger } from './watcher/ledger.js';

/** The ledger was reconciled with the chain, or rows were compacted before they were read: roles start again from what is stored. */
export class RolesOutdatedError extends Error {
  override readonly name = 'RolesOutdatedError';

  constructor() {
    super('what the roles hold in memory is out of date; starting them again');
  }
}

/** Whoever waits longer for its first log takes it over from another process. */
const TAKEOVER_MS = 10_000;

/** A running set of roles. */
export interface Running {
  /** Those that began; the others follow as their logs fall free. */
  roles: readonly string[];
  /** Where the HTTP server listens, null when no role of this process needs one. */
  url: string | null;
  /** Stops the roles in order, closes the database. */
  stop(): Promise<void>;
  /** Resolves when a log was lost to another process, or a keeper ended for another reason than `stop`. */
  readonly failed: Promise<Error>;
}

export interface StartOptions {
  /** Gives the start up, which may wait for logs that another process holds. A set of roles that runs is stopped by `stop`. */
  signal: AbortSignal;
  /** Where the roles answer; they stay open when the roles end. */
  doors: Doors;
  /** Gets one line per fill. */
  printLine(line: string): void;
  /** Told that a start has failed, before what it began is stopped: on a dead connection to the database that may take as long as TCP waits. */
  onFailing(error: unknown): void;
}

/**
 * Starts the configured roles over one database. Each role waits until this process owns its log: it resolves once some have begun, and each other one
 * begins when another process gives its log up. Resolves with null, and leaves nothing behind, when it was told to give up before that.
 */
export async function startRoles(
  config: Config,
  { signal: interrupt, doors, printLine, onFailing }: StartOptions,
): Promise<Running | null> {
  const logger = createLogger(config.LOG_LEVEL);
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, interrupt]);
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<Error>((resolve) => (fail = resolve));

  const db = await openDb(config.DATABASE_URL);
  const writers = new Map<LogName, Writer>();
  const loops: Pick<Loop, 'done'>[] = [];
  let http: HttpHandle | null = null;
  let ops: Ops | null = null;
  let failure: Error | null = null;
  let isStarting = true;
  let standby: HttpHandle | null = null;
  let serving: Promise<Standing | null> = Promise.resolve(null);
  /** Ends of the starts of roles that begin later. */
  let lateEnded: () => Promise<void> = () => Promise.resolve();
  let begun: readonly Role[];
  /** How long another process held the logs. */
  let waitedMs = 0;
  void failed.then((error) => {
    failure = error;
    logger.error({ err: error }, 'the roles end');
    // While it waits for one log another one may be lost.
    if (isStarting) stopping.abort(error);
  });

  function failUnlessStopped(error: unknown): void {
    if (!signal.aborted) fail(error instanceof Error ? error : new Error(String(error)));
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await lateEnded();
    const standing = await serving.catch(() => null);
    await (http ?? standing?.http)?.close();
    await ops?.close();
    await Promise.all(loops.map((loop) => loop.done));
    for (const writer of writers.values()) await writer.release();
    await db.close();
  }

  try {
    // Migrating the tables may take minutes: meanwhile the process must answer liveness probes.
    if (config.METRICS_PORT !== undefined) await doors.ops.open();
    await prepareKnownDb(db, config.manifest.deploymentId, (done, total) =>
      logger.info({ done, total }, 'deriving candles and positions from the fills'),
    );
    let readStatus: (() => WatcherStatus) | null = null;
    const watcherStatus = (): WatcherStatus => {
      if (readStatus === null) throw new Error('no role follows the ledger yet');
      return readStatus();
    };
    const replication = createReplicationWatch({ db, required: config.REQUIRE_SYNC_REPLICA, logger });
    loops.push(replication.start(signal));
    const hints = config.WAKE ? listenForHints(db, { signal, logger }) : NO_HINTS;
    loops.push(hints);
    const context = createRoleContext({
      ...{ config, doors, db, writers, logger, hints, watcherStatus },
      readiness() {
        const readiness = judgeReadiness(watcherStatus(), Date.now());
        return readiness.ready && replication.refuses() ? { ready: false, reason: 'no_sync_replica' } : readiness;
      },
      replication: replication.status,
    });
    const { markets } = context;
    // Started before the writers, so that metrics show a process that waits for its logs.
    ops = await startOps(context, {
      started: () => readStatus !== null && !isStarting,
      serving: () =>
        http !== null || standby !== null ? { ready: true, reason: null } : { ready: false, reason: 'starting' },
      gateway: () => http?.facts() ?? null,
      nats: () => (http ?? standby)?.isOnNats() ?? null,
      failure: () => failure?.message ?? null,
    });
    // Beside the start: no role uses an endpoint before it has proven its chain.
    void checkChain(context, fail);
    loops.push(startSwapCheck(context, signal, fail));
    const played = ROLES.filter(({ name }) => config.ROLES.includes(name));
    const logs = acquireLogs(
      db,
      played.map(({ name }) => name),
      { signal, onLost: fail, logger },
    );
    // Whoever starts next, in this process too, gets each log: none may be taken behind the end of this run.
    loops.push({ done: logs.settled });
    const { metrics } = ops;
    const onReversal = () => fail(new RolesOutdatedError());
    const prepared = new Map<Role, Preparation<Config>>();
    for (const role of played) {
      const preparation = role.prepare?.(context, logs.begun, signal);
      if (preparation === undefined) continue;
      prepared.set(role.name, preparation);
      loops.push(preparation);
    }
    /** Called for what this process follows or commits itself. */
    const listeners: Record<Exclude<RoleTopic, 'operator'>, (() => void)[]> = {
      generations: [],
      claims: [],
      swaps: [],
    };
    const tell = (topic: keyof typeof listeners): void => listeners[topic].forEach((wake) => wake());
    const httpOptions: HttpOptions = {
      signal,
      metrics,
      failure: () => failure?.message ?? null,
      onSwapOrder: () => tell('swaps'),
      onOutdated: onReversal,
      reader: null,
    };
    if (config.ROLES.includes('gateway')) {
      const onServing = (standing: HttpHandle | null): void => void (standby = standing);
      const owned = logs.of('gateway').then(() => undefined);
      serving = serveStandby(context, owned, { ...httpOptions, onServing });
      serving.catch(failUnlessStopped);
    }
    const askedMs = performance.now();
    await logs.begun;
    waitedMs = performance.now() - askedMs;
    signal.throwIfAborted();
    const first = new Set(logs.held.keys());
    for (const preparation of prepared.values()) await preparation.takeOver();
    signal.throwIfAborted();
    const notify = () => tell('generations');
    let toldUnused = false;
    listeners.generations.push(() => {
      // Before that, a market that a setting names may just not have been read yet.
      if (toldUnused || !context.readiness().ready) return;
      toldUnused = true;
      for (const line of unusedNames(markets, config)) logger.warn(line);
    });

    const own = (role: Role): void => void writers.set(LOG_OF_ROLE[role], logs.held.get(role)!);

    /** Writes the ledger where this process owns its log, else follows it; until the signal is aborted. */
    async function beginLedger(until: AbortSignal): Promise<Loop> {
      const ledger = await startLedger(context, until, { notify, onReversal }, (write) => {
        for (const one of write.fills) {
          const market = markets[one.fill.market];
          if (market !== undefined) printLine(fillLine(market, one));
        }
        if (write.custody.length > 0) tell('claims');
      });
      loops.push(ledger.loop);
      signal.throwIfAborted();
      readStatus = ledger.status;
      const ownsLedger = writers.has('ledger');
      const nextBlock = (): number => ledger.status().nextBlock;
      if (ownsLedger) loops.push({ done: wakeByHeads(context, { wake: ledger.loop.wake, nextBlock }, until) });
      // What this process commits itself it knows already.
      wakeByHints(context, ownsLedger ? ['operator'] : ['ledger', 'operator'], ledger.loop.wake, until);
      return ledger.loop;
    }

    if (first.has('watcher')) own('watcher');
    const following = new AbortController();
    const followed = await beginLedger(AbortSignal.any([signal, following.signal]));
    const transfers = startTransferWatch(context, signal);
    if (transfers !== null) loops.push(transfers);
    wakeByHints(context, ['operator'], notify, signal);
    const run: Omit<RoleRun<Config>, 'writer'> = {
      context,
      signal,
      async serve(writer) {
        http = await promoted(await serving, writer, logger);
        signal.throwIfAborted();
        http ??= await startHttp(context, writer, httpOptions);
        return http;
      },
      wakeBy(topics, wake) {
        const owner = {
          generations: true,
          claims: writers.has('ledger'),
          swaps: writers.has('order'),
          operator: false,
        };
        for (const topic of topics) if (topic !== 'operator') listeners[topic].push(wake);
        const hinted = topics.filter((topic) => topic !== 'generations').filter((topic) => !owner[topic]);
        if (hinted.length > 0) wakeByHints(context, hinted, wake, signal);
      },
      onOutdated: onReversal,
    };
    const start = async (role: (typeof ROLES)[number]): Promise<void> => {
      signal.throwIfAborted();
      own(role.name);
      const withWriter = { ...run, writer: writerOf(writers, role.name) };
      // What was prepared has not been kept up to date since the others began.
      const from = first.has(role.name) ? (prepared.get(role.name) ?? role) : role;
      loops.push(...(await from.start(withWriter)));
    };
    const startLate = async (role: (typeof ROLES)[number]): Promise<void> => {
      if (role.name === 'watcher') {
        following.abort();
        await followed.done;
        signal.throwIfAborted();
        own('watcher');
        await beginLedger(signal);
      }
      await start(role);
      logger.info({ role: role.name }, 'a role begins: another process gave its log up');
    };
    const late = createLateStarts(startLate, failUnlessStopped);
    lateEnded = late.ended;
    const lateRoles = (which: (role: { name: Role }) => boolean): void => {
      for (const role of played.filter((one) => !first.has(one.name) && which(one))) {
        const whenOwned = (): void => {
          if (!signal.aborted) late.begin(role);
        };
        logs.of(role.name).then(whenOwned, failUnlessStopped);
      }
    };
    // The gateway may wait for a listing that nobody but the watcher reads.
    lateRoles(({ name }) => name === 'watcher');
    // The gateway first, since fills are told by it; then nobody waits for another one, which may have a long log to replay.
    const isGateway = ({ name }: { name: Role }): boolean => name === 'gateway';
    const now = played.filter(({ name }) => first.has(name));
    for (const role of now.filter(isGateway)) await start(role);
    await allEnded(now.filter((role) => !isGateway(role)).map(start), (error) => stopping.abort(error));
    signal.throwIfAborted();
    begun = config.ROLES.filter((name): name is Role => name !== READER && name !== EDGE && first.has(name));
    lateRoles(({ name }) => name !== 'watcher');
  } catch (error) {
    // Whoever started this is told one line; why that came about is for the log.
    if (!interrupt.aborted && error instanceof Error && error.cause !== undefined)
      logger.error({ err: error }, 'the roles can not start');
    failure ??= error instanceof Error ? error : new Error(String(error));
    const cause = failure as Error | null;
    if (!interrupt.aborted) onFailing(cause instanceof ConfigError ? cause : error);
    await stop();
    if (interrupt.aborted) return null;
    if (cause instanceof ConfigError) throw cause;
    // Who held the logs may be frozen, or on the way out: its address falls free with it, so a restart does help.
    if (error instanceof ListenError && waitedMs > TAKEOVER_MS) throw new Error(error.message, { cause: error });
    throw error;
  }
  isStarting = false;
  const url = (http as HttpHandle | null)?.url ?? null;
  logger.info({ roles: begun, url, metrics: ops.url, database: db.kind }, 'roles started');
  return { roles: begun, url, stop, failed };
}

/** What the standby serves, as the gateway; null when there is none, or when what it holds can't be brought up to date: then it is closed. */
async function promoted(standing: Standing | null, writer: Writer, logger: Logger): Promise<HttpHandle | null> {
  if (standing === null) return null;
  try {
    await standing.promote(writer);
    return standing.http;
  } catch (error) {
    logger.warn({ err: error }, 'the standby is not promoted; the gateway starts from what is stored');
    await standing.http.close();
    return null;
  }
}

function writerOf(writers: ReadonlyMap<LogName, Writer>, role: Role): Writer {
  const writer = writers.get(LOG_OF_ROLE[role]);
  if (writer === undefined) throw new Error(`the ${role} needs its log`);
  return writer;
}

/** Resolves when all have; else rejects with the first failure, of which `onFailure` is told at once, when all have ended. */
async function allEnded(starts: readonly Promise<void>[], onFailure: (error: unknown) => void): Promise<void> {
  let failed: { error: unknown } | null = null;
  const noted = starts.map((start) =>
    start.catch((error: unknown) => {
      failed ??= { error };
      onFailure(error);
    }),
  );
  await Promise.all(noted);
  const first = failed as { error: unknown } | null;
  if (first !== null) throw first.error;
}
