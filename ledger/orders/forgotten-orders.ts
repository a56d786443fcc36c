/** Orders that went from the compacted book as closed ones without a fill, and that have one after all: their blocks were read again. */
import { snapshotSide } from '../../core/snapshot.js';
import type { OpenOrder, Side } from '../../core/types.js';
import { readSnapshot } from '../chain/snapshots.js';
import { chunks } from '../db/columns.js';
import type { Queryable } from '../types.js';

const SIDES: readonly Side[] = ['ask', 'bid'];

interface Hit {
  market: number;
  seq: number;
}

/**
 * These orders as the books behind the curves of their fills have them, with nothing filled; of each the largest size in any of the books, so
 * that no fill exceeds it. One that no such book has is left out. When they were placed is not known: `placedMs` is 0.
 */
export async function readForgottenOrders(q: Queryable, oids: readonly number[]): Promise<OpenOrder[]> {
  const curves = new Map<string, Hit>();
  for (const part of chunks(oids)) {
    const hits = await q('order_fills as part')
      .join('fills as fill', (on) => {
        on.on('fill.market', 'part.market').on('fill.fill_seq', 'part.fill_seq');
      })
      .whereIn('part.oid', part)
      .distinct<Hit[]>('fill.market as market', 'fill.curve_seq as seq');
    for (const hit of hits) curves.set(`${hit.market}:${hit.seq}`, hit);
  }
  const wanted = new Set(oids);
  const found = new Map<number, OpenOrder>();
  for (const { market, seq } of curves.values()) {
    const book = await readSnapshot(q, market, seq);
    for (const side of book === null ? [] : SIDES) {
      for (const { oid, maker, priceTicks, sizeLots, cloid = null } of snapshotSide(book!, side)) {
        if (!wanted.has(oid) || (found.get(oid)?.sizeLots ?? 0n) >= sizeLots) continue;
        const terms = { oid, maker, market, side, priceTicks, sizeLots, cloid };
        found.set(oid, { ...terms, filledUnits: 0n, tif: 'Gtc', placedMs: 0 });
      }
    }
  }
  return [...found.values()];
}
