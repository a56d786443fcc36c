/** What both examples share: the manifest of a deployment, exact decimals, and stopping. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { formatUnits, parseUnits } from 'ethers';

export interface Manifest {
  chainId: number;
  rpcUrl: string;
  serverUrl: string;
  contracts: { entrypoint: string };
  tokens: { symbol: string; address: string; decimals: number }[];
  markets: { pair: string; tickSize: string; lotSize: string }[];
  accounts: { role: string; address: string; privateKey: string }[];
}

/** Decimals that prices and sizes are computed with; more than any grid has. */
const SCALE = 30;

/** Reads the manifest that the sandbox writes when it is up. */
export function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
}

/** The account of a role such as `maker1`. */
export function accountOf(manifest: Manifest, role: string): Manifest['accounts'][number] {
  const account = manifest.accounts.find((candidate) => candidate.role === role);
  if (account === undefined) throw new Error(`The manifest has no account with the role ${role}`);
  return account;
}

/** The two tokens of a market. */
export function tokensOf(manifest: Manifest, pair: string): [Manifest['tokens'][number], Manifest['tokens'][number]] {
  const [base, quote] = pair.split('-').map((symbol) => manifest.tokens.find((token) => token.symbol === symbol));
  if (base === undefined || quote === undefined)
    throw new Error(`The manifest does not describe the tokens of ${pair}`);
  return [base, quote];
}

/** A decimal as an integer of 10^-30 steps; exact. */
export const scaled = (decimal: string): bigint => parseUnits(decimal, SCALE);

/** `count` steps of a grid as a decimal, for example 250025 steps of 0.01 as "2500.25"; exact. */
export const onGrid = (count: bigint, step: string): string =>
  formatUnits(count * scaled(step), SCALE).replace(/\.0$/, '');

/** Aborts at Ctrl-C or when the process is asked to end. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
  return controller.signal;
}

/** Waits, or returns early once `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** One line for the console. */
export const reason = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
