import { once } from 'node:events';
import type { CommandLine } from './arguments.js';
import { loadConfig, readEnvironment, type Config } from './config.js';
import { ConfigError } from './errors.js';
import { EXIT_FAILED, EXIT_RESTART } from './exit-codes.js';
import { createLogger } from './logger.js';
import { startReader } from './roles/reader.js';
import { RolesOutdatedError, startRoles } from './roles/run.js';
import { READER } from './settings/common.js';
import { EDGE } from './settings/edge.js';
import { createDoor } from '../server/door.js';
import { ListenError } from '../server/listen.js';
import type { Doors } from './roles/context.js';
import { DatabaseError } from '../ledger/errors.js';

/** Runs the roles until SIGINT, SIGTERM or a failure. Returns the exit code: 0, 1 (do not restart) or 75 (restart). */
export async function runServe({ overrides, env }: CommandLine): Promise<number> {
  try {
    const config = loadConfig(overrides, readEnvironment(env));
    process.once('uncaughtException', endUnexpectedly);
    const interrupt = new AbortController();
    const { signal } = interrupt;
    const interrupted = once(signal, 'abort').then(() => null);
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort());
    const doors = openDoors(config);
    try {
      for (;;) {
        const start = config.ROLES.some((role) => role === READER || role === EDGE) ? startReader : startRoles;
        const running = await start(config, { signal, doors, printLine, onFailing });
        if (running === null) return 0;
        process.stdout.write(
          `serving ${running.roles.join(', ')}${running.url === null ? '' : ` at ${running.url}`}\n`,
        );
        const failure = await Promise.race([interrupted, running.failed]);
        const isRestart = failure !== null && !isMistake(failure) && !(failure instanceof RolesOutdatedError);
        if (isRestart) endWithin(STOP_LIMIT_MS);
        await running.stop();
        if (failure === null) return 0;
        if (isMistake(failure)) throw failure;
        if (isRestart) return EXIT_RESTART;
      }
    } finally {
      await Promise.all([doors.http.close(), doors.ops.close()]);
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return isPermanent(error) ? EXIT_FAILED : EXIT_RESTART;
  }
}

/** What a restart does not mend. */
const isMistake = (error: unknown): boolean => error instanceof ConfigError || error instanceof DatabaseError;
/** The same at a start: an address that is in use later is that of a process whose logs were taken over. */
const isPermanent = (error: unknown): boolean => isMistake(error) || error instanceof ListenError;

function onFailing(error: unknown): void {
  if (!isPermanent(error)) endWithin(STOP_LIMIT_MS);
}

/** The addresses stay open while roles restart because their state is out of date, so that no connection is refused. */
function openDoors({ PORT, METRICS_PORT, HOST, LOG_LEVEL, TRUST_PROXY: trustProxy }: Config): Doors {
  const logger = createLogger(LOG_LEVEL);
  return {
    http: createDoor({ port: PORT, host: HOST, trustProxy, logger }),
    ops: createDoor({ port: METRICS_PORT ?? 0, host: HOST, portSetting: 'METRICS_PORT', logger }),
  };
}

const printLine = (text: string): void => void process.stdout.write(`${text}\n`);

/**
 * A process that is cut off from its database waits for answers for minutes, as long as the system goes on to send its questions. It has lost
 * its logs, so another one does its work by now.
 */
const STOP_LIMIT_MS = 5_000;

function endWithin(limitMs: number): void {
  const end = (): never => endUnexpectedly(new Error(`what ran did not end within ${limitMs} ms; it is given up`));
  setTimeout(end, limitMs).unref();
}

/** By itself Node would end with 1, which says that a restart won't help. What is durable is consistent at every point. */
function endUnexpectedly(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(EXIT_RESTART);
}
