import { landedSeq, readPublications } from './publication-log.js';
import type { Publication, Queryable } from '../types.js';

/**
 * State of a publication, derived from the other logs; no keeper stores it. `prepared`: durable and not signed, or not yet; `sent`: signed,
 * may still land; `landed`: seen on-chain; `superseded`: a higher seq landed; `dead`: its deadline passed before it landed, or after it
 * did.
 */
type PublicationState = 'prepared' | 'sent' | 'landed' | 'superseded' | 'dead';

/** Facts of the other logs about a publication. */
interface PublicationFacts {
  signed: boolean;
  /** Highest seq of the market that landed in a scanned block. */
  landedSeq: number;
  /** Time of the last scanned block. */
  headSec: number;
}

/** The state of one publication. Dead and superseded curves can't be executed; all others can, now or once they land. */
export function publicationState(
  { seq, deadlineSec }: Pick<Publication, 'seq' | 'deadlineSec'>,
  facts: PublicationFacts,
): PublicationState {
  if (seq < facts.landedSeq) return 'superseded';
  if (deadlineSec <= facts.headSec) return 'dead';
  if (seq === facts.landedSeq) return 'landed';
  return facts.signed ? 'sent' : 'prepared';
}

/** States of the publications of a market with a seq above `afterSeq`, lowest first, at most `limit` (1..10000). */
export async function readPublicationStates(
  q: Queryable,
  range: { market: number; afterSeq: number; limit: number; headSec: number },
): Promise<{ publication: Publication; state: PublicationState }[]> {
  const landed = await landedSeq(q, range.market);
  const publications = await readPublications(q, range);
  const keys = [...new Set(publications.map(({ txKey }) => txKey))];
  const rows = await q('outbox').whereIn('tx_key', keys).distinct<{ tx_key: string }[]>('tx_key');
  const signed = new Set(rows.map((row) => row.tx_key));
  return publications.map((publication) => ({
    publication,
    state: publicationState(publication, {
      signed: signed.has(publication.txKey),
      landedSeq: landed,
      headSec: range.headSec,
    }),
  }));
}
