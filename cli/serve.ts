import { once } from 'node:events';
import { readCommandLine } from './arguments.js';
import { ConfigError, loadConfig, type Config } from './config.js';
import { createLogger } from './logger.js';
import { RolesOutdatedError, startRoles } from './roles.js';
import { createDoor } from '../server/door.js';
import { ListenError } from '../server/listen.js';
import type { Doors } from './shared.js';
import { DatabaseError } from '../ledger/errors.js';

/** The start can't succeed by trying again. */
const EXIT_CONFIGURATION = 1;
/** Start this process again: what failed may work then. */
const EXIT_RESTART = 75;

export const SERVE_SUMMARY = 'runs the roles of a server until it is interrupted; creates the database';

export const SERVE_HELP = `curvebook serve [options]

Runs the roles of this process until it is interrupted. Every option overrides the setting of the same name in the environment. Exit
codes: 0 it was told to stop, 1 a restart won't help, 75 start it again.

  --manifest <path>   deployment manifest (MANIFEST)
  --database <url>    sqlite:<path> or postgres://… (DATABASE_URL)
  --roles <list>      of watcher,gateway,poster,settler,executor (ROLES)
  --port <number>     HTTP port (PORT)
  --rpc <url>         JSON-RPC endpoint (RPC_URL)
`;

/** Runs the roles until SIGINT, SIGTERM or a failure. Returns the exit code: 0, 1 (do not restart) or 75 (restart). */
export async function serveCommand(args: readonly string[]): Promise<number> {
  try {
    const line = readCommandLine(args);
    if (line.help) {
      process.stdout.write(SERVE_HELP);
      return 0;
    }
    const config = loadConfig(line.overrides);
    process.once('uncaughtException', endUnexpectedly);
    const interrupt = new AbortController();
    const { signal } = interrupt;
    const interrupted = once(signal, 'abort').then(() => null);
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort());
    const doors = openDoors(config);
    try {
      for (;;) {
        const running = await startRoles(config, { signal, doors, printLine });
        if (running === null) return 0;
        process.stdout.write(`serving ${config.ROLES.join(', ')}${running.url === null ? '' : ` at ${running.url}`}\n`);
        const failure = await Promise.race([interrupted, running.failed]);
        await running.stop();
        if (failure === null) return 0;
        if (failure instanceof ConfigError) throw failure;
        if (!(failure instanceof RolesOutdatedError)) return EXIT_RESTART;
      }
    } finally {
      await Promise.all([doors.http.close(), doors.ops.close()]);
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    const permanent = error instanceof ConfigError || error instanceof DatabaseError || error instanceof ListenError;
    return permanent ? EXIT_CONFIGURATION : EXIT_RESTART;
  }
}

/** The addresses outlive the roles, which start again when what they hold is out of date: nobody is refused a connection meanwhile. */
function openDoors({ PORT, METRICS_PORT, HOST, LOG_LEVEL }: Config): Doors {
  const logger = createLogger(LOG_LEVEL);
  return {
    http: createDoor({ port: PORT, host: HOST, logger }),
    ops: createDoor({ port: METRICS_PORT ?? 0, host: HOST, portSetting: 'METRICS_PORT', logger }),
  };
}

const printLine = (text: string): void => void process.stdout.write(`${text}\n`);

/** By itself Node would end with 1, which says that a restart won't help. What is durable is consistent at every point. */
function endUnexpectedly(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(EXIT_RESTART);
}
