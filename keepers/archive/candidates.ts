/** What the archive has under a number and the database has not: one publication, or several of which the chain decides. */
import { wordsHash } from '../../core/curve/words.js';
import { isLandedAs, isSamePublication, sentOf, type Rivals } from '../../ledger/orders/restore.js';
import type { Publication } from '../../ledger/types.js';
import { curveKey, type ChainRecord, type LandedCurve } from './chain-record.js';
import { ArchiveError } from './format.js';

/** A publication of the archive, and the first file that has it. */
export interface InFile {
  publication: Publication;
  file: number;
}

/** One number. Publications of the archive that equal each other are one, and none equals the database's own. */
interface Candidates {
  own: Publication | null;
  archived: InFile[];
}

/** What is chosen of all numbers. */
interface Choice {
  /** Publications that the database lacks, those of `superseded` included. */
  missing: Publication[];
  /** Those that take the place of one of the database's own. */
  superseded: Publication[];
  /** Those of numbers under which another curve landed that neither the archive nor the database has. */
  disproven: InFile[];
}

const fileName = ({ file }: InFile): string => `file ${file} of the archive`;

/** Collects publications that the database lacks, or has otherwise, file after file. */
export function createCandidates() {
  const byKey = new Map<string, Candidates>();

  function note(file: number, own: Publication | null, publication: Publication): void {
    const key = curveKey(publication);
    const found = byKey.get(key) ?? { own, archived: [] };
    byKey.set(key, found);
    // A publication may be in two files: written again, or exported while its file was being written.
    if (found.archived.some((one) => isSamePublication(one.publication, publication))) return;
    found.archived.push({ publication, file });
  }

  return {
    /** Adds what of a file differs from the database. */
    note(file: number, { missing, rivals }: { missing: readonly Publication[]; rivals: readonly Rivals[] }): void {
      for (const one of missing) note(file, null, one);
      for (const { own, archived } of rivals) note(file, own, archived);
    },

    /** The lowest block that one of them, or the database's own under its number, was prepared at; at most `fromBlock`. */
    earliestBlock: (fromBlock: number): number =>
      [...byKey.values()]
        .flatMap(({ own, archived }) => [...(own === null ? [] : [own]), ...archived.map((one) => one.publication)])
        .reduce((least, { blockNumber }) => Math.min(least, blockNumber), fromBlock),

    /**
     * Chooses at most one of each number. Throws RestoreConflictError where the chain does not decide between two, and ArchiveError
     * `ARCHIVE_UNPROVEN` for one that contradicts itself, or the chain where most endpoints do not agree on what landed.
     */
    choose(chain: ChainRecord): Choice {
      const choice: Choice = { missing: [], superseded: [], disproven: [] };
      for (const [key, { own, archived }] of byKey) {
        const landed = chain.landed.get(key) ?? null;
        const nowSec = chain.isAgreed ? chain.timestampSec : null;
        const chosen = (one: InFile, other: InFile): InFile => {
          const places = [fileName(one), fileName(other)] as const;
          const rivals = { own: one.publication, archived: other.publication, places };
          return sentOf(rivals, landed, nowSec) === 'own' ? one : other;
        };
        const possible =
          landed?.isAgreed === true ? archived.filter((one) => isLandedAs(one.publication, landed)) : archived;
        const best = possible.length === 0 ? archived[0]! : possible.reduce(chosen);
        if (own !== null) {
          const rivals = { own, archived: best.publication, places: ['the database', fileName(best)] as const };
          if (sentOf(rivals, landed, nowSec) === 'archived') choice.superseded.push(best.publication);
        } else if (landed !== null && possible.length === 0) {
          for (const one of archived) checkHash(one, landed);
          choice.disproven.push(...archived);
        } else {
          if (landed !== null) checkLanded(best, landed);
          choice.missing.push(best.publication);
        }
      }
      choice.missing.push(...choice.superseded);
      return choice;
    },
  };
}

function unproven({ publication, file }: InFile, landed: LandedCurve): ArchiveError {
  const { seq, market, wordsHash: archived } = publication;
  return new ArchiveError(
    'ARCHIVE_UNPROVEN',
    `curve ${seq} of market ${market} has words ${landed.wordsHash} on the chain and ${archived} in file ${file} of the archive`,
  );
}

/** Throws ArchiveError for a publication with other words than a post that any endpoint names, whether most of them agree on it or not. */
function checkLanded(one: InFile, landed: LandedCurve): void {
  if (landed.wordsHash !== null && landed.baseSeq === null && landed.wordsHash !== one.publication.wordsHash)
    throw unproven(one, landed);
}

/** Throws ArchiveError where a publication's hash is not that of its words: no poster prepared that, whatever landed. */
function checkHash(one: InFile, landed: LandedCurve): void {
  const { askWords, bidWords, wordsHash: recorded } = one.publication;
  if (wordsHash(askWords, bidWords) !== recorded) throw unproven(one, landed);
}
