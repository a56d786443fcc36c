/** What a fill of five makers and the book behind its curve take of the database, with the indexes of their rows. */
import { tableBytes } from '../../ledger/db/storage.js';
import type { Row } from '../gateway/measure.js';
import type { Database } from './databases.js';
import { createFeed } from './feed.js';

const LEGS = 5;
/** Each scan hits a curve of its own, so that each stores a book. */
const BOOK_ORDERS = 20;
const BOOKS = { others: BOOK_ORDERS - LEGS, generationsPerCurve: 1 };
const FILLS = 3_000;
/** Fills before the measurement, after which pages that are not full make little difference. */
const FIRST_FILLS = 400;
const MOST_BYTES = 4_000;
const MOST_BOOK_BYTES = 600;

/** Tables that a fill adds rows to. Those of sums and balances have as many rows as there are accounts, candles and hours, and are written over. */
export const OF_FILLS = ['fills', 'fill_legs', 'order_fills', 'market_progress', 'entries', 'balance_changes'];
/** Tables with the books behind curves that fills hit. */
export const OF_BOOKS = ['snapshots'];
/** Tables that a scan adds rows to, with a fill or without. */
const OF_SCANS = ['generations', 'blocks'];

interface StorageBytes {
  fills: number;
  scans: number;
  books: number;
}

/** Bytes for each fill when scans have four of them, and when they have one; on PostgreSQL after VACUUM. */
export async function measureStorage(database: Database): Promise<Row[]> {
  const rows: Row[] = [];
  for (const perScan of [4, 1]) {
    const bytes = await bytesPerFill(database, perScan);
    const name = `${database.name}, ${LEGS} legs, ${perScan} per scan`;
    rows.push(
      { goal: '', what: `${name}: a fill`, value: bytes.fills, unit: 'B', bound: { atMost: MOST_BYTES } },
      { goal: '', what: `${name}: its part of a scan`, value: bytes.scans, unit: 'B', bound: null },
      {
        goal: '',
        what: `${name}: the book of ${BOOK_ORDERS} orders behind a curve that was hit`,
        value: bytes.books,
        unit: 'B',
        bound: { atMost: MOST_BOOK_BYTES },
      },
    );
  }
  return rows;
}

async function bytesPerFill(database: Database, perScan: number): Promise<StorageBytes> {
  const { db, drop } = await database.create();
  const feed = await createFeed(db, LEGS, BOOKS);
  const bytesOf = async (): Promise<StorageBytes> => {
    if (db.kind === 'pg') await db.knex.raw('vacuum');
    const bytes = await tableBytes(db);
    const sum = (tables: readonly string[]): number => tables.reduce((all, one) => all + (bytes.get(one) ?? 0), 0);
    return { fills: sum(OF_FILLS), scans: sum(OF_SCANS), books: sum(OF_BOOKS) };
  };
  try {
    await feed.run(FIRST_FILLS / perScan, perScan);
    const before = await bytesOf();
    await feed.run(FILLS / perScan, perScan);
    const after = await bytesOf();
    const added = (of: keyof StorageBytes): number => (after[of] - before[of]) / FILLS;
    return { fills: added('fills'), scans: added('scans'), books: added('books') * perScan };
  } finally {
    await feed.close();
    await drop();
  }
}
