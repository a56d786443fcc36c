import { parseArgs } from 'node:util';
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
  /** First block to read anew. */
  from: string | undefined;
}

/** Reads a command line. Throws ConfigError for an option that does not exist. */
export function readCommandLine(args: readonly string[]): CommandLine {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
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
      },
    });
    const overrides: CommandLine['overrides'] = {};
    for (const [option, setting] of Object.entries(SETTING_OPTIONS)) {
      const value = (values as Record<string, unknown>)[option];
      if (typeof value === 'string') overrides[setting] = value;
    }
    const { help, json, yes, all, signer, 'capital-origin': capitalOrigin, deep, from } = values;
    return { positionals, overrides, help, json, yes, all, capitalOrigin, signer, deep, from };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
