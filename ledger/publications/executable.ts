import { executablePublication, type ExecutablePublication } from '../../core/exposure.js';
import type { Market, MarketSnapshot } from '../../core/types.js';
import { readFillsAfter } from '../chain/past-fills.js';
import { executablePublications } from './publication-log.js';
import type { SnapshotStore } from '../orders/snapshots.js';
import type { GenerationRow, Queryable } from '../types.js';

/**
 * Publications of a market that takers may still execute as of a scanned block, each less what its fills took, lowest seq first. Call it
 * within `readTx` together with the reading of `head`.
 */
export async function readExecutable(
  q: Queryable,
  snapshots: SnapshotStore,
  market: Market,
  head: Pick<GenerationRow, 'blockTimestampMs'>,
): Promise<ExecutablePublication[]> {
  const executable = await executablePublications(q, { market: market.index, atSec: head.blockTimestampMs / 1_000 });
  const books: { seq: number; snapshot: MarketSnapshot }[] = [];
  for (const publication of executable) {
    books.push({ seq: publication.seq, snapshot: await snapshots.get(q, publication) });
  }
  const earliest = books.reduce((least, { snapshot }) => Math.min(least, snapshot.fillSeq), Number.MAX_SAFE_INTEGER);
  const fills = books.length === 0 ? [] : await readFillsAfter(q, market.index, earliest);
  return books.map(({ seq, snapshot }) =>
    executablePublication(
      market,
      seq,
      snapshot,
      fills.filter((fill) => fill.fillSeq > snapshot.fillSeq).flatMap((fill) => fill.orderFills),
    ),
  );
}
