/** Acts as a reader of the documentation: makes a folder like a fresh clone, and runs shell commands in it. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Folders that are not copied: a clone does not have them, or runs write to them. */
const OWN_FOLDERS = new Set(['.curvebook', 'deployments']);
/** Bounds, not expectations: machines that run tests are busy. */
const COMMAND_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 60_000;

interface Finished {
  output: string;
  errors: string;
}

/** A command that goes on until it is stopped. */
export interface Running {
  /** Lines of standard output so far. */
  lines(): readonly string[];
  /** The first line after the first `skip` ones that `accept` takes. Rejects when the command ends or time runs out. */
  line(accept: (line: string) => boolean, skip?: number): Promise<string>;
  /** Ctrl-C, and after a while SIGKILL; resolves to the exit code. */
  stop(): Promise<number | null>;
}

export interface Reader {
  /** Where the commands run. */
  readonly folder: string;
  /** Runs shell text to its end. Rejects unless every command of it succeeds. */
  run(script: string, env?: Record<string, string>): Promise<Finished>;
  /** Starts shell text that runs until it is stopped. */
  start(script: string, env?: Record<string, string>): Running;
  /** Sends a signal to the processes whose command line names this folder and each of `words`; returns how many there were. */
  signal(name: NodeJS.Signals, ...words: string[]): number;
  /** Stops what still runs and removes the folder. */
  close(): Promise<void>;
}

/** `env` is what the reader has set, beside the environment that finds programs; settings of this process are not inherited. */
export function openReader(env: Record<string, string>): Reader {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'curvebook-reader-')));
  for (const name of readdirSync(root)) {
    if (!OWN_FOLDERS.has(name) && name !== '.git') symlinkSync(join(root, name), join(folder, name));
  }
  mkdirSync(join(folder, 'deployments'));
  const path = dirname(process.execPath) + delimiter + (process.env.PATH ?? '');
  const base: Record<string, string> = {
    ...Object.fromEntries(['HOME', 'TMPDIR', 'LANG', 'USER', 'NODE_COMPILE_CACHE'].flatMap((name) => given(name))),
    PATH: path,
    // A missing package must fail the test, not be downloaded.
    npm_config_offline: 'true',
    npm_config_loglevel: 'error',
    ...env,
  };
  const running = new Set<Running>();

  function open(script: string, more: Record<string, string>): ChildProcess {
    const args = ['-e', '-o', 'pipefail', '-c', script];
    // In a process group of its own, which can be signalled as a terminal does it.
    const child = spawn('bash', args, {
      cwd: folder,
      env: { ...base, ...more },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const orphan = (): void => toGroup(child, 'SIGTERM');
    process.once('exit', orphan);
    child.once('exit', () => process.off('exit', orphan));
    return child;
  }

  function run(script: string, more: Record<string, string> = {}): Promise<Finished> {
    return new Promise((resolve, reject) => {
      const child = open(script, more);
      const printed: Finished = { output: '', errors: '' };
      child.stdout!.setEncoding('utf8').on('data', (text: string) => (printed.output += text));
      child.stderr!.setEncoding('utf8').on('data', (text: string) => (printed.errors += text));
      const timer = setTimeout(() => toGroup(child, 'SIGKILL'), COMMAND_TIMEOUT_MS);
      child.once('error', reject);
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        if (code === 0) resolve(printed);
        else reject(new Error(`${script}\nended with ${code ?? signal}:\n${printed.output}${printed.errors}`));
      });
    });
  }

  function start(script: string, more: Record<string, string> = {}): Running {
    const child = open(script, more);
    const lines: string[] = [];
    const errors: string[] = [];
    const watchers = new Set<() => void>();
    let isOver = false;
    const changed = (): void => watchers.forEach((watcher) => watcher());
    createInterface({ input: child.stdout! }).on('line', (line) => {
      lines.push(line);
      changed();
    });
    createInterface({ input: child.stderr! }).on('line', (line) => void errors.push(line));
    const over = new Promise<void>((resolve) => {
      const end = (): void => {
        isOver = true;
        running.delete(self);
        resolve();
        changed();
      };
      child.once('error', end);
      child.once('close', end);
    });
    const all = (): string => [...lines, ...errors].slice(-60).join('\n');
    const self: Running = {
      lines: () => lines,
      line: (accept, skip = 0) =>
        new Promise((resolve, reject) => {
          const look = (): void => {
            const found = lines.slice(skip).find(accept);
            if (found !== undefined) finish(() => resolve(found));
            else if (isOver) finish(() => reject(new Error(`${script}\nended with ${child.exitCode}:\n${all()}`)));
          };
          const timer = setTimeout(
            () => finish(() => reject(new Error(`${script}\ndid not say it in ${COMMAND_TIMEOUT_MS} ms:\n${all()}`))),
            COMMAND_TIMEOUT_MS,
          );
          const finish = (settle: () => void): void => {
            clearTimeout(timer);
            watchers.delete(look);
            settle();
          };
          watchers.add(look);
          look();
        }),
      async stop() {
        if (!isOver) toGroup(child, 'SIGINT');
        const timer = setTimeout(() => toGroup(child, 'SIGKILL'), STOP_TIMEOUT_MS);
        await over;
        clearTimeout(timer);
        return child.exitCode;
      },
    };
    running.add(self);
    return self;
  }

  function signal(name: NodeJS.Signals, ...words: string[]): number {
    const processes = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'args='], {
      encoding: 'utf8',
      maxBuffer: 1e8,
    }).split('\n');
    const pids = processes
      .filter((line) => [`${folder}/`, ...words].every((word) => line.includes(word)))
      .map((line) => parseInt(line, 10));
    for (const pid of pids) sendTo(pid, name);
    return pids.length;
  }

  return {
    folder,
    run,
    start,
    signal,
    async close() {
      await Promise.all([...running].reverse().map((one) => one.stop()));
      signal('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const given = (name: string): [string, string][] => {
  const value = process.env[name];
  return value === undefined ? [] : [[name, value]];
};

function toGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined) sendTo(-child.pid, signal);
}

/** A process that is gone takes no signal, and that is no error. */
function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
