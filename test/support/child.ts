/** Child processes of tests: started with this Node, read line by line, and killed when the test process ends. */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';

const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

export interface Child {
  readonly process: ChildProcess;
  /** Everything printed so far, both streams, for messages of failed tests. */
  output(): string;
  /** Lines of standard output so far. */
  lines(): readonly string[];
  /** Lines of standard error so far. */
  errors(): readonly string[];
  /** The first line of standard output that `accept` takes, past or future. Rejects when the process ends or time runs out. */
  line(accept: (line: string) => boolean, timeoutMs: number): Promise<string>;
  /** Writes a line to its standard input. One that is gone takes none, and that is no error. */
  send(line: string): void;
  /** The exit code; null after a signal that nothing handled. */
  readonly ended: Promise<number | null>;
  /** Sends the signal and resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Entry points that the build has; tests run them from dist/, as in production. */
const BUILT: Record<string, string> = {
  'cli/main.ts': 'dist/cli/main.js',
  'deploy/main.ts': 'dist/deploy/main.js',
  'deploy/sandbox/chain-main.ts': 'dist/deploy/chain.js',
  'examples/taker.ts': 'dist/examples/taker.js',
  'examples/gasless-taker.ts': 'dist/examples/gasless-taker.js',
};

let isBuilt = false;

/** Node's arguments for a TypeScript file of the project: its bundle in dist/, brought up to date, if there is one, else the loader and the file. */
export function programOf(file: string): string[] {
  const built = BUILT[file];
  const transpiled = process.env.TRANSPILED;
  if (built === undefined && transpiled !== undefined) return [join(transpiled, file.replace(/ts$/, 'js'))];
  if (built === undefined) return ['--import', 'tsx', file];
  if (!isBuilt) execFileSync(process.execPath, ['scripts/build.mjs', '--if-stale'], { cwd: projectRoot });
  isBuilt = true;
  return ['--import', './scripts/source-maps.mjs', built];
}

/** Runs a TypeScript file of the project. `nodeArgs` are for Node itself; `within` is a program that runs it in its own place, such as `ip netns exec`. */
export function startChild(
  file: string,
  args: readonly string[],
  env: Record<string, string> = {},
  nodeArgs: readonly string[] = [],
  within: readonly string[] = [],
): Child {
  const [program = '', ...rest] = [...within, process.execPath, ...nodeArgs, ...programOf(file), ...args];
  const child = spawn(program, rest, {
    cwd: projectRoot,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  const orphan = (): void => void child.kill('SIGKILL');
  process.once('exit', orphan);
  child.once('exit', () => process.off('exit', orphan));
  const printed: string[] = [];
  const seen: string[] = [];
  const watchers = new Set<() => void>();
  const gone = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let ended = false;
  const changed = (): void => watchers.forEach((watcher) => watcher());
  createInterface({ input: child.stdout }).on('line', (line) => {
    seen.push(line);
    printed.push(line);
    changed();
  });
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    printed.push(line);
    errors.push(line);
  });
  const output = (): string => printed.slice(-60).join('\n');
  void gone.then(() => {
    ended = true;
    changed();
  });

  function line(accept: (line: string) => boolean, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => finish(new Error(`${file} did not say it in ${timeoutMs} ms:\n${output()}`)),
        timeoutMs,
      );
      function finish(result: Error | string): void {
        clearTimeout(timer);
        watchers.delete(look);
        if (typeof result === 'string') resolve(result);
        else reject(result);
      }
      function look(): void {
        const found = seen.find(accept);
        if (found !== undefined) finish(found);
        else if (ended) finish(new Error(`${file} ended with ${child.exitCode ?? child.signalCode}:\n${output()}`));
      }
      watchers.add(look);
      look();
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await gone;
  }

  const send = (text: string): void => void child.stdin.write(`${text}\n`);

  return { process: child, output, lines: () => seen, errors: () => errors, line, send, ended: gone, end };
}
