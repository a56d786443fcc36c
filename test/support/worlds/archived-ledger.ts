/** A ledger that trades and whose publications are in an archive, for tests that lose and restore it. */
import { expect } from 'chai';
import { readHalt } from '../../../ledger/chain/halts.js';
import { lastPublicationSeq } from '../../../ledger/publications/publication-log.js';
import type { Db } from '../../../ledger/types.js';
import { createSite, type Site } from '../archive.js';
import type { OpenTestDb } from '../db.js';
import { copyDb } from './copy-db.js';
import type { KeeperStack } from '../keeper-stack.js';

export const MID = 250_000n;
export const LOT = 10n ** 14n;

/** Within a `describe`: a site of its own with keepers for each test. */
export function archivedLedger(open: OpenTestDb) {
  let site: Site;
  let db: Db;
  let stack: KeeperStack;

  beforeEach(async () => {
    site = createSite();
    db = await open();
    stack = await site.start(db);
    await site.mine();
    await stack.watcher.scan();
    await site.fund();
    await site.mine();
    await stack.watcher.scan();
  });

  afterEach(async () => {
    await stack.stop();
    site.close();
  });

  /** Orders around the middle, one curve, and a fill of each side of it. */
  async function trade(on: KeeperStack, steps: number): Promise<void> {
    for (let i = 0; i < steps; i += 1) {
      const away = BigInt(10 + (i % 5));
      const maker = site.chain.address(i % 2 === 0 ? 'maker1' : 'maker2');
      await on.order(maker, [
        { side: 'ask', priceTicks: MID + away, sizeLots: 4_000n, cloid: `0x${i.toString(16).padStart(32, '0')}` },
        { side: 'bid', priceTicks: MID - away, sizeLots: 3_000n },
      ]);
      await on.poster.round();
      await site.mine();
      await site.swap(i % 3 !== 0, LOT * 700n + BigInt(i));
      await site.mine();
      await scan(on);
    }
  }

  async function scan(on: KeeperStack): Promise<void> {
    do await on.watcher.scan();
    while (on.watcher.status().nextBlock <= (await site.headBlock()) && on.watcher.status().halt === null);
  }

  async function backup(): Promise<Db> {
    const copy = await open();
    await copyDb(db, copy);
    return copy;
  }

  /** Goes on trading on the database, and holds everything against the chain. */
  async function goesOn(on: KeeperStack, restored: Db): Promise<void> {
    expect((await readHalt(restored.knex))?.message).to.equal(undefined);
    const before = await lastPublicationSeq(restored.knex, 0);
    const fills = (await site.verify(restored)).fills;
    await trade(on, 3);
    expect((await readHalt(restored.knex))?.message).to.equal(undefined);
    expect(await lastPublicationSeq(restored.knex, 0)).to.be.greaterThan(before);
    const report = await site.verify(restored);
    expect(report.fills).to.equal(fills + 3);
  }

  return {
    get site() {
      return site;
    },
    get db() {
      return db;
    },
    get stack() {
      return stack;
    },
    set stack(value) {
      stack = value;
    },
    trade,
    scan,
    backup,
    goesOn,
  };
}
