/** The PostgreSQL and the NATS server of a deployment, each at a place of its own, to be killed, frozen and cut off. */
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asPostgres, newFolder, postgresBinaries, run } from '../../test/support/nodes/clusters.js';
import { natsProgram } from '../../test/support/nodes/nats.js';
import type { Place } from './network.js';

export interface Server {
  place: Place;
  url: string;
  /** Ends it with all its processes, as the loss of power does. */
  kill(): Promise<void>;
  /** Resolves when it takes connections. */
  start(): Promise<void>;
  /** To all its processes. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  close(): Promise<void>;
}

const START_MS = 30_000;
const LOOK_MS = 50;

export async function startPostgres(place: Place, port: number): Promise<Server> {
  const bin = postgresBinaries();
  if (bin === null) throw new Error('PostgreSQL is not installed');
  const folder = newFolder();
  await run(join(bin, 'initdb'), '-D', folder, '-U', 'postgres', '-A', 'trust', '--no-sync');
  appendFileSync(join(folder, 'pg_hba.conf'), 'host all all 0.0.0.0/0 trust\n');
  const settings = [`port=${port}`, 'listen_addresses=*', 'unix_socket_directories=', 'max_connections=300'];
  const command = [...asPostgres, join(bin, 'postgres'), '-D', folder, ...settings.flatMap((one) => ['-c', one])];
  const url = `postgres://postgres@${place.address}:${port}/postgres`;
  return startServer(place, { command, url, port, folder });
}

export async function startNats(place: Place, port: number): Promise<Server> {
  const program = natsProgram();
  if (program === null) throw new Error('nats-server is not installed');
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-nats-'));
  const file = join(folder, 'nats.conf');
  writeFileSync(file, `listen: 0.0.0.0:${port}\nmax_payload: 1048576\n`);
  const url = `nats://${place.address}:${port}`;
  return startServer(place, { command: [program, '--config', file], url, port, folder });
}

interface ServerOptions {
  command: readonly string[];
  url: string;
  port: number;
  folder: string;
}

async function startServer(place: Place, { command, url, port, folder }: ServerOptions): Promise<Server> {
  let main: ChildProcess | null = null;

  const tree = (): number[] => (main?.pid === undefined ? [] : [main.pid, ...childrenOf(main.pid)]);
  const killNow = (): void => tree().forEach((pid) => send(pid, 'SIGKILL'));
  process.once('exit', killNow);

  async function start(): Promise<void> {
    const deadlineMs = Date.now() + START_MS;
    for (;;) {
      const [program = '', ...args] = [...place.within, ...command];
      const started = spawn(program, args, { stdio: 'ignore', cwd: tmpdir() });
      main = started;
      // Right after a kill it may find that processes of the one before still end, and end itself.
      while (started.exitCode === null) {
        if (await answers(place.address, port)) return;
        if (Date.now() > deadlineMs) throw new Error(`${url} does not answer`);
        await delay(LOOK_MS);
      }
      if (Date.now() > deadlineMs) throw new Error(`${program} ended with ${started.exitCode}`);
    }
  }

  async function kill(): Promise<void> {
    const ending = main;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise((resolve) => ending.once('exit', resolve));
    killNow();
    await gone;
    main = null;
  }

  await start();
  return {
    place,
    url,
    kill,
    start,
    signal: (signal) => tree().forEach((pid) => send(pid, signal)),
    async close() {
      await kill();
      process.off('exit', killNow);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map((one) => Number.parseInt(one, 10));
  } catch {
    return [];
  }
}

/** A process may end meanwhile. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    return;
  }
}

/** Whether somebody takes connections there. */
const answers = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 });
    const say = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => say(true));
    socket.once('error', () => say(false));
    socket.once('timeout', () => say(false));
  });
