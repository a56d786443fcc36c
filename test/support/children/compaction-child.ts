/**
 * A process that compacts the order log in steps of a few rows, a line per step, until nothing is left. It takes the next step once it was
 * sent a line. Arguments: database URL, schema or "-", order row and generation to compact to.
 */
import { createInterface } from 'node:readline';
import { openDb } from '../../../ledger/db/db.js';
import { compactStep } from '../../../ledger/orders/compaction.js';
import { acquireWriter } from '../../../ledger/db/writers.js';

const [url = '', schema = '-', orderSeq = '0', generation = '0'] = process.argv.slice(2);
const db = await openDb(url, schema === '-' ? {} : { schema });
const writer = await acquireWriter(db, 'order', { pollMs: 20 });
const bounds = {
  orderSeq: Number.parseInt(orderSeq, 10),
  generation: Number.parseInt(generation, 10),
  beforeMs: Number.MAX_SAFE_INTEGER,
};
const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
for (;;) {
  const step = await writer.tx((tx) => compactStep(tx, bounds, { effects: 3, generations: 1, closedOrders: 2_000 }));
  if (step.orderRows === 0 && step.generations === 0) break;
  console.log('step');
  await told.next();
}
process.stdin.destroy();
await writer.release();
await db.close();
console.log('done');
