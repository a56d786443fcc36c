/**
 * `npm start`: a chain, the contracts, a server with every role, and bots that trade on it. Everything else stops with this
 * process; only the server may be killed and started again by itself.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { deploySandbox } from '../deploy/sandbox/sandbox.js';
import { PortInUseError, assertPortFree } from '../deploy/sandbox/ports.js';
import { writeManifest, type SandboxManifest } from '../deploy/manifest.js';
import { reasonOf } from '../deploy/reasons.js';
import { ConfigError } from './errors.js';
import { describeEnd, startChild, type Child } from './sandbox/child.js';
import { bannerLines, onDatabase, quoted } from './sandbox/banner.js';
import { SANDBOX_USAGE, readSandboxConfig, type SandboxConfig } from './sandbox/config.js';
import { ForeignDatabaseError, prepareDatabase } from './sandbox/database.js';
import { SandboxRunningError, lockSandbox } from './sandbox/lock.js';
import { choosePort, serveCommand, startChainProcess, startServerProcess, urlOf } from './sandbox/processes.js';
import { StartError } from './sandbox/wait.js';

const APPROVED_MAKERS = ['maker1', 'maker2'];
const BOTS = [
  ['maker', 'maker1'],
  ['maker', 'maker2'],
  ['taker', 'taker1'],
  ['taker', 'taker2'],
  ['gasless-taker', 'taker3'],
] as const;
const BOT_GRACE_MS = 5_000;
const SERVER_GRACE_MS = 10_000;
const CHAIN_GRACE_MS = 3_000;

const startedMs = Date.now();
const say = (line: string): void => console.log(`[${((Date.now() - startedMs) / 1000).toFixed(1)} s] ${line}`);

/** What has to be stopped, in the order in which it was started. */
interface Started {
  chain?: Child;
  server?: Child;
  bots: Child[];
  /** Releases the folder's lock. */
  unlock?: () => void;
}

/** Brings everything up; resolves once it runs. What was started is in `started` even when this throws. */
async function start(config: SandboxConfig, started: Started, signal: AbortSignal): Promise<void> {
  const { directory, host } = config;
  const manifestPath = join(directory, 'sandbox.json');
  const [serverPort, rpcPort] = [await choosePort(host, config.port), await choosePort(host, config.rpcPort)];
  const serverUrl = urlOf(host, serverPort);
  // Before anything is written: another sandbox that has the folder, or the ports, keeps its manifest.
  started.unlock = await lockSandbox(directory, { serverUrl, rpcUrl: urlOf(host, rpcPort) });
  await assertPortFree(host, config.rpcPort, 'RPC_PORT');
  await assertPortFree(host, config.port, 'PORT');
  rmSync(manifestPath, { force: true });

  say('starting the chain');
  const { blockTimeMs } = config;
  const chain = await startChainProcess({ host, port: rpcPort, blockTimeMs, directory, signal });
  started.chain = chain.child;
  void chain.child.ended.then(
    (end) => !signal.aborted && say(`the chain has stopped (${describeEnd(end)}); press Ctrl-C`),
  );
  say(`chain at ${chain.rpcUrl}, one block every ${blockTimeMs} ms; deploying`);
  const { rpcUrl } = chain;
  const { marketCount } = config;
  const manifest = await deploySandbox({ rpcUrl, serverUrl, marketCount, pools: true, pairs: true, log: say });
  signal.throwIfAborted();

  say('starting the server');
  started.server = await startServer(config, manifest, signal);
  watchServer(started.server, config, manifest, signal);

  writeManifest(manifestPath, manifest);
  say(`server at ${serverUrl}; manifest in ${manifestPath}`);
  if (config.demo) for (const bot of BOTS) started.bots.push(startBot(bot, manifestPath, directory, signal));
  say(
    config.demo
      ? 'two makers, two takers and one gasless taker are trading; Ctrl-C stops everything'
      : 'up without bots; Ctrl-C stops everything',
  );
  const { demo, databaseUrl } = config;
  for (const line of bannerLines({ manifest, manifestPath, demo, program: program(), databaseUrl })) console.log(line);
}

/** The command line program, from where the user is. */
function program(): string {
  const path = fileURLToPath(new URL('../scripts/curvebook.mjs', import.meta.url));
  return `node ${quoted(relative(process.cwd(), path))}`;
}

async function startServer(config: SandboxConfig, manifest: SandboxManifest, signal: AbortSignal): Promise<Child> {
  const { directory, databaseUrl, serverEnvironment: environment } = config;
  const approvedMakers = manifest.accounts
    .filter(({ role }) => APPROVED_MAKERS.includes(role))
    .map(({ address }) => address);
  await prepareDatabase({ databaseUrl, deploymentId: manifest.deploymentId, directory, approvedMakers });
  // The manifest itself appears only when everything is up, so the server reads a copy that it has alone.
  const manifestPath = join(directory, 'server.json');
  writeManifest(manifestPath, manifest);
  return startServerProcess({ manifest, manifestPath, environment, directory, onLine: say, signal });
}

/** The chain keeps running without its server, so the console prints the command that starts the roles again. */
function watchServer(server: Child, config: SandboxConfig, manifest: SandboxManifest, signal: AbortSignal): void {
  void server.ended.then((end) => {
    if (signal.aborted) return;
    const port = new URL(manifest.serverUrl).port;
    const manifestPath = quoted(join(config.directory, 'sandbox.json'));
    const command = `${program()} ${serveCommand(manifestPath, port).join(' ')}`;
    say(`the server has stopped (${describeEnd(end)}); the chain goes on. Start the roles again with:`);
    say(`  ${onDatabase(config.databaseUrl, command)}`);
  });
}

function startBot(
  [program, role]: (typeof BOTS)[number],
  manifestPath: string,
  directory: string,
  signal: AbortSignal,
): Child {
  const logPath = join(directory, `${role}.log`);
  const path = fileURLToPath(new URL(`../dist/examples/${program}.js`, import.meta.url));
  const bot = startChild({ name: role, command: [path, manifestPath, role], logPath, onLine: () => undefined });
  void bot.ended.then((end) => !signal.aborted && say(`${role} has stopped (${describeEnd(end)}); see ${logPath}`));
  return bot;
}

/** Bots first, so that makers cancel their orders while the server is there; the chain last. */
async function stopAll({ bots, server, chain, unlock }: Started): Promise<void> {
  await Promise.all(bots.map((bot) => bot.stop('SIGINT', BOT_GRACE_MS)));
  await server?.stop('SIGTERM', SERVER_GRACE_MS);
  await chain?.stop('SIGTERM', CHAIN_GRACE_MS);
  unlock?.();
}

/** Errors that the user can correct are printed as they are; others in one line, with details in a file. */
function describe(error: unknown, directory: string | null): string {
  const known = [ConfigError, PortInUseError, ForeignDatabaseError, SandboxRunningError, StartError];
  if (known.some((kind) => error instanceof kind)) return (error as Error).message;
  const reason = reasonOf(error);
  if (directory === null) return reason;
  const path = join(directory, 'sandbox-error.log');
  try {
    writeFileSync(path, `${inspect(error, { depth: 6 })}\n`);
  } catch {
    // The folder may be what is wrong.
    return reason;
  }
  return `${reason} (all of it is in ${path})`;
}

async function main(): Promise<number> {
  const config = readSandboxConfig();
  if (config === null) {
    console.log(SANDBOX_USAGE);
    return 0;
  }
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()));
  // A terminal and npm may both deliver the same Ctrl-C, so a second one changes nothing.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stopping.abort());
  // The reader of our output has gone, as after `npm start | head`.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => stopping.abort());
  const started: Started = { bots: [] };
  let failure: unknown = null;
  try {
    await start(config, started, stopping.signal);
    await stopped;
  } catch (error) {
    if (!stopping.signal.aborted) failure = error;
    stopping.abort();
  }
  if (started.chain !== undefined) say('stopping');
  await stopAll(started);
  if (failure === null) {
    say('stopped');
    return 0;
  }
  console.error(`curvebook: ${describe(failure, config.directory)}`);
  return 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`curvebook: ${describe(error, null)}`);
  process.exitCode = 1;
}
