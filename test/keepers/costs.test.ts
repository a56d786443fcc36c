/** The gas meter: what it does not count twice, late, or on the wrong day. */
import { expect } from 'chai';
import { Transaction } from 'ethers';
import { pino } from 'pino';
import { createCosts, type Costs } from '../../keepers/chain/costs.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { toQuantity, type Rpc } from '../../keepers/chain/rpc.js';
import type { Address, Hex } from '../../core/types.js';
import { migrate } from '../../ledger/db/db.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { migrations } from '../../ledger/migrations/index.js';
import { COST_TABLES, UNKNOWN_HASH, readCosts, type CostRole } from '../../ledger/transactions/costs.js';
import { finishOutbox, insertOutbox, reopenOutbox } from '../../ledger/transactions/outbox.js';
import type { Db, Writer } from '../../ledger/types.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
import { forEachDatabase } from '../support/db.js';
import { OPERATOR, blockOf, generationOf } from '../support/generations.js';

const SIGNER: Address = `0x${'5e'.repeat(20)}`;
const FEE_WEI = 21_000n * 10n ** 9n;
/** As much gas as it takes at twice the price that it pays in the end. */
const RAW = Transaction.from({ type: 2, chainId: 1, gasLimit: 21_000n, maxFeePerGas: 2n * 10n ** 9n, to: SIGNER })
  .unsignedSerialized as Hex;
const KEYS = { poster: 'post:', settler: 'settle:', executor: 'order:' } as const satisfies Record<CostRole, string>;

forEachDatabase((name, open, openBare) => {
  describe(`costs of transactions, ${name}`, () => {
    let db: Db;
    let nowMs: number;
    /** Transactions of which the node has a receipt. */
    let known: Set<Hex>;
    let writer: Writer | null;
    /** Of transactions that burn otherwise than most. */
    let gasUsed: Map<Hex, bigint>;

    beforeEach(async () => {
      db = await open();
      nowMs = 1_800_000_000_000;
      known = new Set();
      gasUsed = new Map();
      writer = null;
    });

    const hashOf = (nonce: number, replacement = 0): Hex => {
      const digits = (nonce * 1_000 + replacement).toString(16);
      return `0x${digits.padStart(64, '0')}`;
    };

    const rpc: Rpc = {
      name: 'fake',
      call: () => Promise.reject(new Error('not called')),
      batch: (requests) =>
        Promise.resolve(
          requests.map(({ params }) => {
            const hash = params[0] as Hex;
            if (!known.has(hash)) return null;
            const fields = { transactionHash: hash, status: '0x1', blockNumber: '0x7' };
            return {
              ...fields,
              gasUsed: toQuantity(gasUsed.get(hash) ?? 21_000n),
              effectiveGasPrice: toQuantity(10n ** 9n),
            };
          }),
        ),
    };

    async function start(role: CostRole, from: Rpc = rpc): Promise<Costs> {
      writer ??= await acquireWriter(
        db,
        role === 'poster' ? 'publication' : role === 'settler' ? 'settlement' : 'swap',
      );
      const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
      return createCosts({ ...clock, role, db, writer, rpc: from, signer: SIGNER, logger: pino({ level: 'silent' }) });
    }

    /** Transactions that the chain has used the nonces of, as their keeper stored them. */
    async function sent(role: CostRole, range: { from: number; count: number }, replacements = 0): Promise<void> {
      const end = range.from + range.count;
      await db.knex.transaction(async (tx) => {
        for (let nonce = range.from; nonce < end; nonce++) {
          for (let i = 0; i <= replacements; i++) {
            const row = { txKey: `${KEYS[role]}${nonce}`, signer: SIGNER, nonce, to: SIGNER, raw: RAW };
            await insertOutbox(tx, {
              ...row,
              hash: hashOf(nonce, i),
              sentMs: nowMs + i,
              validUntilSec: null,
              maxFeeWei: null,
            });
          }
        }
        await finishOutbox(tx, SIGNER, end);
      });
    }

    /** The ledger's newest block; the first one that is booked is 70. */
    async function bookBlock(number: number): Promise<void> {
      const block = blockOf(number);
      const range = { fromBlock: number, toBlock: number, blocks: [block], observedHead: number };
      const write = generationOf(number - 69, range);
      await db.knex.transaction((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
    }

    const stored = (role: CostRole) => readCosts(db.knex, role, { signer: SIGNER, sinceMs: 0 });

    for (const role of ['settler', 'executor'] as const) {
      it(`begin with what the ${role} sends after an upgrade, not with what it had sent in the years before`, async () => {
        db = await openBare();
        await migrateBefore('0029');
        // As that version had them.
        const row = { signer: SIGNER, to_address: SIGNER, raw: '0x' as const, sent_ms: 1, valid_until_sec: null };
        for (let nonce = 0; nonce < 130; nonce++) {
          const finished = nonce < 129 ? 1 : 0;
          await db
            .knex('outbox')
            .insert({ ...row, tx_key: `${KEYS[role]}${nonce}`, nonce, hash: hashOf(nonce), finished });
          known.add(hashOf(nonce));
        }
        await migrate(db);
        const costs = await start(role);
        expect(await costs.collect()).to.deep.equal([]);
        expect(await db.knex('gas_days').select()).to.deep.equal([]);
        await sent(role, { from: 130, count: 1 });
        known.add(hashOf(130));
        expect((await costs.collect()).map(({ nonce }) => nonce)).to.deep.equal([129, 130]);
        expect(costs.spentWei()).to.equal(2n * FEE_WEI);
        const [day, ...others] = (await db.knex('gas_days').select()) as { role: string; fee_wei: string }[];
        expect([day!.role, day!.fee_wei, others]).to.deep.equal([role, `${2n * FEE_WEI}`, []]);
        const other = role === 'settler' ? 'executor' : 'settler';
        expect(await db.knex(COST_TABLES[other]).select(), 'a signer is of one role').to.deep.equal([]);
      });
    }

    it('of transactions whose receipts are gone are given up a page at a time, and what follows is counted', async () => {
      await sent('settler', { from: 0, count: 101 });
      known.add(hashOf(100));
      const costs = await start('settler');
      let waits = 0;
      for (; (await stored('settler')).length < 101 && waits < 10; waits++) {
        while ((await costs.collect()).length > 0);
        nowMs += 120_000;
      }
      const found = await stored('settler');
      expect(found.map(({ nonce }) => nonce)).to.deep.equal(Array.from({ length: 101 }, (_, i) => i));
      expect(found.at(-1)!.feeWei).to.equal(FEE_WEI);
      expect(found.slice(0, -1).every(({ feeWei, succeeded }) => feeWei === 0n && !succeeded)).to.equal(true);
      expect(waits, 'times that the meter waited').to.be.at.most(4);
    });

    it('wait for the receipt of a transaction whose successors are known', async () => {
      await sent('settler', { from: 0, count: 3 });
      known.add(hashOf(0)).add(hashOf(2));
      const costs = await start('settler');
      expect((await costs.collect()).map(({ nonce }) => nonce)).to.deep.equal([0]);
      nowMs += 119_999;
      expect(await costs.collect()).to.deep.equal([]);
      known.add(hashOf(1));
      expect((await costs.collect()).map(({ nonce }) => nonce)).to.deep.equal([1, 2]);
      expect(costs.spentWei()).to.equal(3n * FEE_WEI);
    });

    it('are those of the replacement that was mined, also where a page ends among replacements', async () => {
      // Nine nonces of six rows: the page ends after two rows of the last one, which are not those that were mined.
      await sent('settler', { from: 0, count: 9 }, 5);
      known.add(hashOf(8, 5));
      const costs = await start('settler');
      expect(await costs.collect()).to.deep.equal([]);
      nowMs += 120_000;
      while ((await costs.collect()).length > 0);
      const found = await stored('settler');
      expect(found.map(({ nonce, feeWei }) => [nonce, feeWei])).to.deep.equal(
        Array.from({ length: 9 }, (_, i) => [i, i === 8 ? FEE_WEI : 0n]),
      );
    });

    it('are those that others show when the first endpoint hides receipts, within seconds', async () => {
      await sent('poster', { from: 0, count: 2 });
      known.add(hashOf(0)).add(hashOf(1));
      const asked: string[] = [];
      const hides: Rpc = {
        ...rpc,
        name: 'first',
        batch: (requests) => (asked.push('first'), Promise.resolve(requests.map(() => null))),
      };
      const connect = (url: string): Rpc =>
        url === 'first' ? hides : { ...rpc, name: url, batch: (all) => (asked.push(url), rpc.batch(all)) };
      const pool = createRpcPool(['first', 'second', 'third'], {
        nowMs: () => nowMs,
        logger: pino({ level: 'silent' }),
        connect,
      });
      const costs = await start('poster', pool);
      expect(await costs.collect()).to.deep.equal([]);
      // It may only be a block behind.
      nowMs += 4_999;
      expect(await costs.collect()).to.deep.equal([]);
      expect(asked).to.deep.equal(['first', 'first']);
      nowMs += 1;
      expect((await costs.collect()).map(({ nonce, feeWei }) => [nonce, feeWei])).to.deep.equal([
        [0, FEE_WEI],
        [1, FEE_WEI],
      ]);
      // What nobody has is not asked of everybody at each look.
      await sent('poster', { from: 2, count: 1 });
      asked.length = 0;
      for (let looks = 0; looks < 60; looks += 1) {
        await costs.collect();
        nowMs += 1_000;
      }
      expect(asked.filter((name) => name === 'third').length).to.be.within(1, 4);
    });

    for (const role of ['poster', 'settler'] as const) {
      it(`of a ${role} that a reorganisation changed are corrected, at the time at which they were paid`, async () => {
        await migrate(db);
        await sent(role, { from: 0, count: 3 });
        for (const nonce of [0, 1, 2]) known.add(hashOf(nonce));
        const costs = await start(role);
        await costs.collect();
        const paidMs = nowMs;
        expect(costs.spentWei()).to.equal(3n * FEE_WEI);
        // The second one is mined elsewhere, where it burns more; its blocks become final only now.
        gasUsed.set(hashOf(1), 42_000n);
        await bookBlock(7 + 63);
        nowMs += 60_000;
        await costs.repair();
        expect(costs.spentWei()).to.equal(3n * FEE_WEI);
        await bookBlock(7 + 64);
        await costs.repair();
        expect(costs.spentWei(), 'not asked again so soon').to.equal(3n * FEE_WEI);
        nowMs += 60_000;
        await costs.repair();
        expect(costs.spentWei()).to.equal(4n * FEE_WEI);
        const stored = await readCosts(db.knex, role, { signer: SIGNER, sinceMs: 0 });
        expect(stored.map(({ feeWei, seenMs }) => [feeWei, seenMs])).to.deep.equal([
          [FEE_WEI, paidMs],
          [2n * FEE_WEI, paidMs],
          [FEE_WEI, paidMs],
        ]);
        const days = (await db.knex('gas_days').where({ role })) as { fee_wei: string }[];
        expect(days.reduce((sum, day) => sum + BigInt(day.fee_wei), 0n)).to.equal(4n * FEE_WEI);
        // The last one is dropped, and sent again by the keeper: it costs nothing until it is mined.
        await writer!.tx((tx) => reopenOutbox(tx, SIGNER, 2));
        known.delete(hashOf(2));
        await costs.repair();
        expect(costs.spentWei()).to.equal(3n * FEE_WEI);
        known.add(hashOf(2));
        await writer!.tx((tx) => finishOutbox(tx, SIGNER, 3));
        await costs.repair();
        expect(costs.spentWei()).to.equal(4n * FEE_WEI);
      });

      it(`of a ${role} whose receipts were hidden are booked when they come to light, and count as what was bid until then`, async () => {
        await migrate(db);
        await sent(role, { from: 0, count: 3 });
        known.add(hashOf(1));
        const costs = await start(role);
        await costs.collect();
        nowMs += 120_000;
        while ((await costs.collect()).length > 0);
        expect((await stored(role)).map(({ feeWei }) => feeWei)).to.deep.equal([0n, FEE_WEI, 0n]);
        expect(costs.spentWei()).to.equal(5n * FEE_WEI);
        expect((await start(role)).spentWei(), 'after a restart, too').to.equal(5n * FEE_WEI);
        known.add(hashOf(0));
        await costs.findUnknown();
        nowMs += 60_000;
        await costs.findUnknown();
        expect((await stored(role)).map(({ feeWei, hash }) => [feeWei, hash])).to.deep.equal([
          [FEE_WEI, hashOf(0)],
          [FEE_WEI, hashOf(1)],
          [0n, UNKNOWN_HASH],
        ]);
        expect(costs.spentWei()).to.equal(4n * FEE_WEI);
        const days = (await db.knex('gas_days').where({ role })) as { fee_wei: string }[];
        expect(days.reduce((sum, day) => sum + BigInt(day.fee_wei), 0n)).to.equal(2n * FEE_WEI);
        // An hour later what was sent then is no part of the last hour, however late it comes to light.
        nowMs += 3_600_000;
        known.add(hashOf(2));
        await costs.findUnknown();
        expect((await stored(role)).map(({ feeWei }) => feeWei)).to.deep.equal([FEE_WEI, FEE_WEI, FEE_WEI]);
        expect(costs.spentWei()).to.equal(0n);
        expect((await start(role)).spentWei(), 'nor after a restart').to.equal(0n);
      });
    }

    /** The tables as they were before a migration. */
    async function migrateBefore(number: string): Promise<void> {
      const earlier = migrations.filter((one) => one.name < number);
      await db.knex.migrate.latest({
        migrationSource: {
          getMigrations: () => Promise.resolve(earlier.map((one) => one.name)),
          getMigrationName: (one: string) => one,
          getMigration: (one: string) => Promise.resolve(earlier.find((known) => known.name === one)!),
        },
      });
    }
  });
});
