/** Rows of logs, as tests append them. */
import type { Address } from '../../../core/types.js';
import type { Db, LogName, Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import type { OpenTestDb } from '../db.js';
import { MAKERS } from '../markets.js';

export const [alice, bob] = MAKERS as readonly [Address, Address];

export async function opened(open: OpenTestDb, log: LogName): Promise<{ db: Db; writer: Writer }> {
  const db = await open();
  return { db, writer: await acquireWriter(db, log) };
}

export async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}
