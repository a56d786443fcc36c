/** Each service of the compose file that runs this program, by profile: its command and environment, from what the image has. */
import { expect } from 'chai';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DCLinter } from 'dclint';
import { Wallet } from 'ethers';
import { freePort } from '../../deploy/sandbox/ports.js';
import { openDb } from '../../ledger/db/db.js';
import {
  containerOf,
  isOurs,
  ofProfile,
  services,
  startNatsServers,
  unpackImage,
  type Profile,
  type Service,
  startChainOf,
} from '../support/console/compose.js';
import type { ManualChain } from '../support/keeper-stack.js';
import { runProgram, startProgram, type Program } from '../support/console/program.js';
import { signBody } from '../support/nodes/edges.js';
import { natsProgram, type Nats } from '../support/nodes/nats.js';
import { until } from '../support/stack.js';
import { FIRST_ASSET } from '../support/trading.js';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const ours = Object.entries(services).filter(([, service]) => isOurs(service));
const postgres = process.env.DATABASE_URL ?? '';
const LIMIT_MS = 120_000;

/** A container as a process. */
interface Started {
  program: Program;
  env: Record<string, string>;
  probe: string[];
  port: number;
}

/** What is used of the linter, whose own types name files without their extensions. */
interface Linter {
  lintFiles(
    paths: readonly string[],
    recursive: boolean,
  ): { messages: { type: string; line: number; rule: string; message: string }[] }[];
}

/** Errors of the linter, the schema of the Compose Specification included. */
function complaints(file: string): string[] {
  const rules = {
    'no-version-field': 2,
    'no-duplicate-container-names': 2,
    'no-duplicate-exported-ports': 2,
    'no-unbound-port-interfaces': 2,
    'service-image-require-explicit-tag': 2,
    'require-project-name-field': 2,
  };
  const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] }) as Linter;
  return linter
    .lintFiles([file], false)
    .flatMap(({ messages }) => messages)
    .filter(({ type }) => type === 'error')
    .map(({ line, rule, message }) => `${line} ${rule}: ${message}`);
}

describe('The processes of the compose file', function () {
  this.timeout(600_000);
  let chain: ManualChain;
  let folder: string;
  /** What the image has of the project. */
  let image: string;
  const program = natsProgram();
  let nats: Nats[] = [];

  before(async () => {
    // Builds what is not in line with its sources.
    await runProgram(['node', 'scripts/curvebook.mjs', '--version'], {});
    image = mkdtempSync(join(tmpdir(), 'curvebook-image-'));
    unpackImage(image);
    folder = mkdtempSync(join(tmpdir(), 'curvebook-compose-'));
    chain = await startChainOf(folder);
  });

  after(async () => {
    await chain?.close();
    await Promise.all(nats.map((server) => server.close()));
    for (const one of [folder, image]) rmSync(one, { recursive: true, force: true });
  });

  /** What an operator fills in. */
  const settings = (gatewayPorts: readonly number[] = []): Record<string, string> => ({
    GATEWAY_URLS: gatewayPorts.map((port) => `http://127.0.0.1:${port}`).join(','),
    MANIFEST: join(folder, 'manifest.json'),
    DATABASE_PASSWORD: 'none',
    RPC_URL: chain.rpcUrl,
    OPERATOR_ADDRESS: chain.address('owner'),
    ALERT_WEBHOOK_URL: 'http://127.0.0.1:9/',
    GRAFANA_PASSWORD: 'none',
    LOG_LEVEL: 'debug',
    POSTER_PRIVATE_KEY: chain.wallet('poster').privateKey,
    SETTLER_PRIVATE_KEY: chain.wallet('settler').privateKey,
    EXECUTOR_PRIVATE_KEY: chain.wallet('executor').privateKey,
    NATS_URL: nats.length === 0 ? 'nats://127.0.0.1:9' : nats.map(({ url }) => url).join(','),
    NATS_PASSWORD: 'none',
    NATS_EDGE_PASSWORD: 'none of edges',
    EDGE_SECRET: 'a secret of tests, which protects nothing',
  });

  const container = (name: string, databaseUrl: string, metricsPort = 0, port = 0, gatewayPorts?: readonly number[]) =>
    containerOf(services[name]!, settings(gatewayPorts), { databaseUrl, volumes: folder, port, metricsPort });

  /** Starts all processes of a profile, or those that are named. */
  async function startProfile(
    profile: Profile,
    databaseUrl: string,
    only?: readonly string[],
  ): Promise<Map<string, Started>> {
    const running = new Map<string, Started>();
    if (profile === 'scaled' && program !== null && nats.length === 0)
      nats = await startNatsServers(program, settings());
    // Without NATS no edge is ever ready.
    const has = ([name, service]: [string, Service]): boolean =>
      isOurs(service) && (nats.length > 0 || !name.startsWith('edge')) && (only?.includes(name) ?? true);
    const ports = new Map<string, number>();
    for (const [name] of ofProfile(profile).filter(has)) ports.set(name, await freePort('127.0.0.1'));
    const gatewayPorts = [...ports].filter(([name]) => name.startsWith('gateway')).map(([, port]) => port);
    for (const [name, port] of ports) {
      const metricsPort = await freePort('127.0.0.1');
      const { command, env, probe } = container(name, databaseUrl, metricsPort, port, gatewayPorts);
      running.set(name, { program: startProgram(command, env, image), env, probe, port });
    }
    return running;
  }

  /** What a process says of itself at a path; empty while it does not answer. */
  const saying = ({ env }: Started, path: string): Promise<string> =>
    fetch(`http://127.0.0.1:${env['METRICS_PORT']}${path}`).then(
      (answer) => answer.text(),
      () => '',
    );

  /** Whether the probe that the container has says so. It is a process of its own, which is not started before somebody answers. */
  async function answers(started: Started, probe: string[]): Promise<boolean> {
    if ((await saying(started, '/live')) === '') return false;
    return (await runProgram(probe, started.env, image)).code === 0;
  }

  /** The same, asked again and again: of what is not ready the probe would say so, too. */
  async function answersSoon(started: Started, probe: string[]): Promise<boolean> {
    const isReady = /"(?:ready|active)":true|"reason":"standby"/.test(await saying(started, probe.at(-1)!));
    return isReady && answers(started, probe);
  }

  async function untilHealthy(running: ReadonlyMap<string, Started>): Promise<void> {
    for (const [name, started] of running) {
      const healthy = async (): Promise<boolean> => {
        if (started.program.exitCode() !== null) throw new Error(`${name} ended:\n${started.program.output()}`);
        return answersSoon(started, started.probe);
      };
      await until(`${name} to be healthy`, healthy, LIMIT_MS);
    }
  }

  /** Each process ends with 0 when it is told to stop, and no line of its log has a key. */
  async function stopAll(running: ReadonlyMap<string, Started>): Promise<void> {
    for (const [name, { program, env }] of running) {
      program.kill('SIGTERM');
      expect(await program.ended, `${name}:\n${program.output()}`).to.equal(0);
      for (const [setting, value] of Object.entries(env).filter(([setting]) => setting.endsWith('_PRIVATE_KEY')))
        if (value !== '') expect(program.output().toLowerCase(), setting).not.to.include(value.slice(2).toLowerCase());
    }
  }

  /** Runs `act` on an empty schema of the server, and ends what it leaves running. */
  async function onPostgres(act: (url: string, running: (some: Map<string, Started>) => void) => Promise<void>) {
    const schema = `compose_${process.pid}_${Date.now()}`;
    const db = await openDb(postgres);
    const url = new URL(postgres);
    url.searchParams.set('schema', schema);
    let left: Map<string, Started> = new Map();
    try {
      await act(url.toString(), (some) => (left = some));
    } finally {
      await endAll(left);
      await db.knex.raw('drop schema if exists ?? cascade', [schema]);
      await db.close();
    }
  }

  async function endAll(running: ReadonlyMap<string, Started>): Promise<void> {
    for (const { program } of running.values()) program.kill('SIGKILL');
    for (const { program } of running.values()) await program.ended;
  }

  it('are described as the Compose Specification says, and a mistake in the file is noticed', () => {
    const path = fileURLToPath(new URL('deploy/ops/compose.yaml', root));
    expect(complaints(path)).to.deep.equal([]);
    const wrong = join(folder, 'compose.yaml');
    writeFileSync(wrong, read('deploy/ops/compose.yaml').replace('start_period: 60s', 'start_periode: 60s'));
    expect(complaints(wrong).join('\n')).to.include('healthcheck');
  });

  it('are restarted as their exit codes say', () => {
    // Docker's `on-failure` starts again after every code but 0, which the entry point gives to what no restart helps.
    for (const [name, { restart }] of ours) expect(restart, name).to.equal('on-failure');
  });

  it('may write to their volumes alone, as nobody in particular, and gain no rights', () => {
    for (const [name, service] of ours) {
      expect([service.user, service.read_only, service.cap_drop, service.security_opt], name).to.deep.equal([
        '1000:1000',
        true,
        ['ALL'],
        ['no-new-privileges:true'],
      ]);
    }
    const writable = Object.entries(services).filter(([, { read_only: readOnly }]) => readOnly !== true);
    expect(writable.map(([name]) => name)).to.deep.equal(['alertmanager']);
    // Compose copies what `configs` has into the container, which Docker refuses where that is read-only.
    const copiedInto = Object.entries(services).filter(([, { configs }]) => configs !== undefined);
    expect(copiedInto.map(([name]) => name)).to.deep.equal(['alertmanager']);
    for (const name of ['nats1', 'nats2', 'nats3']) {
      const { user, cap_drop: dropped, security_opt: options } = services[name]!;
      expect([user, dropped, options], name).to.deep.equal(['1000:1000', ['ALL'], ['no-new-privileges:true']]);
    }
  });

  it('of the profile single are one, which keeps its ledger on its volume', async () => {
    mkdirSync(join(folder, 'data'), { recursive: true });
    // Tools that run beside the tests keep a cache in the modules, which the image shares with the project.
    const names = (): unknown[] =>
      readdirSync(image, { recursive: true }).filter((name) => !/^node_modules.\.cache\b/.test(String(name)));
    const before = names();
    const running = await startProfile('single', 'none');
    try {
      expect([...running.keys()]).to.deep.equal(['curvebook']);
      await untilHealthy(running);
      const { env } = running.get('curvebook')!;
      expect(env['DATABASE_URL']).to.equal(`sqlite:${join(folder, 'data', 'curvebook.sqlite')}`);
      const { code, output } = await runProgram(['node', 'scripts/curvebook.mjs', 'status'], env, image);
      expect([code, output.split('\n')[0]], output).to.deep.equal([0, 'ready']);
      await stopAll(running);
    } finally {
      await endAll(running);
    }
    const known = new Set(before);
    const after = names();
    expect(
      after.filter((name) => !known.has(name)),
      'nothing is written beside it',
    ).to.deep.equal([]);
    expect(after.length).to.equal(before.length);
  });

  if (postgres !== '') {
    it('of the profile roles all start and become healthy, and say why they are not', () =>
      onPostgres(async (url, leave) => {
        const running = await startProfile('roles', url);
        leave(running);
        await untilHealthy(running);

        const operate = (...args: string[]) =>
          runProgram(['node', 'scripts/curvebook.mjs', ...args], running.get('watcher')!.env, image);
        const halted = await operate('halt', 'looking around');
        expect(halted.code, halted.output).to.equal(0);
        for (const [name, started] of running) {
          const { program, env, probe } = started;
          // Cancels and reads go on: whoever sends requests to the gateway must not take it for dead.
          if (name === 'gateway') {
            expect(await answers(started, [...probe.slice(0, -1), '/ready', '/active']), name).to.equal(true);
            continue;
          }
          let said = '';
          const unready = async (): Promise<boolean> => {
            if (!(await saying(started, '/ready')).includes('operator_halt')) return false;
            const { code, output } = await runProgram(probe, env, image);
            said = output;
            // It may have been behind before it heard of the halt.
            return code === 1 && output.includes('operator_halt');
          };
          await until(`${name} to be unready because of the halt`, unready, LIMIT_MS);
          expect(said, name).to.match(/^\/ready 503 /);
          // A halt is for the operator to end: a restart would change nothing of it.
          expect(program.exitCode(), name).to.equal(null);
          await until(`${name} to say that it lives`, () => answers(started, probe.slice(0, -1)), LIMIT_MS);
        }

        await stopAll(running);
        for (const [name, { program }] of running) expect(program.output(), name).to.include(`serving ${name}`);
      }));

    it('of the profile scaled are two of each role, of which one works, and either of which is enough', () =>
      onPostgres(async (url, leave) => {
        const running = await startProfile('scaled', url);
        leave(running);
        const roles = [...running.keys()].map((name) => name.slice(0, -1));
        expect([...new Set(roles)].flatMap((role) => [`${role}1`, `${role}2`])).to.have.members([...running.keys()]);
        await untilHealthy(running);
        const works = (name: string): Promise<boolean> => {
          const asked = name.startsWith('gateway') ? '/active' : '/ready';
          return answersSoon(running.get(name)!, ['node', 'scripts/probe.mjs', asked]);
        };
        for (const role of new Set(roles)) {
          if (role === 'edge') {
            for (const name of ['edge1', 'edge2']) await until(`${name} to work`, () => works(name), LIMIT_MS);
            continue;
          }
          const both = [`${role}1`, `${role}2`];
          let working: string[] = [];
          const one = async (): Promise<boolean> => {
            working = [];
            for (const name of both) if (await works(name)) working.push(name);
            return working.length > 0;
          };
          await until(`a ${role} to work`, one, LIMIT_MS);
          expect(working, 'of two').to.have.length(1);
          const [gone = ''] = working;
          const other = both.find((name) => name !== gone)!;
          // Healthy while it waits, and not taken for one that works.
          expect(await answers(running.get(other)!, running.get(other)!.probe), other).to.equal(true);
          running.get(gone)!.program.kill('SIGKILL');
          await running.get(gone)!.program.ended;
          running.delete(gone);
          await until(`${other} to work`, () => works(other), LIMIT_MS);
        }
        if (nats.length > 0) await until('an edge to work again', () => works('edge1'), LIMIT_MS);
        await stopAll(running);
      }));

    if (program !== null)
      it('of the profile scaled take orders over an edge with any one of the servers of NATS gone, and at either gateway', () =>
        onPostgres(async (url, leave) => {
          const running = await startProfile('scaled', url, ['watcher1', 'gateway1', 'gateway2', 'edge1']);
          leave(running);
          expect(nats).to.have.length(3);
          await untilHealthy(running);
          const { privateKey, address } = chain.wallet('maker1');
          const approval = ['node', 'scripts/curvebook.mjs', 'maker', 'approve', address];
          const { code, output } = await runProgram(approval, running.get('watcher1')!.env, image);
          expect(code, output).to.equal(0);
          const order = { a: FIRST_ASSET, b: true, p: '1000', s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } };
          const rests = async (at = 'edge1'): Promise<boolean> => {
            const body = JSON.stringify(signBody({ type: 'order', orders: [order], grouping: 'na' }, privateKey));
            const headers = { 'content-type': 'application/json' };
            const url = `http://127.0.0.1:${running.get(at)!.port}/exchange`;
            const answer = await fetch(url, { method: 'POST', body, headers }).catch(() => null);
            return (await answer?.text())?.includes('"resting"') === true;
          };
          await until('an order over the edge', () => rests(), LIMIT_MS);
          const gateways = ['gateway1', 'gateway2'];
          const active = await Promise.all(
            gateways.map((name) => fetch(`http://127.0.0.1:${running.get(name)!.port}/active`).then(({ ok }) => ok)),
          );
          expect(active, 'one stands by').to.have.members([true, false]);
          for (const name of gateways) expect(await rests(name), `an order at ${name}`).to.equal(true);
          for (const [index, server] of nats.entries()) {
            await server.kill();
            await until(`an order without server ${index} of NATS`, () => rests(), LIMIT_MS);
            await server.start();
          }
          // Each was connected to one of the three, and all three were gone once.
          for (const name of [gateways[active.indexOf(true)]!, 'edge1'])
            expect(running.get(name)!.program.output(), name).to.include('the connection to NATS is lost');
          await stopAll(running);
        }));
  }

  it('are not started again for a wrong or missing setting, whose value is not told', async () => {
    const { command, env } = container('settler', `sqlite:${join(folder, 'one.sqlite')}`);
    const bare = ['node', 'scripts/curvebook.mjs', ...command.slice(2)];
    expect((await runProgram(bare, { ...env, POLL_INTERVAL_MS: 'soon' })).code).to.equal(1);
    const { SETTLER_PRIVATE_KEY: _, ...without } = env;
    const missing = await runProgram(command, without);
    expect(missing.code).to.equal(0);
    expect(missing.output).to.include('SETTLER_PRIVATE_KEY: required');
    const wrong = await runProgram(bare, { ...env, SETTLER_PRIVATE_KEY: `${Wallet.createRandom().privateKey}00` });
    expect(wrong.code).to.equal(1);
    expect(wrong.output)
      .to.include('SETTLER_PRIVATE_KEY')
      .and.not.match(/0x[0-9a-f]{64}/i);
  });

  it('are started again when a database does not answer', async () => {
    const { command, env } = container('watcher', 'postgres://nobody@127.0.0.1:1/none');
    const { code, output } = await runProgram(command, env, image);
    expect(code, output).to.equal(75);
  });

  it('keep the exit code of commands', async () => {
    const { command, env } = container('gateway', `sqlite:${join(folder, 'two.sqlite')}`);
    expect((await runProgram([...command.slice(0, 2), 'maker', 'approve', 'nobody'], env, image)).code).to.equal(1);
  });
});
