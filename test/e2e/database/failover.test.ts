/**
 * A lost primary of the profile `scaled`, by the steps of docs/runbook.md as they stand there: its servers and processes are those of the compose
 * file, and a step is done as Docker does it.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../../../deploy/sandbox/ports.js';
import { blocksOf } from '../../support/console/docs.js';
import {
  commandInImage,
  containerOf,
  isOurs,
  ofProfile,
  services,
  startChainOf,
} from '../../support/console/compose.js';
import { runProgram, startProgram, type Program } from '../../support/console/program.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { postgresBinaries } from '../../support/nodes/clusters.js';
import { composeServers, type ComposeServers, type ServerName } from '../../support/nodes/compose-servers.js';
import { signBody } from '../../support/nodes/edges.js';
import { until } from '../../support/stack.js';
import { FIRST_ASSET } from '../../support/trading.js';

const root = new URL('../../../', import.meta.url);
const COMPOSE = 'compose() { docker compose --env-file .env --file deploy/ops/compose.yaml --profile scaled "$@"; }';
/** Of the profile's processes two that show the database: one that writes the ledger, and one that takes orders. */
const STARTED = ['watcher1', 'gateway1'];
const LIMIT_MS = 120_000;
const bin = postgresBinaries();

/** What the entry's blocks are for. */
const [PROMOTE = '', ATTACH = '', ALONE = '', WAIT_AGAIN = '', ...MORE] = (() => {
  const text = readFileSync(new URL('docs/runbook.md', root), 'utf8');
  const section = text.slice(text.indexOf('\n## A lost database\n') + 1).split('\n## ')[0]!;
  return blocksOf(section).map(({ code }) => code);
})();

const exchanged = (text: string): string =>
  text.replace(/\b(primary|replica)\b/g, (name) => (name === 'primary' ? 'replica' : 'primary'));

if (bin !== null)
  describe('The replica of the profile scaled', function () {
    this.timeout(600_000);
    let servers: ComposeServers;
    let chain: ManualChain;
    let folder: string;
    let receiver: Server;
    let httpPort: number;
    const running = new Map<string, { program: Program; env: Record<string, string>; probe: string[] }>();
    /** Ids of orders that were acknowledged. */
    const acknowledged: number[] = [];

    before(async () => {
      expect([PROMOTE.split('\n')[0], MORE]).to.deep.equal([COMPOSE, []]);
      await runProgram(['node', 'scripts/curvebook.mjs', '--version'], {});
      servers = await composeServers(bin);
      folder = mkdtempSync(join(tmpdir(), 'curvebook-failover-'));
      httpPort = await freePort('127.0.0.1');
      receiver = createServer((_, response) => response.end());
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
      chain = await startChainOf(folder);
      const settings = {
        MANIFEST: join(folder, 'manifest.json'),
        DATABASE_PASSWORD: 'se-cret',
        RPC_URL: chain.rpcUrl,
        OPERATOR_ADDRESS: chain.address('owner'),
        ALERT_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
        NATS_URL: 'nats://127.0.0.1:9',
        NATS_PASSWORD: 'none',
        EDGE_SECRET: 'a-secret-of-tests-which-protects-nothing',
        FEE_CEILING_GWEI: '50',
      };
      const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
      writeFileSync(join(folder, '.env'), lines.join(''));
    });

    after(async () => {
      for (const { program } of running.values()) program.kill('SIGKILL');
      for (const { program } of running.values()) await program.ended;
      await servers?.close();
      await chain?.close();
      receiver?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    /** What `--env-file .env` says now. */
    const settings = (): Record<string, string> =>
      parseEnv(readFileSync(join(folder, '.env'), 'utf8')) as Record<string, string>;

    const container = (name: string, metricsPort: number) =>
      containerOf(services[name]!, settings(), {
        ...{ databaseUrl: servers.urlOf, volumes: folder, port: httpPort, metricsPort },
      });

    /** Starts what is named and does not run, or runs with other settings, as `docker compose up` does; with `waits` until it is healthy. */
    async function up(names: readonly string[], waits: boolean): Promise<void> {
      const all = names.length === 0 ? ['primary', 'replica', ...STARTED] : names;
      const databases = all.filter(isServer);
      for (const name of databases) await servers.up(name, settings());
      // Ours wait for databases, but not for one that does not become healthy.
      for (const name of databases.filter((one) => waits || one === settings()['DATABASE_HOST']))
        await servers.untilHealthy(name);
      for (const name of all.filter((one) => !isServer(one))) {
        const { command, env, probe } = container(name, await freePort('127.0.0.1'));
        const before = running.get(name);
        const isSame = before?.program.exitCode() === null && before.env['DATABASE_URL'] === env['DATABASE_URL'];
        if (!isSame) {
          await stop(name);
          running.set(name, { program: startProgram(command, env), env, probe });
        }
      }
      for (const name of all.filter((one) => !isServer(one))) {
        const { program, env, probe } = running.get(name)!;
        await until(
          `${name} to be healthy`,
          async () => {
            if (program.exitCode() !== null) throw new Error(`${name} ended:\n${program.output()}`);
            return (await runProgram(probe, env)).code === 0;
          },
          LIMIT_MS,
        );
      }
    }

    async function stop(name: string): Promise<void> {
      const one = running.get(name);
      one?.program.kill('SIGTERM');
      await one?.program.ended;
      running.delete(name);
    }

    const isServer = (name: string): name is ServerName => name === 'primary' || name === 'replica';

    /** Runs a command of ours, and gives what it printed. */
    async function operate(command: readonly string[], env: Record<string, string>): Promise<string> {
      const { code, output } = await runProgram(command, env);
      expect(code, `${command.join(' ')}\n${output}`).to.equal(0);
      return output;
    }

    /** What Docker does at a step; anything that the runbook does not say is an error. */
    async function carryOut(words: readonly string[]): Promise<string> {
      const [verb = '', ...rest] = words;
      const options = rest.slice(0, rest.findIndex((word) => !word.startsWith('--')) >>> 0);
      const entrypoint = options.at(-1) === '--entrypoint' ? rest[options.length] : undefined;
      const args = rest.slice(options.length + (entrypoint === undefined ? 0 : 1));
      const [name = '', ...command] = args;
      if (verb === 'stop') {
        const ours = ofProfile('scaled').filter(([, one]) => isOurs(one));
        expect(args, 'everything that writes').to.have.members(ours.map(([one]) => one));
        for (const one of args) await stop(one);
      } else if (verb === 'rm' && isServer(name)) {
        expect([options, command]).to.deep.equal([['--stop', '--force'], []]);
        await servers.end(name, 'SIGINT');
      } else if (verb === 'up') await up(args, options[0] === '--wait');
      else if (verb === 'exec' && isServer(name)) return servers.run(name, command);
      else if (verb === 'exec') return operate(command, running.get(name)!.env);
      else if (verb === 'run' && isServer(name) && entrypoint !== undefined)
        return servers.run(name, [entrypoint, ...command], true);
      // In a network of its own every port is free.
      else if (verb === 'run') return operate(commandInImage(...command), { ...container(name, 0).env, PORT: '0' });
      else throw new Error(`no step: ${words.join(' ')}`);
      return '';
    }

    /** Follows a block; resolves to what its commands print, one after another. */
    async function follow(block: string): Promise<string[]> {
      const printed: string[] = [];
      for (const line of block
        .trim()
        .split('\n')
        .filter((one) => one !== COMPOSE && one !== exchanged(COMPOSE))) {
        const text = line.replaceAll('https://…', chain.rpcUrl);
        expect(text, 'something is left for the reader to fill in').not.to.contain('…');
        // The shell says which words there are.
        const script = `compose() { printf '%s\\0' "$@"; }\n${text}`;
        const said = execFileSync('bash', ['-e', '-c', script], { cwd: folder, encoding: 'utf8' });
        if (text.startsWith('compose ')) printed.push(await carryOut(said.split('\0').slice(0, -1)));
      }
      return printed;
    }

    /** Places an order at the gateway; resolves to its id, or null when it was not acknowledged. */
    async function place(): Promise<number | null> {
      const order = { a: FIRST_ASSET, b: true, p: '1000', s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } };
      const body = JSON.stringify(
        signBody({ type: 'order', orders: [order], grouping: 'na' }, chain.wallet('maker1').privateKey),
      );
      const headers = { 'content-type': 'application/json' };
      const signal = AbortSignal.timeout(15_000);
      const answer = await fetch(`http://127.0.0.1:${httpPort}/exchange`, { method: 'POST', body, headers, signal })
        .then((response) => response.text())
        .catch(() => '');
      const oid = /"resting":\{"oid":(\d+)\}/.exec(answer)?.[1];
      return oid === undefined ? null : Number(oid);
    }

    /** Places orders until one is not acknowledged, and kills the server after some. */
    async function placeUntilLost(primary: ServerName): Promise<void> {
      const first = acknowledged.length;
      let killed = Promise.resolve();
      for (let oid = await place(); oid !== null; oid = await place()) {
        acknowledged.push(oid);
        if (acknowledged.length === first + 20) killed = servers.end(primary, 'SIGQUIT');
      }
      await killed;
      expect(acknowledged.length).to.be.at.least(first + 20);
    }

    async function open(): Promise<number[]> {
      const body = JSON.stringify({ type: 'openOrders', user: chain.address('maker1') });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`http://127.0.0.1:${httpPort}/info`, { method: 'POST', body, headers });
      return ((await answer.json()) as { oid: number }[]).map(({ oid }) => oid);
    }

    async function untilPlaced(): Promise<void> {
      await until(
        'an order to be acknowledged',
        async () => {
          const oid = await place();
          if (oid !== null) acknowledged.push(oid);
          return oid !== null;
        },
        LIMIT_MS,
      );
    }

    const waitsFor = (primary: ServerName): Promise<string> =>
      servers.run(primary, [
        ...['psql', '--username=curvebook', '--tuples-only', '--no-align', '--command'],
        `select string_agg(sync_state, ',') from pg_stat_replication where state = 'streaming'`,
      ]);

    it('takes the place of a lost primary by the steps of the runbook, and nothing that was acknowledged is lost', async () => {
      await up([], true);
      const { env } = running.get('watcher1')!;
      await operate(commandInImage('maker', 'approve', chain.address('maker1')), env);
      await until('the replica to be waited for', async () => (await waitsFor('primary')).trim() === 'quorum');
      await untilPlaced();
      await placeUntilLost('primary');

      await follow(PROMOTE);
      const [, , doctor = '', , status = '', verify = ''] = await follow(ATTACH);
      const { host } = new URL(servers.urlOf('postgres://replica/'));
      expect(doctor).to.match(new RegExp(`^OK +DATABASE +\\S+@${host}/curvebook: holds the ledger`, 'm'));
      expect(doctor).to.match(/^OK +REPLICAS .*: 1 synchronous$/m);
      expect(status).to.match(/^ready$/m);
      expect(verify).to.not.match(/differ/i);
      expect(await open()).to.include.members(acknowledged);
      expect((await waitsFor('replica')).trim()).to.equal('quorum');
      await untilPlaced();
    });

    it('goes on alone, with the names exchanged, until the other server follows', async () => {
      await placeUntilLost('replica');
      await follow(exchanged(PROMOTE));
      expect(settings()['DATABASE_HOST']).to.equal('primary');
      await follow(exchanged(ALONE));
      expect(await open()).to.include.members(acknowledged);
      await untilPlaced();
      const [empty = '', attach = '', ...checks] = exchanged(ATTACH).trim().split('\n');
      expect(attach).to.equal('compose up --wait replica primary');
      await follow(`${empty}\n${attach}`);
      await until('the other server to follow', async () => (await waitsFor('primary')).trim() === 'async');
      await follow(exchanged(WAIT_AGAIN));
      await until('commits to wait again', async () => (await waitsFor('primary')).trim() === 'quorum');
      await follow(checks.join('\n'));
      expect(await open()).to.include.members(acknowledged);
      const copied = readFileSync(join(servers.data('replica'), 'postgresql.auto.conf'), 'utf8');
      expect(copied, 'it would wait for its own replica').to.not.include('synchronous_standby_names');
    });
  });
