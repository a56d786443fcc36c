/** `curvebook init`: a deployment configuration, and the settings of a server, checked by what `npm run deploy` and `serve` read them with. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { Wallet, computeAddress } from 'ethers';
import type { Hex } from '../../../core/types.js';
import { parseConfig } from '../../../deploy/config.js';
import { DeployError } from '../../../deploy/errors.js';
import { assertSignable, listingOf } from '../../../deploy/listing.js';
import type { CommandLine } from '../../arguments.js';
import { readEnvironment, readPlainSettings } from '../../config.js';
import { ConfigError } from '../../errors.js';
import { httpUrl, privateKey } from '../../settings/fields.js';
import {
  SIGNING_ROLES,
  keyName,
  keystoreName,
  keystoreText,
  openKeystore,
  type SigningRole,
} from '../../settings/keystore.js';
import { print, type Io } from '../command.js';
import { readAnswers, type Answers } from './answers.js';
import { environmentText } from './environment-file.js';

const SECRET_MODE = 0o600;

interface OutputFile {
  path: string;
  /** Encrypting takes a second, so that it waits until everything is known to be right. */
  text: string | (() => string);
  mode: number;
}

/** Where the keys of the roles are, or will be. */
interface Keys {
  /** Never shown. */
  keys: Record<SigningRole, Hex>;
  accounts: Record<SigningRole, string>;
  /** What `.env` says of them. */
  settings: Record<string, string>;
  /** Of new ones. */
  files: OutputFile[];
}

/** Writes all files or, when one is there already or anything is wrong, none. */
export async function runInit(line: CommandLine, io: Io): Promise<number> {
  const env = readEnvironment(line.env);
  const answers = await readAnswers(line, env, io);
  const folder = resolve(line.own.get('dir')?.at(-1) ?? '.');
  const made = readKeys(answers, folder);
  const { accounts } = made;
  const record = `${answers.chainId}.json`;
  const manifest = resolve(line.overrides.MANIFEST ?? join(folder, 'deployments', record));
  const configuration = configurationOf(answers, accounts);
  const envPath = join(folder, '.env');
  const old = existsSync(envPath) ? parseEnv(readFileSync(envPath, 'utf8')) : {};
  const settings = {
    MANIFEST: manifest,
    RPC_URL: answers.rpcUrls,
    DATABASE_URL: line.overrides.DATABASE_URL ?? `sqlite:${join(folder, 'curvebook.sqlite')}`,
    OPERATOR_ADDRESS: answers.operator,
    PORT: answers.port,
    METRICS_PORT: env['METRICS_PORT'] ?? '9464',
    ...made.settings,
    ALERT_WEBHOOK_URL: answers.alertUrl,
    // A database that exists knows the old ones only.
    DATABASE_PASSWORD: old['DATABASE_PASSWORD'] || newPassword(),
    // Without it processes would go back to a primary that was lost, or to an empty one.
    ...(old['DATABASE_HOST'] ? { DATABASE_HOST: old['DATABASE_HOST'] } : {}),
    GRAFANA_PASSWORD: old['GRAFANA_PASSWORD'] || newPassword(),
    NATS_PASSWORD: old['NATS_PASSWORD'] || newPassword(),
    NATS_EDGE_PASSWORD: old['NATS_EDGE_PASSWORD'] || newPassword(),
    EDGE_SECRET: old['EDGE_SECRET'] || newPassword(),
    DEPLOY_RPC_URL: answers.rpcUrls.split(',')[0]?.trim() ?? '',
  };
  const text = environmentText(settings);
  const files: OutputFile[] = [
    ...made.files,
    {
      path: join(dirname(manifest), `${answers.chainId}.config.json`),
      text: `${JSON.stringify(configuration, null, 2)}\n`,
      mode: 0o644,
    },
    { path: envPath, text, mode: SECRET_MODE },
  ];
  assertValid(configuration, text, settings, { keys: made.keys, record });
  const kept = writeAll(files, line.own.has('force'));
  const shown = files.map(({ path }) => relative(process.cwd(), path));
  const next = nextSteps(envPath);
  print(io, line, { files: files.map(({ path }) => path), kept, accounts }, [
    ...kept.map((path) => `kept what was there as ${relative(process.cwd(), path)}`),
    ...shown.map((path) => `wrote ${path}`),
    ...SIGNING_ROLES.map((role) => `${role}: ${accounts[role]} needs ether for gas`),
    'next:',
    ...next.map((command) => `  ${command}`),
  ]);
  return 0;
}

/** Throws ConfigError for a keystore that can't be opened, and for what is no key. */
function readKeys({ keys: sources, passwordFile }: Answers, folder: string): Keys {
  const keys = {} as Keys['keys'];
  const settings: Record<string, string> = {};
  const files: OutputFile[] = [];
  const problems: string[] = [];
  const isNew = Object.values(sources).some(({ kind }) => kind === 'new');
  const file = resolve(passwordFile ?? join(folder, 'keys', 'password'));
  if (isNew && passwordFile !== undefined) problems.push('--password-file: new keys get a new password; leave it out');
  const password = newPassword();
  if (isNew) files.push({ path: file, text: `${password}\n`, mode: SECRET_MODE });
  for (const role of SIGNING_ROLES) {
    const source = sources[role];
    if (source.kind === 'environment') {
      settings[keyName(role)] = source.key;
      keys[role] = source.key as Hex;
      if (!privateKey.safeParse(source.key).success) problems.push(`${keyName(role)}: must be a 32-byte hex key`);
      continue;
    }
    const path = resolve(source.kind === 'new' ? join(folder, 'keys', `${role}.json`) : source.path);
    settings[keystoreName(role)] = path;
    settings['KEYSTORE_PASSWORD_FILE'] = file;
    if (source.kind === 'new') {
      const key = (keys[role] = Wallet.createRandom().privateKey as Hex);
      files.push({ path, text: () => keystoreText(key, password), mode: SECRET_MODE });
    } else if (isNew) {
      problems.push(`--${role}-keystore: all keystores share one password; make all keys new, or none`);
    } else {
      try {
        keys[role] = openKeystore(path, passwordFile, `--${role}-keystore`);
      } catch (error) {
        problems.push(error instanceof Error ? error.message : String(error));
      }
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const accounts = Object.fromEntries(SIGNING_ROLES.map((role) => [role, computeAddress(keys[role])]));
  return { keys, accounts: accounts as Keys['accounts'], settings, files };
}

function configurationOf(answers: Answers, accounts: Record<SigningRole, string>) {
  const { chainId, owner, withdrawDelaySec, tokens, markets } = answers;
  return {
    ...{ chainId, owner, withdrawDelaySec, tokens, markets },
    curvePosters: [accounts.poster],
    claimPosters: [accounts.settler],
    executors: [accounts.executor],
    takerFees: [],
  };
}

/** Checks the files to be written with the code that reads them later. Throws ConfigError with all problems at once. */
function assertValid(
  configuration: unknown,
  environment: string,
  settings: Readonly<Record<string, string>>,
  { keys, record }: { keys: Keys['keys']; record: string },
): void {
  const problems: string[] = [];
  if (basename(settings['MANIFEST'] ?? '') !== record)
    problems.push(
      `--manifest: must end with ${record}, as \`npm run deploy\` calls its record; only its folder is yours to choose`,
    );
  try {
    const { markets, tokens } = parseConfig(configuration);
    for (const market of markets) assertSignable(listingOf(market, tokens));
  } catch (error) {
    if (!(error instanceof DeployError)) throw error;
    problems.push(...error.message.split('\n'));
  }
  const read = parseEnv(environment);
  for (const [name, value] of Object.entries(settings)) {
    if (read[name] !== value) problems.push(`${name}: .env does not hold ${JSON.stringify(value)} as it is`);
  }
  // Keystores were opened, or are made of these very keys.
  const opened = Object.fromEntries(SIGNING_ROLES.map((role) => [keyName(role), keys[role]]));
  const closed = Object.fromEntries(SIGNING_ROLES.map((role) => [keystoreName(role), '']));
  problems.push(...readPlainSettings({ ...read, ...closed, ...opened }).problems);
  if (!httpUrl.safeParse(settings['ALERT_WEBHOOK_URL']).success)
    problems.push('--alerts: must be an http:// or https:// URL');
  if (problems.length > 0) throw new ConfigError(problems);
}

/**
 * Each file whole or not at all; what is replaced is kept under another name, since it may hold the only copy of a key. Throws
 * ConfigError, before anything is written, when one is there and may not be replaced. Returns where the old ones are.
 */
function writeAll(files: readonly OutputFile[], force: boolean): string[] {
  const there = files.filter(({ path }) => existsSync(path));
  const keys = there.filter(({ path }) => dirname(path).endsWith('keys'));
  // A replaced key would be lost, with the funds of its account.
  if (keys.length > 0)
    throw new ConfigError(keys.map(({ path }) => `${path} is there already, and a key is never overwritten`));
  if (there.length > 0 && !force)
    throw new ConfigError(
      there.map(({ path }) => `${path} is there already; --force replaces it, and keeps the old one beside it`),
    );
  const kept: string[] = [];
  const suffix = `.replaced-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`;
  for (const { path, text, mode } of files) {
    mkdirSync(dirname(path), { recursive: true, mode: dirname(path).endsWith('keys') ? 0o700 : 0o755 });
    const partial = `${path}.partial`;
    // A file that is there keeps the rights that it has.
    rmSync(partial, { force: true });
    writeFileSync(partial, typeof text === 'string' ? text : text(), { mode, flag: 'wx' });
    if (existsSync(path)) {
      kept.push(unusedPath(`${path}${suffix}`));
      renameSync(path, kept.at(-1)!);
    }
    renameSync(partial, path);
  }
  return kept;
}

/** The path itself, or with a number behind it. */
function unusedPath(path: string): string {
  for (let n = 0; ; n++) {
    const one = n === 0 ? path : `${path}-${n}`;
    if (!existsSync(one)) return one;
  }
}

const newPassword = (): string => randomBytes(24).toString('hex');

/** In the folder of the repository. */
const nextSteps = (env: string): string[] => [
  `npx curvebook doctor --env ${env}`,
  `npm run deploy -- deploy --env ${env}`,
  `npm run deploy -- configure --env ${env}`,
  `npx curvebook serve --env ${env}`,
];
