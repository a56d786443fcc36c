/** An outbox of posts on a chain that mines when it is told to, for tests that divide it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeManifest } from '../../../deploy/manifest.js';
import { migrate } from '../../../ledger/db/db.js';
import type { Stored } from '../../../ledger/db/tables.js';
import { findCandidate } from '../../../ledger/transactions/outbox-partitions.js';
import type { Db } from '../../../ledger/types.js';
import { forEachDatabase, locationOf, type OpenTestDb } from '../db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../keeper-stack.js';
import { runCurvebook, type Ran } from '../console/terminal.js';

export const DAY_MS = 86_400_000;
/** Blocks that a reorganisation may take back. */
const REORG_BLOCKS = 64;

/** What each test has: a new database whose tables may be divided, keepers on it, and a folder of its own. */
interface PartitionsSuite {
  readonly chain: ManualChain;
  readonly stack: KeeperStack;
  readonly db: Db;
  readonly folder: string;
  /** The program on that database. */
  run(...args: string[]): Promise<Ran>;
  /** Another curve, which lands. */
  post(): Promise<void>;
  /** So many of them, their receipts read; the rows of the outbox. */
  posts(count: number): Promise<Stored<'outbox'>[]>;
  /** Blocks until nothing of what was posted can be taken back. */
  mineUntilFinal(): Promise<void>;
  /** Everything that was signed so far, as if it had been four days ago. */
  age(): Promise<number>;
  stored(table?: string): Promise<Stored<'outbox'>[]>;
  /** The first partition, which may be detached. */
  candidate(): ReturnType<typeof findCandidate>;
}

/** Declares tests for each database; those of SQLite only learn that it has no partitions. */
export function forEachOutbox(declare: (name: string, suite: PartitionsSuite) => void): void {
  forEachDatabase((name, _open, openBare) => describeOutbox(name, openBare, (suite) => declare(name, suite)));
}

/** The same for PostgreSQL alone: without a server `npm test` leaves files that call it out. */
export function forPostgresOutbox(declare: (suite: PartitionsSuite) => void): void {
  forEachDatabase((name, _open, openBare) => {
    if (name === 'PostgreSQL') describeOutbox(name, openBare, declare);
  });
}

function describeOutbox(name: string, openBare: OpenTestDb, declare: (suite: PartitionsSuite) => void): void {
  describe(`partitions of the outbox, ${name}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    let db: Db;
    let folder: string;
    let places = 0;

    before(async () => {
      chain = await startManualChain();
    });
    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      // Its tables are divided, so that no other test may get them.
      db = await openBare();
      await migrate(db);
      stack = await startKeepers(db, chain);
      folder = mkdtempSync(join(tmpdir(), 'curvebook-partitions-'));
      writeManifest(join(folder, 'manifest.json'), chain.manifest);
      writeFileSync(join(folder, 'settings'), `OPERATOR_ADDRESS=${chain.address('owner')}\n`);
      await chain.mine();
      await stack.watcher.scan();
    });
    afterEach(async () => {
      await stack.stop();
      rmSync(folder, { recursive: true });
    });

    const suite: PartitionsSuite = {
      get chain() {
        return chain;
      },
      get stack() {
        return stack;
      },
      get db() {
        return db;
      },
      get folder() {
        return folder;
      },
      async run(...args) {
        const { url, schema } = locationOf(db);
        const database = schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
        const manifest = join(folder, 'manifest.json');
        const common = ['--manifest', manifest, '--database', database, '--env', join(folder, 'settings')];
        return runCurvebook([...args, ...common]);
      },
      async post() {
        places += 1;
        await stack.order(chain.address('maker1'), [
          { side: 'ask', priceTicks: 300_000n + BigInt(places), sizeLots: 5_000n },
        ]);
        // One curve is cut of one generation.
        await chain.mine();
        await stack.watcher.scan();
        if ((await stack.poster.round()) === null) throw new Error('nothing was posted');
        await chain.mine();
        await stack.watcher.scan();
      },
      async posts(count) {
        for (let i = 0; i < count; i++) await suite.post();
        // The receipt of a post is read by the next round.
        await stack.poster.round();
        return suite.stored();
      },
      async mineUntilFinal() {
        for (let i = 0; i <= REORG_BLOCKS; i++) await chain.mine();
        await stack.watcher.scan();
        await stack.poster.round();
      },
      age: () => db.knex('outbox').decrement('sent_ms', 4 * DAY_MS),
      stored: (table = 'outbox') => db.knex(table).orderBy(['signer', 'nonce', 'hash']).select<Stored<'outbox'>[]>(),
      async candidate() {
        const head = await chain.provider.getBlockNumber();
        return findCandidate(db, 1, { nowMs: Date.now(), finalBlock: head - REORG_BLOCKS });
      },
    };
    declare(suite);
  });
}
