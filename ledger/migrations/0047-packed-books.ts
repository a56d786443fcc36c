import { packBook, unpackBook } from '../chain/packed-book.js';
import { sendForRows } from '../db/dialects.js';
import type { Migration } from './tables.js';

const PAGE = 200;

interface Row {
  market: number;
  seq: number;
  payload: string;
}

/** The books behind curves that fills hit are packed, a page at a time. */
export const packedBooks: Migration = {
  name: '0047-packed-books',
  async up(db) {
    const next =
      'select market, seq, payload from snapshots where market > ? or (market = ? and seq > ?) order by market, seq limit ?';
    for (let at: Pick<Row, 'market' | 'seq'> = { market: -1, seq: 0 }; ;) {
      const rows = await sendForRows<Row>(db, next, [at.market, at.market, at.seq, PAGE]);
      for (const { market, seq, payload } of rows) {
        await db('snapshots')
          .where({ market, seq })
          .update({ payload: packBook(unpackBook(payload)) });
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      at = last;
    }
  },
  async down() {
    throw new Error('The logs are append-only; restore a backup or use another database');
  },
};
