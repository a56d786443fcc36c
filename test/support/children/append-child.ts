/**
 * A process that appends rows to the order log, one transaction each, and gives the log up every few rows. Arguments: database URL, schema
 * or "-", digit of its maker, number of rows; "hold" instead of a number acquires and waits, "freeze" acquires and stops itself in the
 * middle of a transaction, "frozen" right after it; both print the result of their writes once they continue. It says "ready" and begins
 * when the row `go` is in the table `meta`, so that several of them begin together.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address } from '../../../core/types.js';
import { openDb } from '../../../ledger/db/db.js';
import { WriterLostError } from '../../../ledger/errors.js';
import { appendOrderRows, lastOrderSeq } from '../../../ledger/orders/order-log.js';
import type { Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';

const [url = '', schema = '-', digit = '1', count = '1'] = process.argv.slice(2);
const maker: Address = `0x${digit.repeat(40)}`;
const db = await openDb(url, schema === '-' ? {} : { schema });

async function append(writer: Writer, nonce: number): Promise<void> {
  await writer.tx(async (tx) => {
    const orderSeq = (await lastOrderSeq(tx)) + 1;
    // Long enough for another process to read the same row number, if it could.
    await sleep(2);
    await appendOrderRows(tx, [{ orderSeq, timeMs: 1, maker, signer: maker, nonce, kind: 'noop', effects: [] }]);
  });
}

async function begin(): Promise<void> {
  console.log('ready');
  while ((await db.knex('meta').where({ key: 'go' }).first('value')) === undefined) await sleep(5);
}

/** Stops this process with SIGSTOP until it gets SIGCONT. */
const freeze = (): void => void process.kill(process.pid, 'SIGSTOP');

async function outcomeOf(work: Promise<void>): Promise<string> {
  return work.then(
    () => 'written',
    (error: unknown) => (error as Error).name,
  );
}

if (count === 'freeze' || count === 'frozen') {
  const held = await acquireWriter(db, 'order', { pollMs: 20 });
  await append(held, 1);
  console.log('acquired');
  if (count === 'frozen') freeze();
  const first = await outcomeOf(
    held.tx(async (tx) => {
      const orderSeq = (await lastOrderSeq(tx)) + 1;
      await appendOrderRows(tx, [{ orderSeq, timeMs: 1, maker, signer: maker, nonce: 2, kind: 'noop', effects: [] }]);
      if (count === 'freeze') freeze();
    }),
  );
  console.log(`then ${first} ${await outcomeOf(append(held, 3))}`);
  process.exit(0);
}
if (count !== 'hold') await begin();
let writer = await acquireWriter(db, 'order', { pollMs: 20 });
console.log('acquired');
if (count === 'hold') await sleep(60_000);
const rows = Number.parseInt(count, 10);
for (let nonce = 1; nonce <= rows;) {
  try {
    await append(writer, nonce);
    if (nonce % 5 === 0) {
      await writer.release();
      // Longer than the others pause between two attempts, so that one of them has its turn now.
      await sleep(60);
    }
    nonce += 1;
  } catch (error) {
    if (!(error instanceof WriterLostError)) throw error;
    writer = await acquireWriter(db, 'order', { pollMs: 20 });
  }
}
await writer.release();
await db.close();
console.log('done');
