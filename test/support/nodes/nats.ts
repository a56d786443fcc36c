/** NATS servers of tests: Debian's program, on ports of their own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../deploy/sandbox/ports.js';

const PLACES = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'];
const START_MS = 20_000;

/** The program, or null where it is not installed: then the tests that need it leave themselves out, and say so. */
export function natsProgram(): string | null {
  const found = PLACES.find(existsSync) ?? null;
  if (found === null) process.stderr.write('skipped: nats-server is not installed\n');
  return found;
}

export interface Nats {
  url: string;
  pid(): number;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again at the same port. */
  start(): Promise<void>;
  /** Has it read another configuration, and keep its connections. */
  configure(config: string): void;
  close(): Promise<void>;
}

/** A server that forgets everything when it ends. `config` is more of its configuration file, and `env` what that reads from the environment. */
export async function startNats(
  program: string,
  config = '',
  env: Readonly<Record<string, string>> = {},
): Promise<Nats> {
  const port = await freePort('127.0.0.1');
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-nats-'));
  const file = join(folder, 'nats.conf');
  const write = (text: string): void =>
    writeFileSync(file, `listen: 127.0.0.1:${port}\nmax_payload: 1048576\n${text}\n`);
  write(config);
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    const started = spawn(program, ['--config', file], { stdio: 'ignore', env });
    server = started;
    const orphan = (): void => void started.kill('SIGKILL');
    process.once('exit', orphan);
    started.once('exit', () => process.off('exit', orphan));
    const deadlineMs = Date.now() + START_MS;
    while (!(await answers(port))) {
      if (started.exitCode !== null) throw new Error(`nats-server ended with ${started.exitCode}`);
      if (Date.now() > deadlineMs) throw new Error('nats-server does not answer');
      await delay(50);
    }
  }

  async function kill(): Promise<void> {
    const ending = server;
    server = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill('SIGKILL');
    await gone;
  }

  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    pid() {
      if (server?.pid === undefined) throw new Error('nats-server does not run');
      return server.pid;
    },
    kill,
    start,
    configure(text) {
      write(text);
      server?.kill('SIGHUP');
    },
    async close() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
