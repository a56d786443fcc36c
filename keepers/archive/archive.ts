/** The archive: what must survive a loss of the database so that every fill can still be explained. */
import { encodeSnapshot } from '../../core/json.js';
import type { Hex, MarketSnapshot } from '../../core/types.js';
import { publicationRow } from '../../ledger/publications/publication-log.js';
import { settlementRow } from '../../ledger/settlements/settlement-log.js';
import type { CheckpointHead, Publication, Settlement } from '../../ledger/types.js';
import {
  ArchiveError,
  decodeBatch,
  encodeBatch,
  fileHash,
  highsAfter,
  NO_HIGHS,
  type ArchiveBatch,
  type ArchiveHighs,
} from './format.js';
import type { ArchiveStore } from './store.js';

/** Content of one file. */
interface Entry {
  publications?: readonly Archived[];
  /** Newest order row and highest order id of the publications' books. */
  book?: { orderSeq: number; oid: number };
  settlements?: readonly Settlement[];
  checkpoint?: CheckpointHead | null;
}

/** A publication with the exact book behind it. */
export interface Archived {
  publication: Publication;
  snapshot: MarketSnapshot;
}

export interface ArchiveStatus {
  /** Files so far, those of earlier processes included. */
  files: number;
  /** Writes that failed since the start. */
  failures: number;
  /** Whether the newest write failed. */
  failing: boolean;
  /** Since when something waits to be written; null while nothing does. Dropped entries do not count. */
  waitingSinceMs: number | null;
  /** Entries since the start that were sent but neither written nor kept in memory: they have to be exported. */
  dropped: number;
}

export interface Archive {
  /** Highest numbers in the archive, and those of this process. */
  highs(): ArchiveHighs;
  /**
   * Makes an entry durable in the archive, as one file. Rejects when it can't; its file may be there then, but nobody may count on it. With
   * `keep`, for an entry that is sent all the same, a failed one is kept in memory and written before the next entry, as the file that may
   * be there already.
   */
  write(entry: Entry, options?: { keep?: boolean }): Promise<void>;
  status(): ArchiveStatus;
}

interface ArchiveDeps {
  store: ArchiveStore;
  deploymentId: string;
  /** Signs each file: the poster's or the settler's key, so that only a key that may send a file's content can have written it. */
  privateKey: Hex;
  nowMs(): number;
  /** Default: 32 Mi. */
  maxKeptChars?: number;
}

/** Another writer may take a number first. */
const TRIES = 5;
/**
 * Size of the entries that wait in memory while the archive can't be written, in characters of their files; further entries have to be
 * exported.
 */
const MAX_KEPT_CHARS = 32 * 1024 * 1024;
const NO_BOOK = { orderSeq: 0, oid: 0 };

interface Tail {
  number: number;
  hash: Hex | null;
  highs: ArchiveHighs;
}

/** A file of an entry, with what `Tail` needs once it is there. */
interface Draft {
  entry: Entry;
  bytes: Uint8Array;
  batch: ArchiveBatch;
}

/** Opens the archive at its newest file. Throws ArchiveError `ARCHIVE_DAMAGED` and `ARCHIVE_FOREIGN`. */
export async function openArchive(deps: ArchiveDeps): Promise<Archive> {
  const { store, deploymentId, maxKeptChars = MAX_KEPT_CHARS } = deps;
  let tail = await readTail();
  let failures = 0;
  let failing = false;
  let waitingSinceMs: number | null = null;
  let dropped = 0;
  const kept: { entry: Entry; chars: number }[] = [];
  let keptChars = 0;
  let queue: Promise<unknown> = Promise.resolve();
  /** Newest book of each market that this process has written in the present folder. */
  let known = new Map<number, Hex>();
  let folder = 0;
  /** The newest file whose write failed: it may be there all the same. */
  let unsure: Draft | null = null;

  async function readTail(): Promise<Tail> {
    const number = await store.lastNumber();
    if (number === 0) return { number, hash: null, highs: NO_HIGHS };
    const { batch, hash } = decodeBatch(await store.read(number), `file ${number} of the archive`);
    if (batch.deploymentId !== deploymentId || batch.number !== number) {
      throw new ArchiveError(
        'ARCHIVE_FOREIGN',
        `the archive is of deployment ${batch.deploymentId}, not ${deploymentId}`,
      );
    }
    return { number, hash, highs: batch.highs };
  }

  /** The file that comes after the tail. */
  function draftOf(entry: Entry): Draft {
    const { publications: archived = [], book = NO_BOOK, settlements = [], checkpoint = null } = entry;
    const number = tail.number + 1;
    if (Math.floor(number / store.filesPerFolder) !== folder) known = new Map();
    folder = Math.floor(number / store.filesPerFolder);
    const books = new Map(archived.map(({ publication: { snapshotHash }, snapshot }) => [snapshotHash, snapshot]));
    for (const hash of known.values()) books.delete(hash);
    const publications = archived.map(({ publication }) => publication);
    const batch: ArchiveBatch = {
      deploymentId,
      number,
      previous: tail.hash,
      timeMs: deps.nowMs(),
      publications,
      snapshots: [...books.values()],
      settlements: [...settlements],
      checkpoint,
      highs: highsAfter(tail.highs, publications, book),
    };
    return { entry, bytes: encodeBatch(batch, deps.privateKey), batch };
  }

  async function append(entry: Entry): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      // Written again as it was, an entry whose file is there already does not get a second one.
      const draft: Draft = unsure?.entry === entry ? unsure : draftOf(entry);
      const { bytes, batch } = draft;
      unsure = draft;
      const isWritten = await store.write(batch.number, bytes);
      unsure = null;
      if (isWritten) {
        tail = { number: batch.number, hash: fileHash(bytes), highs: batch.highs };
        for (const { market, snapshotHash } of batch.publications) known.set(market, snapshotHash);
        return;
      }
      if (tries === TRIES)
        throw new ArchiveError('ARCHIVE_BUSY', `another process writes file ${batch.number} of the archive`);
      tail = await readTail();
    }
  }

  /** Keeps an entry in memory, if there is room. */
  function keepFor(entry: Entry): void {
    const chars = sizeOf(entry);
    // Later entries may still be kept after one that was dropped: each is useful by itself.
    if (keptChars + chars > maxKeptChars) {
      dropped += 1;
      return;
    }
    kept.push({ entry, chars });
    keptChars += chars;
  }

  return {
    highs: () => tail.highs,
    write(entry, { keep = false } = {}) {
      const sinceMs = deps.nowMs();
      const written = queue.then(async () => {
        waitingSinceMs ??= sinceMs;
        try {
          for (let next = kept[0]; next !== undefined; next = kept[0]) {
            await append(next.entry);
            kept.shift();
            keptChars -= next.chars;
          }
          await append(entry);
          failing = false;
          waitingSinceMs = null;
        } catch (error) {
          failures += 1;
          failing = true;
          if (keep) keepFor(entry);
          throw error;
        }
      });
      queue = written.catch(() => undefined);
      return written;
    },
    status: () => ({ files: tail.number, failures, failing, waitingSinceMs, dropped }),
  };
}

/** Characters that an entry takes in a file, with its books. */
const sizeOf = ({ publications = [], settlements = [] }: Entry): number =>
  JSON.stringify([publications.map(({ publication }) => publicationRow(publication)), settlements.map(settlementRow)])
    .length +
  [...new Set(publications.map(({ snapshot }) => snapshot))].reduce(
    (sum, snapshot) => sum + encodeSnapshot(snapshot).length,
    0,
  );
