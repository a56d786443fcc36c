/** Starts PostgreSQL servers for a single test, from the binaries that the machine has. */
import { spawn, execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../deploy/sandbox/ports.js';

const ROOT = '/usr/lib/postgresql';

/** Where the newest server's programs are; null where there are none. */
export function postgresBinaries(): string | null {
  if (!existsSync(ROOT)) return null;
  const newest = readdirSync(ROOT).sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))[0];
  return newest === undefined ? null : join(ROOT, newest, 'bin');
}

export interface Cluster {
  url: string;
  /** Its data. */
  folder: string;
  /** Lets it read its configuration again. */
  reload(): Promise<void>;
  /** A replica that streams from it, under a name. */
  replica(name: string): Promise<Cluster>;
  /** Makes a replica a primary. */
  promote(): Promise<void>;
  /** Kills it at once, as the loss of its machine would. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** The server refuses to run as root. */
export const asPostgres =
  process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];

/** Runs a program to its end as the server's user. Throws with what it said when it fails. */
export async function run(...command: string[]): Promise<void> {
  const [program = '', ...args] = [...asPostgres, ...command];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: tmpdir() });
  const said: string[] = [];
  child.stdout.on('data', (data: Buffer) => said.push(data.toString()));
  child.stderr.on('data', (data: Buffer) => said.push(data.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${said.join('')}`);
}

/** Starts an empty server. `settings` are lines of its configuration. */
export async function startCluster(bin: string, settings: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const folder = newFolder();
  await run(join(bin, 'initdb'), '-D', folder, '-U', 'postgres', '-A', 'trust', '--no-sync');
  return serve(bin, folder, settings);
}

/** An empty folder of the server's user. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-pg-'));
  if (asPostgres.length > 0) {
    const id = (flag: string): number => Number.parseInt(execFileSync('id', [flag, 'postgres']).toString(), 10);
    chownSync(folder, id('-u'), id('-g'));
  }
  return folder;
}

async function serve(bin: string, folder: string, settings: Readonly<Record<string, string>>): Promise<Cluster> {
  const port = await freePort('127.0.0.1');
  const all = {
    port: `${port}`,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    ...settings,
  };
  const options = Object.entries(all).map(([name, value]) => `-c ${name}='${value}'`);
  const ctl = (...args: string[]): Promise<void> => run(join(bin, 'pg_ctl'), '-D', folder, '-w', ...args);
  await ctl('-l', join(folder, 'log'), '-o', options.join(' '), 'start');
  let isUp = true;
  const stop = async (mode: string): Promise<void> => {
    if (!isUp) return;
    isUp = false;
    await ctl('-m', mode, 'stop');
  };
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async replica(name) {
      const copy = newFolder();
      const from = `host=127.0.0.1 port=${port} user=postgres application_name=${name}`;
      await run(join(bin, 'pg_basebackup'), '-D', copy, '-R', '-X', 'stream', '-c', 'fast', '-d', from);
      return serve(bin, copy, {});
    },
    folder,
    reload: () => ctl('reload'),
    promote: () => ctl('promote'),
    kill: () => stop('immediate'),
    async close() {
      await stop('immediate');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
