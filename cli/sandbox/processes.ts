/** The two processes that the sandbox consists of: its chain and its server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../deploy/sandbox/ports.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { startChild, type Child } from './child.js';
import { waitFor } from './wait.js';

const CHAIN_TIMEOUT_MS = 60_000;
const SERVER_TIMEOUT_MS = 90_000;
/** Both run from the build that this process runs from itself. */
const CHAIN_PROGRAM = fileURLToPath(new URL('../../dist/deploy/chain.js', import.meta.url));
const CLI_PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface ChainProcess {
  child: Child;
  rpcUrl: string;
}

interface ChainProcessOptions {
  host: string;
  port: number;
  blockTimeMs: number;
  /** Its log goes here, as chain.log. */
  directory: string;
  signal: AbortSignal;
}

/** Starts the chain and waits until it answers. It outlives this process. Throws StartError, also when the port is taken. */
export async function startChainProcess(options: ChainProcessOptions): Promise<ChainProcess> {
  const { host, blockTimeMs, directory, signal } = options;
  const logPath = join(directory, 'chain.log');
  const child = startChild({
    name: 'chain',
    command: [CHAIN_PROGRAM, '--host', host, '--port', `${options.port}`, '--block-time-ms', `${blockTimeMs}`],
    logPath,
  });
  try {
    const listening = async () => /^\{"rpcUrl":"(.+)"\}$/m.exec(readFileSync(logPath, 'utf8'))?.[1] ?? null;
    const rpcUrl = await waitFor(listening, { child, logPath, timeoutMs: CHAIN_TIMEOUT_MS, signal });
    return { child, rpcUrl };
  } catch (error) {
    await child.stop('SIGKILL', 0);
    throw error;
  }
}

/** The port, or a free one for 0. */
export const choosePort = async (host: string, port: number): Promise<number> => (port === 0 ? freePort(host) : port);

/** Where somebody listens who was given this host and port. */
export const urlOf = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

interface ServerProcessOptions {
  manifestPath: string;
  manifest: SandboxManifest;
  /** With the URL of the database, which may have a password. */
  environment: NodeJS.ProcessEnv;
  /** Its log goes here, as server.log. */
  directory: string;
  /** One line per fill. */
  onLine: (line: string) => void;
  signal: AbortSignal;
}

/** The command line, after the program, that starts all roles of the server on the database of its environment. */
export function serveCommand(manifestPath: string, port: string): string[] {
  return ['serve', '--manifest', manifestPath, '--port', port];
}

/** Starts all roles in one process and waits until the ledger has caught up with the chain. Throws StartError. */
export async function startServerProcess(options: ServerProcessOptions): Promise<Child> {
  const { manifest, manifestPath, environment, onLine, signal } = options;
  const logPath = join(options.directory, 'server.log');
  const command = [CLI_PROGRAM, ...serveCommand(manifestPath, new URL(manifest.serverUrl).port)];
  const child = startChild({ name: 'server', command, environment, logPath, onLine });
  const maker = manifest.accounts.find(({ role }) => role === 'maker1')?.address ?? '';
  const ready = async () => {
    const health = await fetch(`${manifest.serverUrl}/health`, { signal });
    const limits = await fetch(`${manifest.serverUrl}/v0/makers/${maker}/limits`, { signal });
    if (!health.ok || !limits.ok) return null;
    const { ledger } = (await limits.json()) as { ledger: { ready: boolean } };
    return ledger.ready ? true : null;
  };
  try {
    await waitFor(ready, { child, logPath, timeoutMs: SERVER_TIMEOUT_MS, signal });
    return child;
  } catch (error) {
    await child.stop('SIGKILL', 0);
    throw error;
  }
}
