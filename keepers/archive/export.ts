/** Writes to an archive what a database published before there was an archive, or while it could not be written. */
import { LogCompactedError } from '../../ledger/errors.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readPublications } from '../../ledger/publications/publication-log.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { readSettlements, settlementKey } from '../../ledger/settlements/settlement-log.js';
import type { Db } from '../../ledger/types.js';
import type { Archive, Archived } from './archive.js';
import { curveKey } from './chain-record.js';
import { readArchive, type ArchiveStore } from './store.js';

interface ExportReport {
  exported: number;
  /** Publications whose rows were compacted and that no fill hit: nothing needs their books any more. */
  lost: number;
}

/** Publications in one file. */
const PAGE = 20;
/** Settlements in one file. */
const SETTLEMENTS = 200;

/** Exports every publication that no file of the archive has, lowest number first. Throws ArchiveError for a damaged archive. */
export async function exportPublications(deps: {
  db: Db;
  store: ArchiveStore;
  archive: Archive;
  deploymentId: string;
}): Promise<ExportReport> {
  const { db, archive } = deps;
  const known = new Set<string>();
  for await (const { batch } of readArchive(deps.store, deps.deploymentId)) {
    for (const one of batch.publications) known.add(curveKey(one));
  }
  const markets = await readMarkets(db.knex);
  const snapshots = createSnapshotStore(markets);
  const report: ExportReport = { exported: 0, lost: 0 };
  for (const { index } of markets) {
    for (let afterSeq = 0; ;) {
      const page = await readPublications(db.knex, { market: index, afterSeq, limit: PAGE });
      const last = page.at(-1);
      if (last === undefined) break;
      afterSeq = last.seq;
      const archived: Archived[] = [];
      for (const publication of page) {
        if (known.has(curveKey(publication))) continue;
        try {
          archived.push({ publication, snapshot: await snapshots.get(db.knex, publication) });
        } catch (error) {
          if (!(error instanceof LogCompactedError)) throw error;
          report.lost += 1;
        }
      }
      snapshots.forget(index, afterSeq);
      if (archived.length === 0) continue;
      const oids = archived.flatMap(({ snapshot }) => [...snapshot.asks, ...snapshot.bids].map(({ oid }) => oid));
      const orderSeq = Math.max(...archived.map(({ publication }) => publication.cut.orderSeq));
      const book = { orderSeq, oid: oids.reduce((high, oid) => Math.max(high, oid), 0) };
      await archive.write({ publications: archived, book });
      report.exported += archived.length;
    }
  }
  return report;
}

/** Exports every settlement that no file of the archive has, and returns how many. Throws ArchiveError for a damaged archive. */
export async function exportSettlements({
  db,
  store,
  archive,
  deploymentId,
}: Parameters<typeof exportPublications>[0]): Promise<number> {
  const known = new Set<string>();
  for await (const { batch } of readArchive(store, deploymentId)) {
    for (const one of batch.settlements) known.add(settlementKey(one));
  }
  let exported = 0;
  for (let after = 0; ;) {
    const page = await readSettlements(db.knex, { after, limit: SETTLEMENTS });
    // Settlements that were imported from an archive are in it already.
    const settlements = page.filter((one) => one.preparedBy !== 'archive' && !known.has(settlementKey(one)));
    if (settlements.length > 0) await archive.write({ settlements });
    exported += settlements.length;
    const last = page.at(-1);
    if (last === undefined || page.length < SETTLEMENTS) return exported;
    after = last.settlementNo;
  }
}
