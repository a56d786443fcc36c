/** Settings of the sandbox: from the environment, and the options of `npm start`. */
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ConfigError } from '../errors.js';
import { givenSettings, integer } from '../settings/fields.js';
import { SANDBOX_MARKETS } from '../../deploy/sandbox/sandbox.js';

export const SANDBOX_USAGE = `npm start [-- options]

  --markets N    list the first N of ${SANDBOX_MARKETS.map(({ pair }) => pair).join(', ')} (default 1)
  --no-demo      bring up the same stack without bots
  --help

Environment: PORT (8080), RPC_PORT (8545), HOST (127.0.0.1), BLOCK_TIME_MS (2000), SANDBOX_DIR (.curvebook),
DATABASE_URL (sqlite:<SANDBOX_DIR>/curvebook.sqlite), and the settings of the server.`;

export interface SandboxConfig {
  marketCount: number;
  /** Whether bots trade. */
  demo: boolean;
  host: string;
  /** Of the server; 0 takes a free one. */
  port: number;
  /** Of the chain; 0 takes a free one. */
  rpcPort: number;
  blockTimeMs: number;
  /** Holds the manifest, the logs and the default database. */
  directory: string;
  databaseUrl: string;
  /** Of the server: ours, with the database. */
  serverEnvironment: NodeJS.ProcessEnv;
}

const environmentSchema = z.object({
  PORT: integer(0, 65_535, 8080),
  RPC_PORT: integer(0, 65_535, 8545),
  HOST: z.string().min(1).default('127.0.0.1'),
  BLOCK_TIME_MS: integer(10, 60_000, 2_000),
  SANDBOX_DIR: z.string().min(1).default('.curvebook'),
  DATABASE_URL: z
    .string()
    .regex(/^(sqlite:|postgres(ql)?:\/\/)/, 'must begin with sqlite: or postgres://')
    .optional(),
});

/** Null when `--help` was asked for. Throws ConfigError with all problems at once. */
export function readSandboxConfig(
  args: readonly string[] = process.argv.slice(2),
  env: NodeJS.ProcessEnv = process.env,
): SandboxConfig | null {
  const options = readOptions(args);
  if (options.help) return null;
  const problems: string[] = [];
  const marketCount = SANDBOX_MARKETS.findIndex((_, index) => String(index + 1) === options.markets) + 1;
  if (marketCount === 0) {
    problems.push(`--markets: must be 1..${SANDBOX_MARKETS.length}, not ${options.markets}`);
  }
  const parsed = environmentSchema.safeParse(givenSettings(env));
  if (!parsed.success) {
    problems.push(...parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  }
  // 0 takes a free port.
  if (parsed.success && parsed.data.PORT !== 0 && parsed.data.PORT === parsed.data.RPC_PORT)
    problems.push('RPC_PORT: must not be PORT, on which the server listens');
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const settings = parsed.data;
  const databaseUrl = settings.DATABASE_URL ?? `sqlite:${settings.SANDBOX_DIR}/curvebook.sqlite`;
  return {
    marketCount,
    demo: !options['no-demo'],
    host: settings.HOST,
    port: settings.PORT,
    rpcPort: settings.RPC_PORT,
    blockTimeMs: settings.BLOCK_TIME_MS,
    directory: settings.SANDBOX_DIR,
    databaseUrl,
    serverEnvironment: { ...env, DATABASE_URL: databaseUrl },
  };
}

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        markets: { type: 'string', default: '1' },
        'no-demo': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
}
