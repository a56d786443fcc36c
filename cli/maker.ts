import { getAddress } from 'ethers';
import type { Address } from '../core/types.js';
import { bindDeployment, migrate, openDb } from '../ledger/db.js';
import { appendOperatorRow, readOperatorState } from '../ledger/operator-log.js';
import type { Db } from '../ledger/types.js';
import { readCommandLine } from './arguments.js';
import { ConfigError, loadConfig, type Config } from './config.js';

export const MAKER_HELP = `curvebook maker <approve|suspend> <address> [--manifest <path>] [--database <url>]
curvebook maker list [--json]

Approval lets an address quote; suspension closes its orders and keeps its funds withdrawable.
`;

/** Approves, suspends or lists makers. Returns the exit code. */
export async function makerCommand(args: readonly string[]): Promise<number> {
  const line = readCommandLine(args);
  const [verb, address] = line.positionals;
  if (line.help || verb === undefined) {
    process.stdout.write(MAKER_HELP);
    return line.help ? 0 : 1;
  }
  const config = loadConfig({ ROLES: 'gateway', ...line.overrides });
  return withDatabase(config, async (db) => {
    if (verb === 'list') return list(db, line.json);
    if (verb !== 'approve' && verb !== 'suspend') throw new ConfigError([`unknown command: maker ${verb}`]);
    const maker = readAddress(address);
    await appendOperatorRow(db, { timeMs: Date.now(), kind: verb, maker, note: '' });
    process.stdout.write(`${maker} is ${verb === 'approve' ? 'approved' : 'suspended'}\n`);
    return 0;
  });
}

async function list(db: Db, json: boolean): Promise<number> {
  const { approved, suspended } = await readOperatorState(db.knex);
  const rows = [
    ...[...approved].map((maker) => ({ maker, status: 'approved' })),
    ...[...suspended].map((maker) => ({ maker, status: 'suspended' })),
  ].sort((a, b) => (a.maker < b.maker ? -1 : 1));
  const text = json ? JSON.stringify(rows) : rows.map((row) => `${row.maker} ${row.status}`).join('\n');
  process.stdout.write(`${text}\n`);
  return 0;
}

function readAddress(text: string | undefined): Address {
  try {
    return getAddress(text ?? '').toLowerCase() as Address;
  } catch {
    throw new ConfigError([`not an address: ${text ?? '(none given)'}`]);
  }
}

/** Opens the database of the deployment for one command. */
async function withDatabase<T>(config: Config, run: (db: Db) => Promise<T>): Promise<T> {
  const db = await openDb(config.DATABASE_URL);
  try {
    await migrate(db);
    await bindDeployment(db, config.manifest.deploymentId);
    return await run(db);
  } finally {
    await db.close();
  }
}
