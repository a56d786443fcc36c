/** The archive as the poster writes it: what must outlive the database for any fill to be explained. */
import type { Hex, MarketSnapshot } from '../../core/types.js';
import type { Publication } from '../../ledger/types.js';
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
import { FILES_PER_FOLDER, type ArchiveStore } from './store.js';

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
}

export interface Archive {
  /** Highest numbers in the archive, and those of this process. */
  highs(): ArchiveHighs;
  /**
   * Makes publications durable in the archive, as one file. `book` says how far the order log was read for them. Rejects when it can't;
   * then nothing of it counts.
   */
  write(archived: readonly Archived[], book: { orderSeq: number; oid: number }): Promise<void>;
  status(): ArchiveStatus;
}

export interface ArchiveDeps {
  store: ArchiveStore;
  deploymentId: string;
  /** Signs each file: the poster's, so that only who could post could have written it. */
  privateKey: Hex;
  nowMs(): number;
}

/** Another writer may take a number first. */
const TRIES = 5;

interface Tail {
  number: number;
  hash: Hex | null;
  highs: ArchiveHighs;
}

/** Opens the archive at its newest file. Throws ArchiveError `ARCHIVE_DAMAGED` and `ARCHIVE_FOREIGN`. */
export async function openArchive(deps: ArchiveDeps): Promise<Archive> {
  const { store, deploymentId } = deps;
  let tail = await readTail();
  let failures = 0;
  let failing = false;
  let queue: Promise<unknown> = Promise.resolve();
  /** Newest book of each market that this folder of files has, by this process. */
  let known = new Map<number, Hex>();

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

  async function append(archived: readonly Archived[], book: { orderSeq: number; oid: number }): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const number = tail.number + 1;
      if (number % FILES_PER_FOLDER === 0) known = new Map();
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
        highs: highsAfter(tail.highs, publications, book),
      };
      const bytes = encodeBatch(batch, deps.privateKey);
      if (await store.write(number, bytes)) {
        tail = { number, hash: fileHash(bytes), highs: batch.highs };
        for (const { market, snapshotHash } of publications) known.set(market, snapshotHash);
        return;
      }
      if (tries === TRIES)
        throw new ArchiveError('ARCHIVE_BUSY', `another process writes file ${number} of the archive`);
      tail = await readTail();
      known = new Map();
    }
  }

  return {
    highs: () => tail.highs,
    write(archived, book) {
      const written = queue.then(async () => {
        try {
          await append(archived, book);
          failing = false;
        } catch (error) {
          failures += 1;
          failing = true;
          throw error;
        }
      });
      queue = written.catch(() => undefined);
      return written;
    },
    status: () => ({ files: tail.number, failures, failing }),
  };
}
