import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import type { Address, Hex } from '../core/types.js';
import type { Role } from '../ledger/roles.js';
import { manifestSchema, type BaseConfig, type Manifest } from './base-config.js';
import { ConfigError } from './errors.js';
import { ROLES, roleSettings } from './roles/registry.js';
import { commonSettings, type CommonSettings } from './settings/common.js';
import { givenSettings } from './settings/fields.js';
import { jointProblems } from './settings/joint.js';
import { SIGNING_ROLES, withKeystores, type SigningRole } from './settings/keystore.js';
import { readSwapConfig, wrappedNativeOf } from './settings/swap.js';

/** Chain ids that published clients of the exchange wire sign agent approvals for, beside the wallet's own. */
const CLIENT_CHAIN_IDS = [42_161n, 421_614n];

/** Every setting, read from the environment. Absent means the default; present but invalid stops the start. */
export const settingsSchema = z.object({ ...commonSettings, ...roleSettings });

type Settings = z.output<typeof settingsSchema>;

/** Configuration of a process: the common settings in their used form, and the settings of all roles. */
export type Config = BaseConfig & Omit<Settings, keyof CommonSettings | KeyName>;

type KeyName = `${Uppercase<Role>}_PRIVATE_KEY`;

export const NO_RPC_URL = 'RPC_URL: required, the manifest names none';
export const NO_OPERATOR = 'OPERATOR_ADDRESS: required, the manifest names no owner account';

/** Configuration of operator commands. */
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
  /** Of roles that sign what is exported to the archive, as far as the settings or the manifest name them. */
  keys: BaseConfig['keys'];
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

/** Roles as written; unknown ones are reported elsewhere. */
const playedRoles = ({ ROLES: played }: Readonly<Record<string, string>>): readonly string[] =>
  played?.split(',').map((role) => role.trim()) ?? ROLES.map(({ name }) => name);

/**
 * The environment, and below it what a file says, one NAME=value a line. Throws ConfigError when there is no such file.
 */
export function readEnvironment(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  if (file === undefined) return givenSettings(env);
  try {
    return { ...givenSettings(parseEnv(readFileSync(file, 'utf8'))), ...givenSettings(env) };
  } catch {
    throw new ConfigError([`--env: can't read ${file}`]);
  }
}

/** Settings before there is a deployment. */
export interface PlainSettings {
  settings: Settings;
  /** Of the settings alone; keystores were opened. */
  keys: BaseConfig['keys'];
}

/**
 * Settings without the manifest, and their problems: those that `serve` would report, except problems with values from the manifest. Null
 * when a setting can't be read.
 */
export function readPlainSettings(env: Readonly<Record<string, string | undefined>>): {
  plain: PlainSettings | null;
  problems: string[];
} {
  const problems: string[] = [];
  const parsed = settingsSchema.safeParse(withKeystores(givenSettings(env), SIGNING_ROLES, problems));
  if (!parsed.success) return { plain: null, problems: [...problems, ...describeIssues(parsed.error)] };
  const settings = parsed.data;
  const played = ROLES.filter(({ name }) => settings.ROLES.includes(name));
  const senders = played.filter(({ signs }) => signs).map(({ name }) => name);
  const keys = keysOf(settings, []);
  problems.push(...sharedKeys(keys), ...jointProblems(settings, senders));
  for (const role of ROLES) problems.push(...(role.problems?.(settings, played.includes(role)) ?? []));
  return { plain: { settings, keys }, problems };
}

/**
 * Reads and checks only what operator commands need; keystores of `signing` alone are opened. Throws `ConfigError` with all problems at
 * once.
 */
export function loadCommandConfig(
  overrides: Partial<Record<keyof Settings, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
  signing: readonly SigningRole[] = [],
): CommandConfig {
  const { settings, manifest } = readSettings(commandSchema, overrides, env, () => signing);
  const { DATABASE_URL, OPERATOR_FLOORS, REFERENCE_PRICES, MIN_ORDER_VALUES } = settings;
  return {
    DATABASE_URL,
    OPERATOR_FLOORS,
    REFERENCE_PRICES,
    MIN_ORDER_VALUES,
    manifest,
    archiveDir: settings.ARCHIVE_DIR ?? null,
    keys: keysOf(settings, manifest.accounts),
    ...placesOf(settings, manifest),
  };
}

/** Settings of `schema`, and the manifest that they name. Throws `ConfigError` with all problems at once. */
function readSettings<T extends z.ZodType<{ MANIFEST: string }>>(
  schema: T,
  overrides: Partial<Record<keyof Settings, string>>,
  env: Readonly<Record<string, string | undefined>>,
  signing: (given: Readonly<Record<string, string>>) => readonly string[],
): { settings: z.output<T>; manifest: Manifest } {
  const problems: string[] = [];
  const plain = givenSettings({ ...env, ...overrides });
  const given = withKeystores(plain, signing(plain), problems);
  const settings = schema.safeParse(given);
  if (!settings.success) problems.push(...describeIssues(settings.error));
  const manifestPath = settings.success ? settings.data.MANIFEST : String(given['MANIFEST'] ?? '');
  const manifest = manifestPath === '' ? null : readManifest(manifestPath, problems);
  if (!settings.success || manifest === null || problems.length > 0) throw new ConfigError(problems);
  return { settings: settings.data, manifest };
}

/** RPC endpoints and operator account, from the settings or else from the manifest. */
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
  const { settings, manifest } = readSettings(settingsSchema, overrides, env, playedRoles);
  const problems: string[] = [];
  const { RPC_URL, HEADS_URL, OPERATOR_ADDRESS, SIGNATURE_CHAIN_IDS, WRAPPED_NATIVE: _, ...rest } = settings;
  const { rpcUrls, operator } = placesOf({ RPC_URL, OPERATOR_ADDRESS }, manifest);
  const rpcUrl = rpcUrls[0];
  const keys = keysOf(settings, manifest.accounts);
  if (rpcUrl === undefined) problems.push(NO_RPC_URL);
  if (operator === null) problems.push(NO_OPERATOR);
  const swap = readSwapConfig(settings, manifest, problems);
  const played = ROLES.filter(({ name }) => rest.ROLES.includes(name));
  if (swap === null && rest.ROLES.includes('executor')) {
    problems.push('ROLES: the executor role needs orderSettler and permit2 in the manifest');
  }
  const senders = played.filter(({ signs }) => signs).map(({ name }) => name);
  for (const name of senders) {
    if (keys[name] !== undefined) continue;
    problems.push(`${keyName(name)}: required for the ${name} role, the manifest names no ${name} account`);
  }
  problems.push(...sharedKeys(keys), ...jointProblems(rest, senders));
  for (const role of ROLES) problems.push(...(role.problems?.(rest, played.includes(role)) ?? []));
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
    keys,
    swap,
    wrappedNative: wrappedNativeOf(settings, manifest),
  };
}

/** A sandbox's chain pushes its heads at the address of its RPC. */
const ownHeads = ({ rpcUrl, accounts }: Manifest): string[] =>
  rpcUrl === undefined || accounts.length === 0 ? [] : [rpcUrl.replace(/^http/, 'ws')];

const keyName = (role: string): string => `${role.toUpperCase()}_PRIVATE_KEY`;

/** By the settings, else the manifest's account of the role's name. */
function keysOf(settings: Partial<Record<KeyName, Hex>>, accounts: Manifest['accounts']): BaseConfig['keys'] {
  const signing = ROLES.filter(({ signs }) => signs).map(({ name }) => name);
  const given = new Map(Object.entries(settings));
  return Object.fromEntries(
    signing.flatMap((name) => {
      const key = given.get(keyName(name)) ?? accounts.find(({ role }) => role === name)?.privateKey;
      return key === undefined ? [] : [[name, key]];
    }),
  );
}

/** Each keeper assigns nonces by itself: two that share a key would use the same nonces. */
function sharedKeys(keys: BaseConfig['keys']): string[] {
  const owners = new Map<string, string>();
  return Object.entries(keys).flatMap(([role, key]) => {
    const other = owners.get(key.toLowerCase());
    owners.set(key.toLowerCase(), role);
    if (other === undefined) return [];
    return [`${keyName(role)}: must not be the key of the ${other}, which takes nonces of its own`];
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
