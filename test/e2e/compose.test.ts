/** Each service of the compose file that runs this program, started by the command and the environment that it has there. */
import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DCLinter } from 'dclint';
import { Wallet } from 'ethers';
import { parse } from 'yaml';
import { freePort } from '../../deploy/sandbox/ports.js';
import { openDb } from '../../ledger/db/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { runProgram, startProgram, type Program } from '../support/console/program.js';
import { until } from '../support/stack.js';

interface Service {
  command?: string[];
  environment?: Record<string, string>;
  restart?: string;
  healthcheck?: { test: string[] };
}

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const { services } = parse(read('deploy/ops/compose.yaml'), { merge: true }) as { services: Record<string, Service> };
const ours = Object.entries(services).filter(([, { command }]) => command?.[0] === 'serve');
const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(read('deploy/ops/Dockerfile'))![1]!) as string[];
const postgres = process.env.DATABASE_URL ?? '';
const LIMIT_MS = 120_000;

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
  this.timeout(300_000);
  let chain: ManualChain;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-compose-'));
    chain = await startManualChain();
    await chain.provider.send('evm_setIntervalMining', [500]);
    // As of a real deployment: without accounts, so that each key must come from the environment.
    const { accounts: _, ...manifest } = chain.manifest;
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  });

  after(async () => {
    await chain?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The service's environment with what an operator fills in. */
  function environmentOf({ environment = {} }: Service, databaseUrl: string, metricsPort = 0): Record<string, string> {
    const filled: Record<string, string> = {
      MANIFEST: join(folder, 'manifest.json'),
      DATABASE_URL: databaseUrl,
      RPC_URL: chain.rpcUrl,
      OPERATOR_ADDRESS: chain.address('owner'),
      METRICS_PORT: `${metricsPort}`,
      POSTER_PRIVATE_KEY: chain.wallet('poster').privateKey,
      SETTLER_PRIVATE_KEY: chain.wallet('settler').privateKey,
      EXECUTOR_PRIVATE_KEY: chain.wallet('executor').privateKey,
    };
    return Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [
        name,
        filled[name] ?? value.replace(/^\$\{\w+:-(.*)\}$/, '$1').replace(/^\$\{\w+:\+.*\}$/, ''),
      ]),
    );
  }

  /** What the container of a service runs; a published port gives way to a free one. */
  const commandOf = ({ command = [] }: Service): string[] => [
    ...entrypoint,
    ...command.map((word) => (word === '8080' ? '0' : word)),
  ];
  const service = (name: string): Service => services[name]!;

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

  if (postgres !== '') {
    it('all start and become healthy, say why they are not, stop with 0, and log no key', async () => {
      const schema = `compose_${process.pid}`;
      const db = await openDb(postgres);
      const url = new URL(postgres);
      url.searchParams.set('schema', schema);
      const running = new Map<string, { program: Program; env: Record<string, string>; probe: string[] }>();
      try {
        for (const [name, one] of ours) {
          const env = { ...environmentOf(one, url.toString(), await freePort('127.0.0.1')), LOG_LEVEL: 'debug' };
          const [kind, ...probe] = one.healthcheck?.test ?? [];
          expect(kind, name).to.equal('CMD');
          running.set(name, { program: startProgram(commandOf(one), env), env, probe });
        }

        for (const [name, { program, env, probe }] of running) {
          const healthy = async (): Promise<boolean> => {
            if (program.exitCode() !== null) throw new Error(`${name} ended:\n${program.output()}`);
            return (await runProgram(probe, env)).code === 0;
          };
          await until(`${name} to be healthy`, healthy, LIMIT_MS);
        }

        const operate = (...args: string[]) =>
          runProgram(['node', 'scripts/curvebook.mjs', ...args], running.get('watcher')!.env);
        const halted = await operate('halt', 'looking around');
        expect(halted.code, halted.output).to.equal(0);
        for (const [name, { program, env, probe }] of running) {
          const lives = async (): Promise<boolean> => (await runProgram(probe.slice(0, -1), env)).code === 0;
          // Cancels and reads go on: whoever sends requests to the gateway must not take it for dead.
          if (name === 'gateway') {
            const takes = [...probe.slice(0, -1), '/ready', '/active'];
            expect((await runProgram(takes, env)).code, name).to.equal(0);
            continue;
          }
          let said = '';
          const unready = async (): Promise<boolean> => {
            const { code, output } = await runProgram(probe, env);
            said = output;
            // It may have been behind before it heard of the halt.
            return code === 1 && output.includes('operator_halt');
          };
          await until(`${name} to be unready because of the halt`, unready, LIMIT_MS);
          expect(said, name).to.match(/^\/ready 503 /);
          // A halt is for the operator to end: a restart would change nothing of it.
          expect(program.exitCode(), name).to.equal(null);
          await until(`${name} to say that it lives`, lives, LIMIT_MS);
        }

        for (const [name, { program, env }] of running) {
          program.kill('SIGTERM');
          expect(await program.ended, `${name}:\n${program.output()}`).to.equal(0);
          const role = service(name).command!.at(service(name).command!.indexOf('--roles') + 1);
          expect(program.output(), name).to.include(`serving ${role}`);
          for (const [setting, value] of Object.entries(env).filter(([setting]) => setting.endsWith('_PRIVATE_KEY')))
            expect(program.output().toLowerCase(), setting).not.to.include(value.slice(2).toLowerCase());
        }
      } finally {
        for (const { program } of running.values()) program.kill('SIGKILL');
        for (const { program } of running.values()) await program.ended;
        await db.knex.raw('drop schema if exists ?? cascade', [schema]);
        await db.close();
      }
    });
  }

  it('are not started again for a wrong or missing setting, whose value is not told', async () => {
    const settler = service('settler');
    const env = environmentOf(settler, `sqlite:${join(folder, 'one.sqlite')}`);
    const bare = ['node', 'scripts/curvebook.mjs', ...settler.command!];
    expect((await runProgram(bare, { ...env, POLL_INTERVAL_MS: 'soon' })).code).to.equal(1);
    const { SETTLER_PRIVATE_KEY: _, ...without } = env;
    const missing = await runProgram(commandOf(settler), without);
    expect(missing.code).to.equal(0);
    expect(missing.output).to.include('SETTLER_PRIVATE_KEY: required');
    const wrong = await runProgram(bare, { ...env, SETTLER_PRIVATE_KEY: `${Wallet.createRandom().privateKey}00` });
    expect(wrong.code).to.equal(1);
    expect(wrong.output)
      .to.include('SETTLER_PRIVATE_KEY')
      .and.not.match(/0x[0-9a-f]{64}/i);
  });

  it('are started again when a database does not answer', async () => {
    const watcher = service('watcher');
    const env = environmentOf(watcher, 'postgres://nobody@127.0.0.1:1/none');
    const { code, output } = await runProgram(commandOf(watcher), env);
    expect(code, output).to.equal(75);
  });

  it('keep the exit code of commands', async () => {
    const env = environmentOf(service('gateway'), `sqlite:${join(folder, 'two.sqlite')}`);
    expect((await runProgram([...entrypoint, 'maker', 'approve', 'nobody'], env)).code).to.equal(1);
  });
});
