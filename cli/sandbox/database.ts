/** The database of a sandbox lives as long as its chain; a new chain begins with an empty one. */
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Address } from '../../core/types.js';
import { boundDeployment, dropTables, openDb, prepareDb, withoutPassword } from '../../ledger/db/db.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';

/** The sandbox refuses to clear a database that it did not create. */
export class ForeignDatabaseError extends Error {
  readonly code = 'FOREIGN_DATABASE';
  constructor(databaseUrl: string, deploymentId: string) {
    super(
      `the database ${withoutPassword(databaseUrl)} belongs to deployment ${deploymentId}, which is not a sandbox started here; ` +
        'drop it, or choose another by DATABASE_URL',
    );
    this.name = 'ForeignDatabaseError';
  }
}

interface SandboxDatabaseOptions {
  databaseUrl: string;
  deploymentId: string;
  /** Keeps the list of sandboxes that were started here, whose databases may be cleared. */
  directory: string;
  approvedMakers: readonly string[];
}

/** Empties what an earlier sandbox left, creates the tables and approves the makers. Throws ForeignDatabaseError. */
export async function prepareDatabase(options: SandboxDatabaseOptions): Promise<void> {
  const { databaseUrl, deploymentId, directory } = options;
  await clearEarlier(databaseUrl, directory);
  appendFileSync(listPath(directory), `${deploymentId}\n`);
  const db = await openDb(databaseUrl);
  try {
    await prepareDb(db, deploymentId);
    for (const maker of options.approvedMakers) {
      const address = maker.toLowerCase() as Address;
      await appendOperatorRow(db, { timeMs: Date.now(), kind: 'approve', maker: address, note: 'sandbox' });
    }
  } finally {
    await db.close();
  }
}

async function clearEarlier(databaseUrl: string, directory: string): Promise<void> {
  const db = await openDb(databaseUrl);
  try {
    const bound = await boundDeployment(db);
    if (bound === null) return;
    if (!startedHere(directory).includes(bound)) throw new ForeignDatabaseError(databaseUrl, bound);
    if (db.kind === 'pg') await dropTables(db);
  } finally {
    await db.close();
  }
  const path = /^sqlite:(.+)$/.exec(databaseUrl)?.[1];
  if (path !== undefined) for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
}

const listPath = (directory: string) => join(directory, 'sandbox-deployments');

/** Deployments of the sandboxes that were started in this folder. */
export function startedHere(directory: string): string[] {
  try {
    return readFileSync(listPath(directory), 'utf8').split('\n');
  } catch {
    return [];
  }
}
