/** Keeps publications of a database beside the archive before an import deletes them. */
import { encodeSnapshot, stringify } from '../../core/json.js';
import type { MarketSnapshot } from '../../core/types.js';
import { readSnapshot } from '../../ledger/chain/ledger-log.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { LogCompactedError } from '../../ledger/errors.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { publicationRow, readPublication } from '../../ledger/publications/publication-log.js';
import type { Db, Publication } from '../../ledger/types.js';
import type { ArchiveStore } from './store.js';

/**
 * Makes the database's publication under a number, and its book, durable beside the archive's files, as JSON: `publication` as its row,
 * `snapshot` as it is stored, null where neither a snapshot nor the rows that it was cut from are left. No program reads it later. It may
 * be repeated. Rejects when it can't be written.
 */
export async function setAside(
  { db, store }: { db: Db; store: ArchiveStore },
  { market, seq }: Pick<Publication, 'market' | 'seq'>,
): Promise<void> {
  const own = await readPublication(db.knex, market, seq);
  if (own === null) return;
  const snapshot = await bookOf(db, own);
  const text = stringify({
    publication: publicationRow(own),
    snapshot: snapshot === null ? null : encodeSnapshot(snapshot),
  });
  await store.setAside(`${market}-${seq}-${own.snapshotHash}.json`, Buffer.from(text));
}

async function bookOf(db: Db, own: Publication): Promise<MarketSnapshot | null> {
  const stored = await readSnapshot(db.knex, own.market, own.seq);
  if (stored !== null) return stored;
  try {
    return await createSnapshotStore(await readMarkets(db.knex)).get(db.knex, own);
  } catch (error) {
    if (error instanceof LogCompactedError) return null;
    throw error;
  }
}
