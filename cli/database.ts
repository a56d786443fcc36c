/** How `serve` and the commands open what is in a database. */
import { boundDeployment, prepareDb } from '../ledger/db/db.js';
import { checkVersion } from '../ledger/db/writers.js';
import type { Db } from '../ledger/types.js';

/**
 * As `prepareDb`, but for a database that a newer version has changed: its migrations, which this one does not know, must not be taken for missing files.
 * Throws DatabaseError `DATABASE_NEWER` for one, before anything is changed.
 */
export async function prepareKnownDb(
  db: Db,
  deploymentId: string,
  onRebuild?: (done: number, total: number) => void,
): Promise<void> {
  if ((await boundDeployment(db)) !== null) await checkVersion(db.knex);
  await prepareDb(db, deploymentId, onRebuild);
}
