/** A process that the sandbox starts, watches and stops. */
import { spawn } from 'node:child_process';
import { createWriteStream, openSync } from 'node:fs';
import { createInterface } from 'node:readline';

const SOURCE_MAPS = new URL('../../scripts/source-maps.mjs', import.meta.url).href;

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  /** Resolves when the process is gone and its output is read. */
  readonly ended: Promise<Ended>;
  /** Undefined while it runs. */
  result(): Ended | undefined;
  /** Sends `signal`, and SIGKILL if the process still runs after `graceMs`. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<Ended>;
}

interface ChildOptions {
  name: string;
  /** A program of the build, and its arguments. */
  command: readonly string[];
  /** Ours without it. Secrets belong here: everybody on the machine can read the words of a command. */
  environment?: NodeJS.ProcessEnv;
  /** Gets everything that the process prints. */
  logPath: string;
  /** Each line of its stdout. Without it the process writes to its log itself and outlives us. */
  onLine?: (line: string) => void;
}

/**
 * Starts a program in a process group of its own, so that Ctrl-C reaches only the sandbox, which then stops the others
 * in order.
 */
export function startChild({ name, command, environment, logPath, onLine }: ChildOptions): Child {
  const output = onLine === undefined ? openSync(logPath, 'w') : 'pipe';
  const child = spawn(process.execPath, ['--import', SOURCE_MAPS, ...command], {
    env: environment,
    detached: true,
    stdio: ['ignore', output, output],
  });
  if (onLine !== undefined && child.stdout !== null && child.stderr !== null) {
    const log = createWriteStream(logPath);
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    child.once('close', () => log.end());
    createInterface({ input: child.stdout }).on('line', onLine);
  }
  let result: Ended | undefined;
  const ended = new Promise<Ended>((resolve) => {
    child.once('error', () => resolve((result = { code: 1, signal: null })));
    child.once('close', (code, signal) => resolve((result = { code, signal })));
  });
  return {
    name,
    pid: child.pid,
    ended,
    result: () => result,
    async stop(signal, graceMs) {
      if (result !== undefined) return result;
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      try {
        return await ended;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** "exit code 1" or "SIGKILL". */
export function describeEnd({ code, signal }: Ended): string {
  return signal ?? `exit code ${code}`;
}
