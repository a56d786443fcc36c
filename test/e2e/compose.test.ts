/** Each service of the compose file that runs this program, started by the command and the environment that it has there. */
import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Wallet } from 'ethers';
import { parse } from 'yaml';
import { openDb } from '../../ledger/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';

interface Service {
  command?: string[];
  environment?: Record<string, string>;
}

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const { services } = parse(read('deploy/ops/compose.yaml'), { merge: true }) as { services: Record<string, Service> };
const ours = Object.entries(services).filter(([, { command }]) => command?.[0] === 'serve');
const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(read('deploy/ops/Dockerfile'))![1]!) as string[];
const postgres = process.env.DATABASE_URL ?? '';

/** Runs a service's command to its end. With `stopWhen`, sends SIGTERM at the first line of standard output that has the text. */
async function run(command: readonly string[], env: Record<string, string>, stopWhen?: string) {
  const [program = '', ...args] = [...entrypoint, ...command];
  const child = spawn(program, args, { cwd: root, env: { PATH: process.env.PATH ?? '', ...env }, stdio: 'pipe' });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  createInterface({ input: child.stderr }).on('line', (line) => (output += `${line}\n`));
  createInterface({ input: child.stdout }).on('line', (line) => {
    output += `${line}\n`;
    if (stopWhen !== undefined && line.includes(stopWhen)) child.kill('SIGTERM');
  });
  const [code] = await ended;
  return { code, output };
}

describe('The processes of the compose file', function () {
  this.timeout(180_000);
  let chain: ManualChain;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-compose-'));
    chain = await startManualChain();
    // As of a real deployment: without accounts, so that each key must come from the environment.
    const { accounts: _, ...manifest } = chain.manifest;
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  });

  after(async () => {
    await chain?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The service's environment with what an operator fills in. */
  function environmentOf({ environment = {} }: Service, databaseUrl: string): Record<string, string> {
    const filled: Record<string, string> = {
      MANIFEST: join(folder, 'manifest.json'),
      DATABASE_URL: databaseUrl,
      RPC_URL: chain.rpcUrl,
      OPERATOR_ADDRESS: chain.address('owner'),
      METRICS_PORT: '0',
      POSTER_PRIVATE_KEY: chain.wallet('poster').privateKey,
      SETTLER_PRIVATE_KEY: chain.wallet('settler').privateKey,
      EXECUTOR_PRIVATE_KEY: chain.wallet('executor').privateKey,
    };
    return Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [
        name,
        filled[name] ?? value.replace(/^\$\{\w+:-(.*)\}$/, '$1'),
      ]),
    );
  }

  const anyPort = (command: readonly string[]): string[] => command.map((word) => (word === '8080' ? '0' : word));
  const service = (name: string): Service => services[name]!;

  if (postgres !== '') {
    it('each starts, serves its role and stops with 0, and logs no key', async () => {
      const schema = `compose_${process.pid}`;
      const db = await openDb(postgres);
      const url = new URL(postgres);
      url.searchParams.set('schema', schema);
      try {
        for (const [name, one] of ours) {
          const role = one.command![one.command!.indexOf('--roles') + 1]!;
          const env = environmentOf(one, url.toString());
          const { code, output } = await run(anyPort(one.command!), { ...env, LOG_LEVEL: 'debug' }, `serving ${role}`);
          expect(output, name).to.include(`serving ${role}`);
          expect(code, `${name}:\n${output}`).to.equal(0);
          for (const key of Object.entries(env).filter(([setting]) => setting.endsWith('_PRIVATE_KEY')))
            expect(output.toLowerCase(), key[0]).not.to.include(key[1].slice(2).toLowerCase());
        }
      } finally {
        await db.knex.raw('drop schema if exists ?? cascade', [schema]);
        await db.close();
      }
    });
  }

  it('exit with 1 when a restart would not help: a wrong or missing setting, whose value is not told', async () => {
    const settler = service('settler');
    const env = environmentOf(settler, `sqlite:${join(folder, 'one.sqlite')}`);
    expect((await run(settler.command!, { ...env, POLL_INTERVAL_MS: 'soon' })).code).to.equal(1);
    const { SETTLER_PRIVATE_KEY: _, ...without } = env;
    const missing = await run(settler.command!, without);
    expect(missing.code).to.equal(1);
    expect(missing.output).to.include('SETTLER_PRIVATE_KEY: required');
    const wrong = await run(settler.command!, { ...env, SETTLER_PRIVATE_KEY: `${Wallet.createRandom().privateKey}00` });
    expect(wrong.code).to.equal(1);
    expect(wrong.output)
      .to.include('SETTLER_PRIVATE_KEY')
      .and.not.match(/0x[0-9a-f]{64}/i);
  });

  it('exit with 75 when they should be started again: a database that does not answer', async () => {
    const watcher = service('watcher');
    const env = environmentOf(watcher, 'postgres://nobody@127.0.0.1:1/none');
    const { code, output } = await run(watcher.command!, env);
    expect(code, output).to.equal(75);
  });
});
