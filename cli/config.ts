import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { SettlePace } from '../core/claim-state.js';
import type { Address, Hex } from '../core/types.js';
import { ConfigError } from './errors.js';
import { address, givenSettings, httpUrl, privateKey } from './fields.js';
import { jointProblems } from './joint-settings.js';
import { tokenListSchema } from '../server/swap/tokens.js';
import { settingsSchema, type Settings } from './settings.js';
import { readSwapConfig, wrappedNativeOf, swapManifest, type SwapConfig } from './swap-settings.js';

export { ROLES, settingsSchema, type Role } from './settings.js';

/** Chain ids that published clients of the exchange wire sign agent approvals for, beside the wallet's own. */
const CLIENT_CHAIN_IDS = [42_161n, 421_614n];

const manifestSchema = z.object({
  chainId: z.number().int().positive(),
  deploymentId: z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 hex digits'),
  rpcUrl: httpUrl.optional(),
  deploymentBlock: z.number().int().nonnegative(),
  contracts: z.looseObject({
    custodian: address,
    curveBook: address,
    entrypoint: address,
    ...swapManifest,
  }),
  accounts: z.array(z.object({ role: z.string(), address, privateKey })).default([]),
  tokens: z.array(z.object({ symbol: z.string(), address, decimals: z.number().int().min(0) })).default([]),
  tokenList: tokenListSchema.optional(),
});

type Manifest = z.output<typeof manifestSchema>;

export interface Config extends Omit<
  Settings,
  | 'RPC_URL'
  | 'HEADS_URL'
  | 'OPERATOR_ADDRESS'
  | 'POSTER_PRIVATE_KEY'
  | 'SETTLER_PRIVATE_KEY'
  | 'EXECUTOR_PRIVATE_KEY'
  | 'SIGNATURE_CHAIN_IDS'
  | 'WRAPPED_NATIVE'
> {
  /** Null accepts any chain. */
  signatureChainIds: readonly bigint[] | null;
  /** The preferred endpoint, and all of them. */
  rpcUrl: string;
  rpcUrls: readonly string[];
  /** WebSocket endpoints that tell of new heads. */
  headsUrls: readonly string[];
  manifest: Manifest;
  operator: Address;
  /** Null when this process does not post. */
  posterPrivateKey: Hex | null;
  /** Null when this process does not settle. */
  settlerPrivateKey: Hex | null;
  /** Null when this process does not execute orders. */
  executorPrivateKey: Hex | null;
  /** Null for a deployment without a settler. */
  swap: SwapConfig | null;
  /** What gas is priced in. */
  wrappedNative: Address;
}

export const NO_RPC_URL = 'RPC_URL: required, the manifest names none';
export const NO_OPERATOR = 'OPERATOR_ADDRESS: required, the manifest names no owner account';

/** What operator commands go by. */
export interface CommandConfig {
  DATABASE_URL: string;
  OPERATOR_FLOORS: Settings['OPERATOR_FLOORS'];
  REFERENCE_PRICES: Settings['REFERENCE_PRICES'];
  MIN_ORDER_VALUES: Settings['MIN_ORDER_VALUES'];
  manifest: Manifest;
  /** Empty when neither the settings nor the manifest name one. */
  rpcUrls: readonly string[];
  /** Null when neither the settings nor the manifest name it. */
  operator: Address | null;
  /** Null when none is configured. */
  archiveDir: string | null;
  /** Signs what is exported to the archive; null when neither the settings nor the manifest name it. */
  posterPrivateKey: Hex | null;
  settlerPrivateKey: Hex | null;
}

const commandSchema = settingsSchema.pick({
  DATABASE_URL: true,
  MANIFEST: true,
  RPC_URL: true,
  OPERATOR_ADDRESS: true,
  OPERATOR_FLOORS: true,
  REFERENCE_PRICES: true,
  MIN_ORDER_VALUES: true,
  ARCHIVE_DIR: true,
  POSTER_PRIVATE_KEY: true,
  SETTLER_PRIVATE_KEY: true,
});

/** Reads what operator commands need, and judges nothing else. Throws `ConfigError` with all problems at once. */
export function loadCommandConfig(
  overrides: Partial<Record<keyof Settings, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): CommandConfig {
  const { settings, manifest } = readSettings(commandSchema, overrides, env);
  const { DATABASE_URL, OPERATOR_FLOORS, REFERENCE_PRICES, MIN_ORDER_VALUES } = settings;
  return {
    DATABASE_URL,
    OPERATOR_FLOORS,
    REFERENCE_PRICES,
    MIN_ORDER_VALUES,
    manifest,
    archiveDir: settings.ARCHIVE_DIR ?? null,
    posterPrivateKey:
      settings.POSTER_PRIVATE_KEY ?? manifest.accounts.find(({ role }) => role === 'poster')?.privateKey ?? null,
    settlerPrivateKey:
      settings.SETTLER_PRIVATE_KEY ?? manifest.accounts.find(({ role }) => role === 'settler')?.privateKey ?? null,
    ...placesOf(settings, manifest),
  };
}

/** Settings of `schema`, and the manifest that they name. Throws `ConfigError` with all problems at once. */
function readSettings<T extends z.ZodType<{ MANIFEST: string }>>(
  schema: T,
  overrides: Partial<Record<keyof Settings, string>>,
  env: Readonly<Record<string, string | undefined>>,
): { settings: z.output<T>; manifest: Manifest } {
  const problems: string[] = [];
  const given = givenSettings({ ...env, ...overrides });
  const settings = schema.safeParse(given);
  if (!settings.success) problems.push(...describeIssues(settings.error));
  const manifestPath = settings.success ? settings.data.MANIFEST : String(given['MANIFEST'] ?? '');
  const manifest = manifestPath === '' ? null : readManifest(manifestPath, problems);
  if (!settings.success || manifest === null) throw new ConfigError(problems);
  return { settings: settings.data, manifest };
}

/** Where the chain is and whose row the residual is, by the settings or else by the manifest. */
function placesOf(
  { RPC_URL, OPERATOR_ADDRESS }: Pick<Settings, 'RPC_URL' | 'OPERATOR_ADDRESS'>,
  { rpcUrl, accounts }: Manifest,
): Pick<CommandConfig, 'rpcUrls' | 'operator'> {
  return {
    rpcUrls: RPC_URL ?? (rpcUrl === undefined ? [] : [rpcUrl]),
    operator: OPERATOR_ADDRESS ?? accounts.find(({ role }) => role === 'owner')?.address ?? null,
  };
}

/**
 * Reads and validates everything once. `overrides` (command-line options) win over `env`.
 * Throws `ConfigError` with all problems at once.
 */
export function loadConfig(
  overrides: Partial<Record<keyof Settings, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const { settings, manifest } = readSettings(settingsSchema, overrides, env);
  const problems: string[] = [];
  const {
    RPC_URL,
    HEADS_URL,
    OPERATOR_ADDRESS,
    POSTER_PRIVATE_KEY,
    SETTLER_PRIVATE_KEY,
    EXECUTOR_PRIVATE_KEY,
    SIGNATURE_CHAIN_IDS,
    WRAPPED_NATIVE: _,
    ...rest
  } = settings;
  const account = (role: string) => manifest.accounts.find((one) => one.role === role);
  const { rpcUrls, operator } = placesOf({ RPC_URL, OPERATOR_ADDRESS }, manifest);
  const rpcUrl = rpcUrls[0];
  const posterPrivateKey = POSTER_PRIVATE_KEY ?? account('poster')?.privateKey ?? null;
  const settlerPrivateKey = SETTLER_PRIVATE_KEY ?? account('settler')?.privateKey ?? null;
  if (rpcUrl === undefined) problems.push(NO_RPC_URL);
  if (operator === null) problems.push(NO_OPERATOR);
  if (rest.ROLES.includes('poster') && posterPrivateKey === null) {
    problems.push('POSTER_PRIVATE_KEY: required for the poster role, the manifest names no poster account');
  }
  if (rest.ROLES.includes('settler') && settlerPrivateKey === null) {
    problems.push('SETTLER_PRIVATE_KEY: required for the settler role, the manifest names no settler account');
  }
  const swap = readSwapConfig(settings, manifest, problems);
  const executorPrivateKey = EXECUTOR_PRIVATE_KEY ?? account('executor')?.privateKey ?? null;
  problems.push(...sharedKeys({ poster: posterPrivateKey, settler: settlerPrivateKey, executor: executorPrivateKey }));
  if (rest.ROLES.includes('executor') && (executorPrivateKey === null || swap === null)) {
    problems.push(
      swap === null
        ? 'ROLES: the executor role needs orderSettler and permit2 in the manifest'
        : 'EXECUTOR_PRIVATE_KEY: required for the executor role, the manifest names no executor account',
    );
  }
  problems.push(...jointProblems(rest));
  if (rpcUrl === undefined || operator === null || problems.length > 0) throw new ConfigError(problems);
  // Only a sandbox's manifest has accounts; there a wallet may sign for whatever chain it is on.
  const knownChains = manifest.accounts.length > 0 ? null : [BigInt(manifest.chainId), ...CLIENT_CHAIN_IDS];
  const signatureChainIds = SIGNATURE_CHAIN_IDS ?? knownChains;
  return {
    ...rest,
    signatureChainIds,
    rpcUrl,
    rpcUrls,
    headsUrls: HEADS_URL ?? (RPC_URL === undefined ? ownHeads(manifest) : []),
    manifest,
    operator,
    posterPrivateKey,
    settlerPrivateKey,
    executorPrivateKey,
    swap,
    wrappedNative: wrappedNativeOf(settings, manifest),
  };
}

/** A sandbox's chain tells of its heads where it answers. */
const ownHeads = ({ rpcUrl, accounts }: Manifest): string[] =>
  rpcUrl === undefined || accounts.length === 0 ? [] : [rpcUrl.replace(/^http/, 'ws')];

/** How soon a claim is settled again. */
export const settlePace = (
  config: Pick<Settings, 'CLAIM_INTERVAL_SEC' | 'SMALL_CLAIM_INTERVAL_SEC' | 'SMALL_CLAIM_BPS'>,
): SettlePace => ({
  intervalMs: config.CLAIM_INTERVAL_SEC * 1_000,
  smallIntervalMs: config.SMALL_CLAIM_INTERVAL_SEC * 1_000,
  smallBps: config.SMALL_CLAIM_BPS,
});

/** Each keeper gives its transactions nonces of their own: two that share a key would take each other's. */
function sharedKeys(keys: Record<'poster' | 'settler' | 'executor', Hex | null>): string[] {
  const owners = new Map<string, string>();
  return Object.entries(keys).flatMap(([role, key]) => {
    if (key === null) return [];
    const other = owners.get(key.toLowerCase());
    owners.set(key.toLowerCase(), role);
    if (other === undefined) return [];
    return [`${role.toUpperCase()}_PRIVATE_KEY: must not be the key of the ${other}, which takes nonces of its own`];
  });
}

function readManifest(path: string, problems: string[]): Manifest | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    problems.push(`MANIFEST: can't read ${path}; start the sandbox or name a deployment manifest`);
    return null;
  }
  try {
    const parsed = manifestSchema.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    problems.push(...describeIssues(parsed.error).map((problem) => `MANIFEST ${path}: ${problem}`));
  } catch (error) {
    problems.push(`MANIFEST: ${path} is not JSON (${String(error)})`);
  }
  return null;
}

function describeIssues(error: z.ZodError): string[] {
  return error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}
