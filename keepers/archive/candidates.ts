/** What the archive has under a number and the database has not: one publication, or several of which the chain decides. */
import { isSamePublication, sentOf, type Rivals } from '../../ledger/orders/restore.js';
import type { Publication } from '../../ledger/types.js';
import { curveKey, type ChainRecord } from './chain-record.js';

/** A publication of the archive, and the first file that has it. */
interface InFile {
  publication: Publication;
  file: number;
}

/** One number. Publications of the archive that equal each other are one, and none equals the database's own. */
interface Candidates {
  own: Publication | null;
  archived: InFile[];
}

/** What is chosen of all numbers: publications that the database lacks, and those that take the place of one of its own. */
export interface Choice {
  missing: Publication[];
  superseded: Publication[];
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

    /** Chooses one of each number. Throws RestoreConflictError where the chain does not decide between two. */
    choose(chain: ChainRecord): Choice {
      const choice: Choice = { missing: [], superseded: [] };
      for (const [key, { own, archived }] of byKey) {
        const landed = chain.landed.get(key) ?? null;
        const nowSec = chain.isAgreed ? chain.timestampSec : null;
        const later = (one: InFile, other: InFile): InFile => {
          const places = [fileName(one), fileName(other)] as const;
          const rivals = { own: one.publication, archived: other.publication, places };
          return sentOf(rivals, landed, nowSec) === 'own' ? one : other;
        };
        if (own === null) {
          choice.missing.push(archived.reduce(later).publication);
          continue;
        }
        for (const one of archived) {
          const places = ['the database', fileName(one)] as const;
          const sent = sentOf({ own, archived: one.publication, places }, landed, nowSec);
          if (sent === 'archived') choice.superseded.push(one.publication);
        }
      }
      choice.missing.push(...choice.superseded);
      return choice;
    },
  };
}
