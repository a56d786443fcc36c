/** The two PostgreSQL servers of the profile `scaled` as processes of this machine, by the scripts and settings of deploy/ops/compose.yaml. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { freePort } from '../../../deploy/sandbox/ports.js';
import { filled, services } from '../console/compose.js';
import { until } from '../stack.js';
import { asPostgres, newFolder } from './clusters.js';

const ops = fileURLToPath(new URL('../../../deploy/ops/', import.meta.url));
/** Where the image mounts volumes for its data. */
const MOUNT = '/var/lib/postgresql/data';

/** What the image's entry point does for a new server and for one that is there, over sockets of its own. */
const ENTRYPOINT = `#!/bin/sh
set -eu
unset PGHOSTADDR
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > "$SOCKETS/password"
  initdb -D "$PGDATA" --username="$POSTGRES_USER" --pwfile="$SOCKETS/password" --auth-local=trust --auth-host=scram-sha-256 --no-sync
  pg_ctl -D "$PGDATA" -w -o "-c listen_addresses='' -c unix_socket_directories='$SOCKETS' -p $PORT" start
  createdb --username="$POSTGRES_USER" --host="$SOCKETS" --port="$PORT" "$POSTGRES_DB"
  PGHOST="$SOCKETS" PGPORT="$PORT" sh "$INIT"
  pg_ctl -D "$PGDATA" -w stop
fi
exec "$@"
`;

export type ServerName = 'primary' | 'replica';
const SERVERS = ['primary', 'replica'] as const;

type Settings = Readonly<Record<string, string>>;

export interface ComposeServers {
  /** A server's URL, as an operator's settings name it, at the address that it has here. */
  urlOf(written: string): string;
  /** Folder with a server's data. */
  data(name: ServerName): string;
  /** Starts it, and again when its settings are others than those it runs with, as `docker compose up` does. */
  up(name: ServerName, settings: Settings): Promise<void>;
  untilHealthy(name: ServerName): Promise<void>;
  /** Runs a command in the running container, or, where `isNew`, in one of its own; resolves to its output. */
  run(name: ServerName, command: readonly string[], isNew?: boolean): Promise<string>;
  /** Ends it at once, as the loss of its machine would, or as Docker stops it. Does nothing when it does not run. */
  end(name: ServerName, signal: 'SIGQUIT' | 'SIGINT'): Promise<void>;
  /** Null while it runs; else what it said. */
  said(name: ServerName): string | null;
  close(): Promise<void>;
}

interface Server {
  port: number;
  /** In place of the volume. */
  volume: string;
  sockets: string;
  running: { child: ChildProcess; env: Record<string, string>; errors: string[] } | null;
  last: string;
}

export async function composeServers(bin: string): Promise<ComposeServers> {
  const programs = newFolder();
  writeFileSync(join(programs, 'docker-entrypoint.sh'), ENTRYPOINT);
  chmodSync(join(programs, 'docker-entrypoint.sh'), 0o755);
  const servers = {} as Record<ServerName, Server>;
  for (const name of SERVERS) {
    const sockets = join(programs, name);
    mkdirSync(sockets);
    const { uid, gid } = statSync(programs);
    chownSync(sockets, uid, gid);
    servers[name] = { port: await freePort('127.0.0.1'), volume: newFolder(), sockets, running: null, last: '' };
  }
  const isNamed = (host: string): ServerName => (host === 'replica' ? 'replica' : 'primary');

  function environmentOf(name: ServerName, settings: Settings): Record<string, string> {
    const { volume, port, sockets } = servers[name];
    const env = filled(services[name]!.environment ?? {}, settings);
    return {
      ...env,
      PGDATA: env['PGDATA']!.replace(MOUNT, volume),
      PATH: [programs, bin, process.env['PATH']].join(delimiter),
      // What a container's network and its image have: other addresses by name, and sockets of its own.
      PGHOSTADDR: '127.0.0.1',
      PRIMARY_PORT: `${servers[isNamed(env['PRIMARY_HOST'] ?? '')].port}`,
      PORT: `${port}`,
      SOCKETS: sockets,
      INIT: join(ops, 'postgres', 'primary.sh'),
    };
  }

  async function end(name: ServerName, signal: 'SIGQUIT' | 'SIGINT'): Promise<void> {
    const { running } = servers[name];
    if (running === null) return;
    const gone = new Promise((resolve) => running.child.once('exit', resolve));
    running.child.kill(signal);
    await gone;
  }

  function start(name: ServerName, env: Record<string, string>): void {
    const server = servers[name];
    const { entrypoint = [], command = [], volumes = [] } = services[name]!;
    const mounted = (path: string): string => {
      const volume = volumes.map((one) => one.split(':')).find(([, target]) => target === path);
      return volume === undefined ? path : join(ops, volume[0]!);
    };
    const places = ['-p', `${server.port}`, '-c', `unix_socket_directories=${server.sockets}`];
    const [program = '', ...args] = [...asPostgres, ...entrypoint.map(mounted), ...command, ...places];
    const child = spawn(program, args, {
      cwd: programs,
      env: { ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const errors: string[] = [];
    child.stderr.on('data', (data: Buffer) => void errors.push(data.toString()));
    const orphan = (): void => void child.kill('SIGQUIT');
    process.once('exit', orphan);
    server.running = { child, env, errors };
    child.once('exit', () => {
      process.off('exit', orphan);
      server.last = errors.join('');
      server.running = null;
    });
  }

  const run = async (name: ServerName, command: readonly string[], isNew = false): Promise<string> => {
    const { running, sockets, port, volume } = servers[name];
    if (isNew !== (running === null)) throw new Error(`${name} ${isNew ? 'runs' : 'does not run'}`);
    const { PGHOSTADDR: _, ...env } = running?.env ?? environmentOf(name, {});
    const [program = '', ...args] = [...asPostgres, ...command.map((word) => word.replace(MOUNT, volume))];
    const { stdout } = await promisify(execFile)(program, args, {
      cwd: programs,
      env: { ...env, PGHOST: sockets, PGPORT: `${port}` },
    });
    return stdout;
  };

  return {
    urlOf(written) {
      const url = new URL(written);
      const { port } = servers[isNamed(url.hostname)];
      url.hostname = '127.0.0.1';
      url.port = `${port}`;
      return url.toString();
    },
    data: (name) => environmentOf(name, {})['PGDATA']!,
    async up(name, settings) {
      const env = environmentOf(name, settings);
      if (isDeepStrictEqual(servers[name].running?.env, env)) return;
      await end(name, 'SIGINT');
      start(name, env);
    },
    async untilHealthy(name) {
      await until(`${name} to accept connections`, async () => {
        const { running, last } = servers[name];
        if (running === null) throw new Error(`${name} ended:\n${last}`);
        return run(name, services[name]!.healthcheck!.test.slice(1)).then(
          () => true,
          () => false,
        );
      });
    },
    run,
    end,
    said: (name) => (servers[name].running === null ? servers[name].last : null),
    async close() {
      for (const name of SERVERS) await end(name, 'SIGQUIT');
      for (const folder of [programs, ...SERVERS.map((name) => servers[name].volume)])
        rmSync(folder, { recursive: true, force: true });
    },
  };
}
