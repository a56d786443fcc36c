import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import type { settingsSchema } from './config.js';
import { UsageError } from './errors.js';

type Setting = keyof typeof settingsSchema.shape;

/** Options that every command understands; each overrides one setting. */
const SETTING_OPTIONS: Record<string, Setting> = {
  manifest: 'MANIFEST',
  roles: 'ROLES',
  port: 'PORT',
  database: 'DATABASE_URL',
  rpc: 'RPC_URL',
  archive: 'ARCHIVE_DIR',
};

export interface CommandLine {
  positionals: string[];
  overrides: Partial<Record<Setting, string>>;
  help: boolean;
  json: boolean;
  /** Do not ask. */
  yes: boolean;
  /** Finished ones, too. */
  all: boolean;
  capitalOrigin: boolean;
  /** Addresses, comma-separated; empty for none. */
  signer: string;
  /** Take back more blocks than a healthy chain ever does. */
  deep: boolean;
  /** First block to read again. */
  from: string | undefined;
  /** When the oldest backup was made that may be restored. */
  before: string | undefined;
  /** Print what would be done, and change nothing. */
  dryRun: boolean;
  /** File with settings that the environment lacks. */
  env: string | undefined;
  /** Options that this command alone takes, in the order given. */
  own: ReadonlyMap<string, readonly string[]>;
}

/**
 * The verb of a command that has several. Throws ConfigError for another one, or none, and says which there are.
 */
export function readVerb<T extends string>(command: string, verb: string | undefined, verbs: readonly T[]): T {
  const found = verbs.find((one) => one === verb);
  if (found !== undefined) return found;
  const named = verb === undefined ? command : `${command} ${verb}`;
  throw new UsageError(`unknown command: ${named}; ${command} takes ${verbs.join(', ')}`);
}

/** Options of one command: those with a value, which may be given several times, and switches. */
export type OwnOptions = Readonly<Record<string, 'value' | 'switch'>>;

/** Options that only some verbs of a command take, with those verbs. */
export type OptionsOfVerbs = Readonly<Record<string, readonly string[]>>;

interface Takes {
  name: string;
  help: string;
  options?: OwnOptions | undefined;
  ofVerbs?: OptionsOfVerbs | undefined;
}

/**
 * Reads the command line of a command. Throws ConfigError for an option that does not exist, that the command's help does not name, or that
 * is another verb's: no option is silently ignored, since `--dry-run` would be carried out then.
 */
export function readCommandLine(
  args: readonly string[],
  { name, help: ownHelp, options = {}, ofVerbs = {} }: Takes,
): CommandLine {
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...args],
      allowPositionals: true,
      tokens: true,
      options: {
        ...ownOptions(options),
        env: { type: 'string' },
        manifest: { type: 'string' },
        roles: { type: 'string' },
        port: { type: 'string' },
        database: { type: 'string' },
        rpc: { type: 'string' },
        archive: { type: 'string' },
        signer: { type: 'string', default: '' },
        help: { type: 'boolean', short: 'h', default: false },
        json: { type: 'boolean', default: false },
        yes: { type: 'boolean', short: 'y', default: false },
        all: { type: 'boolean', default: false },
        'capital-origin': { type: 'boolean', default: false },
        deep: { type: 'boolean', default: false },
        from: { type: 'string' },
        before: { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
      },
    });
    for (const token of tokens) {
      if (token.kind !== 'option' || token.name === 'help') continue;
      const isTaken = new RegExp(`--${token.name}(?![a-z-])`).test(ownHelp);
      if (!isTaken)
        throw new UsageError(`${name} takes no --${token.name}; curvebook help ${name} lists what it takes`);
      const [verb] = positionals;
      const takers = Object.hasOwn(ofVerbs, token.name) ? ofVerbs[token.name] : undefined;
      if (verb !== undefined && takers?.includes(verb) === false)
        throw new UsageError(`${name} ${verb} takes no --${token.name}: it is for ${takers.join(' and ')}`);
    }
    const overrides: CommandLine['overrides'] = {};
    for (const [option, setting] of Object.entries(SETTING_OPTIONS)) {
      const value = (values as Record<string, unknown>)[option];
      if (typeof value === 'string') overrides[setting] = value;
    }
    const {
      help,
      json,
      yes,
      all,
      signer,
      'capital-origin': capitalOrigin,
      deep,
      from,
      before,
      'dry-run': dryRun,
      env,
    } = values;
    const own = new Map<string, string[]>();
    for (const token of tokens) {
      if (token.kind === 'option' && token.name in options)
        own.set(token.name, [...(own.get(token.name) ?? []), token.value ?? '']);
    }
    return {
      ...{ positionals, overrides, help, json, yes, all, capitalOrigin },
      ...{ signer, deep, from, before, dryRun, env, own },
    };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const ownOptions = (options: OwnOptions): ParseArgsOptionsConfig =>
  Object.fromEntries(
    Object.entries(options).map(([name, kind]) => [
      name,
      kind === 'switch' ? { type: 'boolean' as const } : { type: 'string' as const, multiple: true },
    ]),
  );
