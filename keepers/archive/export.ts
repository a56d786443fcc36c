/** Writes to an archive what a database published before there was an archive, or while it could not be written. */
import { createHash } from 'node:crypto';
import { LogCompactedError } from '../../ledger/errors.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { highestPublicationSeq, readPublications } from '../../ledger/publications/publication-log.js';
import { publicationIdentity } from '../../ledger/orders/restore.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { readSettlements, settlementKey } from '../../ledger/settlements/settlement-log.js';
import type { Db, Publication } from '../../ledger/types.js';
import type { Archive, Archived } from './archive.js';
import { curveKey } from './chain-record.js';
import type { ArchiveBatch } from './format.js';
import { readArchive, type ArchiveStore } from './store.js';

interface ExportDeps {
  db: Db;
  store: ArchiveStore;
  archive: Archive;
  deploymentId: string;
}

interface ExportReport {
  exported: number;
  /** Publications whose rows were compacted and that no fill hit: nothing needs their books any more. */
  lost: number;
}

/** Publications in one file. */
const PAGE = 20;
/** Settlements in one file. */
const SETTLEMENTS = 200;

/** Keys of what the archive has. The returned function reads the files that were written since it was last called. */
function createKnown({ store, deploymentId }: ExportDeps, keysOf: (batch: ArchiveBatch) => readonly string[]) {
  const known = new Set<string>();
  let after: Parameters<typeof readArchive>[2] = null;
  return async (): Promise<ReadonlySet<string>> => {
    for await (const { batch, hash } of readArchive(store, deploymentId, after)) {
      for (const key of keysOf(batch)) known.add(key);
      after = { number: batch.number, hash };
    }
    return known;
  };
}

/** Names a publication among those of its number, shortly, since an export holds as many names as the archive has publications. */
function publicationKey(one: Publication): string {
  const digest = createHash('sha256').update(publicationIdentity(one)).digest('base64');
  return `${curveKey(one)}:${digest.slice(0, 16)}`;
}

/**
 * Exports every publication that no file of the archive has, lowest number first; under a number of which the archive has another one, too: an
 * import takes the one that landed. A poster may write meanwhile: what is prepared after the call is left to it, and what it has written by
 * then is not written again, as far as its files are there before the export's own. Throws ArchiveError for a damaged archive.
 */
export async function exportPublications(deps: ExportDeps): Promise<ExportReport> {
  const { db, archive } = deps;
  const markets = await readMarkets(db.knex);
  const upTo = new Map<number, number>();
  for (const { index } of markets) upTo.set(index, await highestPublicationSeq(db.knex, index));
  const readKnown = createKnown(deps, ({ publications }) => publications.map(publicationKey));
  let known = await readKnown();
  const snapshots = createSnapshotStore(markets);
  const report: ExportReport = { exported: 0, lost: 0 };
  for (const { index } of markets) {
    for (let afterSeq = 0; ;) {
      const range = { market: index, afterSeq, upToSeq: upTo.get(index)!, limit: PAGE };
      const page = await readPublications(db.knex, range);
      const last = page.at(-1);
      if (last === undefined) break;
      afterSeq = last.seq;
      if (page.some((one) => !known.has(publicationKey(one)))) known = await readKnown();
      const archived: Archived[] = [];
      for (const publication of page) {
        if (known.has(publicationKey(publication))) continue;
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
export async function exportSettlements(deps: ExportDeps): Promise<number> {
  const { db, archive } = deps;
  const readKnown = createKnown(deps, ({ settlements }) => settlements.map(settlementKey));
  let known = await readKnown();
  let exported = 0;
  for (let after = 0; ;) {
    const page = await readSettlements(db.knex, { after, limit: SETTLEMENTS });
    // Settlements that were imported from an archive are in it already.
    const own = page.filter((one) => one.preparedBy !== 'archive');
    if (own.some((one) => !known.has(settlementKey(one)))) known = await readKnown();
    const settlements = own.filter((one) => !known.has(settlementKey(one)));
    if (settlements.length > 0) await archive.write({ settlements });
    exported += settlements.length;
    const last = page.at(-1);
    if (last === undefined || page.length < SETTLEMENTS) return exported;
    after = last.settlementNo;
  }
}
