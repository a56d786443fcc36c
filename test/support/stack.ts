/** The whole platform as processes of its own: a chain with everything deployed, and a server with every role. No bots. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { Contract, Wallet, type JsonRpcProvider } from 'ethers';
import { writeManifest, type SandboxManifest } from '../../deploy/manifest.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { deploySandbox } from '../../deploy/sandbox/sandbox.js';
import { connect } from '../../deploy/transactions.js';
import { openDb } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { conform } from './api/openapi.js';
import { isOneEnough } from './db.js';
import { startChild, type Child } from './child.js';
import { dropSchema, giveBackSchema, takeSchema } from './databases/spare-schemas.js';

/** A bound, not an expectation: machines that run tests are busy. */
const START_TIMEOUT_MS = 180_000;
const POLL_MS = 50;

interface StackOptions {
  databaseUrl: string;
  blockTimeMs?: number;
  marketCount?: number;
  /** Default: 600. */
  withdrawDelaySec?: number;
  /** Roles of each process, comma-separated. Default: one process with every role. */
  processes?: readonly string[];
  /** External pools for gasless orders: of Uniswap v3, and with these of v2 and v4. */
  pools?: boolean;
  pairs?: boolean;
  managedPools?: boolean;
  /** More settings of each process; they may depend on where the chain is. */
  env?: Record<string, string> | ((rpcUrl: string) => Record<string, string> | Promise<Record<string, string>>);
  /** Settings of one process, by its roles. */
  envOf?: Readonly<Record<string, Record<string, string>>>;
}

export interface Stack {
  manifest: SandboxManifest;
  /** The file that the manifest is in, for programs that read it. */
  manifestPath: string;
  provider: JsonRpcProvider;
  /** Starts a server with every role on the same database, chain and port; resolves when it answers. */
  startServer(): Promise<void>;
  /** Ends the server, as a crash does by default. */
  endServer(signal?: NodeJS.Signals): Promise<void>;
  /** Everything that servers printed on standard output. */
  serverLines(): readonly string[];
  /** Everything that running servers printed on standard error: their logs. */
  logLines(): readonly string[];
  /** Names of the server's processes: each is the list of its roles. */
  readonly processes: readonly string[];
  /** Process id of a running process of the server. */
  pid(process: string): number;
  /** Ends one process, as a crash does. */
  kill(process: string): Promise<void>;
  /** Starts a process that was killed; resolves when it serves, or when it was killed meanwhile. */
  revive(process: string): Promise<void>;
  /** Runs an operator command to its end and returns what it printed. Rejects when it fails. */
  operate(...args: string[]): Promise<string>;
  close(): Promise<void>;
}

/** Brings up the chain and the server. Each stack has ports of its own, so that several may live at once. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-stack-'));
  const manifestPath = join(folder, 'sandbox.json');
  const chain = startChild('deploy/sandbox/chain-main.ts', [
    '--port',
    '0',
    '--block-time-ms',
    String(options.blockTimeMs ?? 250),
  ]);
  const processes = options.processes ?? [''];
  const servers = new Map<string, Child>();
  const lines: string[] = [];

  async function endProcess(roles: string, signal: NodeJS.Signals): Promise<void> {
    const server = servers.get(roles);
    if (server === undefined) return;
    servers.delete(roles);
    await server.end(signal);
    lines.push(...server.lines());
  }

  async function endServer(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await Promise.all([...servers.keys()].map((roles) => endProcess(roles, signal)));
  }

  try {
    const { rpcUrl } = JSON.parse(await chain.line((line) => line.startsWith('{'), START_TIMEOUT_MS)) as {
      rpcUrl: string;
    };
    const port = await freePort('127.0.0.1');
    const manifest = await deploySandbox({
      rpcUrl,
      serverUrl: `http://127.0.0.1:${port}`,
      marketCount: options.marketCount ?? 1,
      pools: options.pools ?? false,
      pairs: options.pairs ?? false,
      managedPools: options.managedPools ?? false,
      ...(options.withdrawDelaySec === undefined ? {} : { withdrawDelaySec: options.withdrawDelaySec }),
      log: () => undefined,
    });
    writeManifest(manifestPath, manifest);
    const provider = connect(rpcUrl);
    const common = ['--manifest', manifestPath, '--database', options.databaseUrl];

    const settings = typeof options.env === 'function' ? await options.env(rpcUrl) : options.env;

    async function startProcess(roles: string): Promise<void> {
      const env = { LOG_LEVEL: 'warn', ROLES: roles, ...settings, ...options.envOf?.[roles] };
      const started = startChild('cli/main.ts', ['serve', ...common, '--port', String(port)], env);
      servers.set(roles, started);
      const killed = (): boolean => servers.get(roles) !== started;
      await until(`${roles || 'the server'} to serve`, async () => {
        if (killed()) return true;
        if (started.process.exitCode !== null) throw new Error(`the server ended:\n${started.output()}`);
        return started.lines().some((line) => line.startsWith('serving '));
      });
    }

    async function startServer(): Promise<void> {
      await Promise.all(processes.map(startProcess));
    }

    await startServer();
    return {
      manifest,
      manifestPath,
      provider,
      startServer,
      endServer,
      processes,
      pid: (roles) => {
        const pid = servers.get(roles)?.process.pid;
        if (pid === undefined) throw new Error(`${roles || 'the server'} does not run`);
        return pid;
      },
      kill: (roles) => endProcess(roles, 'SIGKILL'),
      revive: startProcess,
      serverLines: () => [...lines, ...[...servers.values()].flatMap((server) => server.lines())],
      logLines: () => [...servers.values()].flatMap((server) => server.errors()),
      async operate(...args) {
        const child = startChild('cli/main.ts', [...args, ...common], { LOG_LEVEL: 'warn' });
        // Its output is read, too.
        await new Promise<void>((resolve) => child.process.once('close', () => resolve()));
        if (child.process.exitCode !== 0) throw new Error(`${args.join(' ')} failed:\n${child.output()}`);
        return child.lines().join('\n');
      },
      async close() {
        await endServer('SIGTERM');
        provider.destroy();
        await chain.end('SIGTERM');
        rmSync(folder, { recursive: true });
      },
    };
  } catch (error) {
    await endServer();
    await chain.end('SIGKILL');
    rmSync(folder, { recursive: true });
    throw error;
  }
}

/** Polls until `check` holds. An error that it throws ends the wait at once. */
export async function until(what: string, check: () => Promise<boolean>, timeoutMs = START_TIMEOUT_MS): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await delay(POLL_MS);
  }
}

/** The databases that whole stacks are tested on: SQLite in a temporary file, and PostgreSQL when DATABASE_URL names a server. */
export function forEachDatabaseUrl(define: DefineTests): void {
  onSqlite(define);
  const server = postgresServer();
  if (server !== null) onPostgres(server, define);
}

/** For what only PostgreSQL can do. Without a server `npm test` leaves files that call it out, and says so. */
export function forPostgresUrl(define: DefineTests): void {
  const server = postgresServer();
  if (server !== null) onPostgres(server, define);
}

/** The same for what no database decides: PostgreSQL when DATABASE_URL names a server, else SQLite; `npm run test:deep` takes both. */
export function forOneDatabaseUrl(define: DefineTests): void {
  const server = postgresServer();
  if (!isOneEnough()) forEachDatabaseUrl(define);
  else if (server === null) onSqlite(define);
  else onPostgres(server, define);
}

/** `open`: on PostgreSQL with every table and no row, else bare; `openBare`: without a table, for what is about a first start. */
type DefineTests = (name: string, open: () => Promise<TestDatabase>, openBare: () => Promise<TestDatabase>) => void;

function postgresServer(): string | null {
  const server = process.env.DATABASE_URL ?? '';
  return /^postgres(ql)?:/.test(server) ? server : null;
}

function onSqlite(define: DefineTests): void {
  const open = async (): Promise<TestDatabase> => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-db-'));
    return { url: `sqlite:${join(folder, 'ledger.sqlite')}`, drop: async () => rmSync(folder, { recursive: true }) };
  };
  define('SQLite', open, open);
}

function onPostgres(server: string, define: DefineTests): void {
  type Work = (db: Db) => Promise<void>;
  const openWith = (prepare: Work, remove: Work) => async (): Promise<TestDatabase> => {
    const schema = `e2e_${process.pid}_${Date.now()}`;
    const within = async (work: Work): Promise<void> => {
      const db = await openDb(server, { schema });
      await work(db).finally(() => db.close());
    };
    await within(prepare);
    const url = new URL(server);
    url.searchParams.set('schema', schema);
    return { url: url.toString(), drop: () => within(remove) };
  };
  define(
    'PostgreSQL',
    openWith(takeSchema, giveBackSchema),
    openWith(() => Promise.resolve(), dropSchema),
  );
}

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/** The account of a role in the stack's manifest, address in lower case. */
export function accountOf(stack: Stack, role: string): { address: `0x${string}`; privateKey: string } {
  const account = stack.manifest.accounts.find((one) => one.role === role);
  if (account === undefined) throw new Error(`no ${role}`);
  return { address: account.address.toLowerCase() as `0x${string}`, privateKey: account.privateKey };
}

/** A published exchange client acting for a role; only its URL is ours. */
export function exchangeClient(
  stack: Stack,
  role: string,
): { exchange: ExchangeClient; info: InfoClient; user: `0x${string}` } {
  const { address, privateKey } = accountOf(stack, role);
  const transport = new HttpTransport({ apiUrl: stack.manifest.serverUrl });
  return {
    exchange: new ExchangeClient({ transport, wallet: new Wallet(privateKey) }),
    info: new InfoClient({ transport }),
    user: address,
  };
}

/** Fetches a resource of the read API. */
export async function read(stack: Stack, path: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${stack.manifest.serverUrl}${path}`);
  const body: unknown = await response.json();
  conform('GET', path, response.status, body);
  return { status: response.status, body };
}

/** The contracts that a taker or an auditor talks to. */
export function contractsOf(stack: Stack, role: string) {
  const signer = new Wallet(accountOf(stack, role).privateKey, stack.provider);
  const { custodian, entrypoint } = stack.manifest.contracts;
  const erc20 = (symbol: string): Contract =>
    new Contract(
      tokenOf(stack, symbol).address,
      ['function balanceOf(address) view returns (uint256)'],
      stack.provider,
    );
  return {
    entrypoint: Entrypoint__factory.connect(entrypoint, signer),
    custodian: Custodian__factory.connect(custodian, signer),
    balanceOf: async (symbol: string, account: string): Promise<bigint> =>
      (await erc20(symbol).getFunction('balanceOf')(account)) as bigint,
  };
}

/** A token of the stack's manifest. */
export function tokenOf(stack: Stack, symbol: string): SandboxManifest['tokens'][number] {
  const token = stack.manifest.tokens.find((one) => one.symbol === symbol);
  if (token === undefined) throw new Error(`no ${symbol}`);
  return token;
}
