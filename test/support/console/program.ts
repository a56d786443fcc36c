/** A process started as an operator or a container starts it: by its own command and environment, none of this process's settings. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const running = new Set<ChildProcess>();
const endAll = (): void => running.forEach((child) => void child.kill('SIGKILL'));

export interface Program {
  /** Everything printed so far, both streams. */
  output(): string;
  /** Lines of standard error so far: the log. */
  errors(): readonly string[];
  kill(signal: NodeJS.Signals): void;
  /** The exit code; null after a signal that nothing handled. */
  readonly ended: Promise<number | null>;
  /** Null while it runs. */
  exitCode(): number | null;
}

/** What makes processes start sooner, and changes nothing else. */
const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;

/** Starts a command line, in the project's folder unless said otherwise. A process that outlives this one is killed. */
export function startProgram(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string = root,
): Program {
  const [program = '', ...args] = commandLine;
  const child = spawn(program, args, { cwd, env: { PATH, NODE_COMPILE_CACHE, ...env }, stdio: 'pipe' });
  if (running.size === 0) process.once('exit', endAll);
  running.add(child);
  const printed: string[] = [];
  const errors: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => void printed.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => {
    printed.push(line);
    errors.push(line);
  });
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    if (running.size === 0) process.off('exit', endAll);
    return code as number | null;
  });
  return {
    ended,
    output: () => printed.join('\n'),
    errors: () => errors,
    kill: (signal) => void child.kill(signal),
    exitCode: () => child.exitCode,
  };
}

/** Runs a command line to its end. */
export async function runProgram(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string = root,
): Promise<{ code: number | null; output: string }> {
  const program = startProgram(commandLine, env, cwd);
  return { code: await program.ended, output: program.output() };
}
