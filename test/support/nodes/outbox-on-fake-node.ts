/** An outbox over a node that a test makes answer, mine and forget. */
import { pino } from 'pino';
import type { Address, Hex } from '../../../core/types.js';
import { createOutbox, type OutboxDeps, type TxRequest } from '../../../keepers/chain/outbox.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import type { Db } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { createFakeNode, type FakeNode } from './fake-node.js';
import type { OpenTestDb } from '../db.js';

export const KEY: Hex = `0x${'11'.repeat(32)}`;
export const BOOK: Address = `0x${'bb'.repeat(20)}`;
export const HEAD_SEC = 1_000;

export function request(txKey: string, validUntilSec: number | null = null): TxRequest {
  return { txKey, to: BOOK, data: `0x${Buffer.from(txKey).toString('hex')}`, gasLimit: 100_000n, validUntilSec };
}

/** Within a `describe`: a node and a database of its own for each test. */
export function outboxOnFakeNode(open: OpenTestDb) {
  let db: Db;
  let node: FakeNode;
  let nowMs: number;

  beforeEach(async () => {
    db = await open();
    node = createFakeNode();
    nowMs = 1_000_000;
  });

  /** An outbox as a process would make it; a second call is a restart. */
  async function start(change: Partial<OutboxDeps> = {}) {
    return createOutbox({
      db,
      writer: change.writer ?? (await acquireWriter(db, 'publication')),
      rpc: node.rpc,
      chainId: 8453,
      privateKey: KEY,
      nowMs: () => nowMs,
      logger: pino({ level: 'silent' }),
      ...change,
    });
  }

  const dataOf = (tx: { data: string } | undefined) => Buffer.from((tx?.data ?? '0x').slice(2), 'hex').toString();
  const rows = () => listOutbox(db.knex, { limit: 100 });

  return {
    get db() {
      return db;
    },
    get node() {
      return node;
    },
    get nowMs() {
      return nowMs;
    },
    set nowMs(value) {
      nowMs = value;
    },
    start,
    dataOf,
    rows,
  };
}
