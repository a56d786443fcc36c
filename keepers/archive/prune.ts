/**
 * Finds the part of an archive that no restore can need any more, given the oldest backup, and removes it in whole folders, oldest first.
 */
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readSnapshot } from '../../ledger/chain/ledger-log.js';
import { firstRow } from '../../ledger/db/rows.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import { isLandedAs, isSamePublication } from '../../ledger/orders/restore.js';
import { readPostSeen, readPublication } from '../../ledger/publications/publication-log.js';
import { missingSettlements, openSettlements } from '../../ledger/settlements/settlement-log.js';
import type { Db, Publication } from '../../ledger/types.js';
import type { ArchiveBatch } from './format.js';
import { RECENT_SEC } from './import.js';
import { readArchive, type ArchiveStore } from './store.js';

interface PruneDeps {
  db: Db;
  store: ArchiveStore;
  deploymentId: string;
  /** When the oldest backup was made that may still be restored: younger files stay, and files up to an hour older, too. */
  beforeMs: number;
}

/** A folder of the archive, by the numbers of its first and last file. */
interface PrunedFolder {
  first: number;
  last: number;
  fromMs: number;
  toMs: number;
}

export interface PrunePlan {
  /** Folders that may be removed, oldest first; whole ones, since no file refers to a book of another folder. */
  folders: PrunedFolder[];
  /** Why the folder after them stays; null when only MAX_FOLDERS keeps it. */
  keeps: string | null;
}

/** How far the clock that files were written by may be behind the one that backups are made by. */
const CLOCK_MARGIN_MS = 3_600_000;
/** Most folders per run. */
const MAX_FOLDERS = 100;

/**
 * Reads the whole archive, which must be undamaged, and finds the folders that may go: everything in them is older than the oldest backup,
 * in this database, or of a number under which the database's own landed, and finished, so that neither this database, nor a backup together
 * with the rest of the archive, lacks it; and neither the newest folder nor the newest checkpoint is among them. Reads only. Throws
 * ArchiveError.
 */
export async function planPrune(deps: PruneDeps): Promise<PrunePlan> {
  const { store, deploymentId } = deps;
  const folderOf = (number: number): number => Math.floor(number / store.filesPerFolder);
  const newest = folderOf(await store.lastNumber());
  const judge = await createJudge(deps);
  const folders: PrunedFolder[] = [];
  let keeps: string | null = null;
  let checkpointFolder = -1;
  for await (const { batch } of readArchive(store, deploymentId)) {
    const { number, timeMs, checkpoint } = batch;
    const folder = folderOf(number);
    if (checkpoint !== null) checkpointFolder = folder;
    if (keeps !== null) continue;
    keeps = folder === newest ? `file ${number} is in the newest folder` : await judge(batch);
    const last = folders.at(-1);
    const isSame = last !== undefined && folderOf(last.first) === folder;
    if (keeps !== null) {
      if (isSame) folders.pop();
    } else if (isSame) Object.assign(last, { last: number, toMs: timeMs });
    else folders.push({ first: number, last: number, fromMs: timeMs, toMs: timeMs });
  }
  const published = folders.findIndex(({ first }) => folderOf(first) === checkpointFolder);
  if (published >= 0) {
    keeps = `file ${folders[published]!.first} is of the folder with the newest checkpoint`;
    folders.splice(published);
  }
  return { folders: folders.slice(0, MAX_FOLDERS), keeps: folders.length > MAX_FOLDERS ? null : keeps };
}

/** Returns a function that gives the reason why a file has to stay, or null. */
async function createJudge({ db, beforeMs }: PruneDeps): Promise<(batch: ArchiveBatch) => Promise<string | null>> {
  const q = db.knex;
  const head = await lastGeneration(q);
  const headSec = Math.floor((head?.blockTimestampMs ?? 0) / 1_000);
  const compacted = await readCompactionPosition(q);
  const open = new Set(
    (await openSettlements(q)).map(({ maker, token, preparedMs }) => `${maker} ${token} ${preparedMs}`),
  );

  /** Whether the ledger has seen the database's own land under that number, so that nothing can need the archived one. */
  async function isOutdone(own: Publication, one: Publication): Promise<boolean> {
    const seen = await readPostSeen(q, one.market, one.seq);
    if (seen === null) return false;
    const isTouch = seen.baseSeq !== seen.seq;
    const landed = isTouch ? { wordsHash: null, baseSeq: seen.baseSeq } : { wordsHash: seen.wordsHash };
    return isLandedAs(own, landed) && !isLandedAs(one, landed);
  }

  async function keepsPublication(one: Publication): Promise<string | null> {
    const { market, seq, deadlineSec, cut } = one;
    const name = `curve ${seq} of market ${market}`;
    const own = await readPublication(q, market, seq);
    if (own === null || !(isSamePublication(own, one) || (await isOutdone(own, one))))
      return `${name} is not in the database`;
    if (deadlineSec + RECENT_SEC >= headSec) return `${name} may yet be hit by what the ledger has not scanned`;
    if (cut.orderSeq > compacted.orderSeq) return null;
    const fill = await firstRow(q, 'fills', { where: { market, curve_seq: seq } });
    if (fill === undefined || (await readSnapshot(q, market, seq)) !== null) return null;
    return `the book of ${name} is not in the database, and a fill hit it`;
  }

  return async ({ number, timeMs, publications, settlements }) => {
    if (timeMs >= beforeMs - CLOCK_MARGIN_MS) return `file ${number} is younger than the oldest backup`;
    const because = (why: string): string => `file ${number} stays: ${why}`;
    for (const one of publications) {
      const why = await keepsPublication(one);
      if (why !== null) return because(why);
    }
    const [missing] = await missingSettlements(q, settlements);
    if (missing !== undefined) return because(`settlement ${missing.settlementNo} is not in the database`);
    const waiting = settlements.find(({ maker, token, preparedMs }) => open.has(`${maker} ${token} ${preparedMs}`));
    return waiting === undefined ? null : because(`settlement ${waiting.settlementNo} may yet land`);
  };
}

/** Removes a plan's folders, oldest first; stopped half-way, the rest is a valid archive. Returns the number of removed files. */
export async function carryOutPrune(store: ArchiveStore, { folders }: PrunePlan): Promise<number> {
  let files = 0;
  for (const { first, last } of folders) {
    await store.removeFolder(first);
    files += last - first + 1;
  }
  return files;
}
