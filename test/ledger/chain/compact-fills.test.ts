import { expect } from 'chai';
import { createFeed } from '../../../bench/ledger/feed.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { readEntries } from '../../../ledger/chain/fill-postings.js';
import { fillRef } from '../../../ledger/chain/invariants.js';
import { commitGeneration } from '../../../ledger/chain/ledger-log.js';
import { reverseGenerations } from '../../../ledger/chain/reversals.js';
import { migrate } from '../../../ledger/db/db.js';
import { tableBytes } from '../../../ledger/db/storage.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { readFillRefs } from '../../../ledger/views/audit.js';
import { fillWithLegs } from '../../../ledger/views/reads.js';
import type { Db, GenerationWrite, LedgerEntry } from '../../../ledger/types.js';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { OPERATOR, blockOf, fillOf, generationOf, withFills } from '../../support/generations.js';
import { BUY, ETHER, MARKETS, SELL, alice, codeOf, dump, opening, trading } from '../../support/ledger-log.js';
import { WETH_USDC } from '../../support/markets.js';
import { storeAsOlder } from '../../support/older-fills.js';

/**
 * What the size is counted over: the tables that a fill or its block adds rows to, with their indexes. Not counted are the projections, whose rows
 * are as many as there are makers, takers, candles and hours, and are written over: PostgreSQL keeps their old versions until VACUUM. Nor are publications,
 * of which each block has one, with a fill or without.
 */
const GROWING = ['fills', 'fill_legs', 'order_fills', 'entries', 'market_progress', 'balance_changes'];
/** Rows of a scan, which a block without a fill has, too: counted where several fills share them. */
const SCANS = ['generations', 'blocks'];

/** PostgreSQL's; SQLite's are half of it. */
const PAGE_BYTES = 8_192;

const EVER = { from: 0, to: Number.MAX_SAFE_INTEGER };

const told = ({ ref, kind, account, token, amountUnits }: LedgerEntry) => [ref, kind, account, token, `${amountUnits}`];

/** All entries as they are read, in the order of refs. */
async function entriesOf(db: Db): Promise<unknown[]> {
  const rows = await readEntries(db.knex, EVER);
  return rows.map((row) => [row.ref, row.kind, row.account, row.token, row.amount_units]);
}

const inOrder = (entries: readonly LedgerEntry[]): unknown[] => {
  const refs = [...new Set(entries.map(({ ref }) => ref))].sort((a, b) => (a < b ? -1 : 1));
  return refs.flatMap((of) => entries.filter(({ ref }) => ref === of).map(told));
};

async function rowsOf(db: Db, table: 'fill_legs' | 'entries', where: object = {}): Promise<number> {
  return ((await db.knex(table).where(where).select()) as object[]).length;
}

const at = (n: number) => {
  const block = blockOf(100 + n);
  return { number: block.number, hash: block.hash, timestampMs: block.timestampSec * 1_000 };
};

describe('fills without rows of their postings and legs', () => {
  forEachDatabase((name, open, openBare) => {
    async function ledgerOf(opened: OpenTestDb = open) {
      const db = await opened();
      const writer = await acquireWriter(db, 'ledger');
      return {
        db,
        commit: (write: GenerationWrite) => writer.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR })),
        reverse: (headGeneration: number, keptGeneration: number) =>
          writer.tx((tx) =>
            reverseGenerations(
              tx,
              { headGeneration, keptGeneration, block: at(keptGeneration), depth: 1 },
              { operatorSeq: headGeneration, timeMs: 5 },
            ),
          ),
      };
    }

    it('are read as they were committed, and their entries add up to the balances', async () => {
      const { db, commit } = await ledgerOf();
      await commit(opening());
      const write = trading(2);
      await commit(write);
      expect([await rowsOf(db, 'fill_legs'), await rowsOf(db, 'entries', { generation: 2 })]).to.deep.equal([0, 0]);
      expect(await entriesOf(db)).to.deep.equal(inOrder([...opening().entries, ...write.entries]));
      for (const one of write.fills) {
        const { generation, ...read } = (await fillWithLegs(db.knex, 0, one.fill.fillSeq))!;
        expect(read).to.deep.equal({ fill: one.fill, decomposition: one.decomposition, orderFills: one.orderFills });
        expect(generation).to.equal(2);
      }
      expect((await readFillRefs(db.knex, { from: 2, to: 2 })).sort()).to.deep.equal(
        write.fills.map(({ fill }) => fillRef(WETH_USDC, fill.fillSeq)),
      );
      const sums = new Map<string, bigint>();
      for (const { account, token, amount_units: units } of await readEntries(db.knex, EVER))
        sums.set(`${account}:${token}`, (sums.get(`${account}:${token}`) ?? 0n) + BigInt(units));
      const balances = await readBalances(db.knex);
      expect(balances.length).to.equal(sums.size);
      for (const row of balances) expect(row.balanceUnits).to.equal(sums.get(`${row.account}:${row.token}`));
    });

    it('have rows where these are not what follows from the fill', async () => {
      const { db, commit } = await ledgerOf();
      await commit(opening());
      // A leg that was paid a unit less than its price says, and a posting in another order.
      const paidLess = fillOf(2, WETH_USDC, 1, 'ask', BUY);
      paidLess.decomposition.legs[0]!.quoteUnits -= 1n;
      paidLess.fill.quoteUnits -= 1n;
      const other = withFills(MARKETS, [fillOf(2, WETH_USDC, 2, 'bid', SELL)]);
      const first = withFills(MARKETS, [paidLess]);
      const write = generationOf(2, {
        fills: [...first.fills, ...other.fills],
        entries: [...first.entries, ...[...other.entries].reverse()],
      });
      await commit(write);
      expect(await rowsOf(db, 'fill_legs')).to.equal(BUY.length + SELL.length);
      expect(await rowsOf(db, 'entries', { generation: 2 })).to.equal(write.entries.length);
      expect(await entriesOf(db)).to.deep.equal(inOrder([...opening().entries, ...write.entries]));
      for (const one of write.fills)
        expect((await fillWithLegs(db.knex, 0, one.fill.fillSeq))!.decomposition).to.deep.equal(one.decomposition);
    });

    it('leave their entries behind when they are reversed, and may be booked again, once', async () => {
      const { db, commit, reverse } = await ledgerOf();
      await commit(opening());
      const before = await readBalances(db.knex);
      const units = (rows: typeof before) =>
        new Map(
          rows.filter((row) => row.balanceUnits !== 0n).map((row) => [`${row.account} ${row.token}`, row.balanceUnits]),
        );
      await commit(trading(2));
      const traded = await readBalances(db.knex);
      await reverse(2, 1);
      expect(units(await readBalances(db.knex))).to.deep.equal(units(before));
      const { entries } = trading(2);
      expect(await rowsOf(db, 'entries', { generation: 2 })).to.equal(entries.length);
      expect(await rowsOf(db, 'entries', { generation: 3 })).to.equal(entries.length);
      const again = { ...generationOf(4, trading(2)), generation: 4, ...reread(2) };
      await commit(again);
      expect(units(await readBalances(db.knex))).to.deep.equal(units(traded));
      expect(await rowsOf(db, 'entries', { ref: `${fillRef(WETH_USDC, 1)}~2` })).to.be.greaterThan(0);
      await reverse(4, 1);
      expect(units(await readBalances(db.knex))).to.deep.equal(units(before));
      const sums = new Map<string, bigint>();
      for (const { token, account, amount_units } of await readEntries(db.knex, { from: 2, to: 5 }))
        sums.set(`${account} ${token}`, (sums.get(`${account} ${token}`) ?? 0n) + BigInt(amount_units));
      expect([...sums.values()].filter((sum) => sum !== 0n)).to.deep.equal([]);
    });

    it('are never booked twice', async () => {
      const { db, commit } = await ledgerOf();
      await commit(opening());
      await commit(trading(2));
      const stored = await dump(db);
      const { entries } = trading(2);
      expect(await codeOf(commit(generationOf(3, { entries })))).to.equal('ref_exists');
      expect(await codeOf(commit(generationOf(3, trading(3))))).to.equal('fill_gap');
      expect(await dump(db)).to.equal(stored);
    });

    it('go on behind the fills of an older database, and both are reversed exactly', async () => {
      const { db, commit, reverse } = await ledgerOf();
      await commit(opening());
      await commit(trading(2));
      await storeAsOlder(db);
      expect(await rowsOf(db, 'fill_legs')).to.equal(BUY.length + SELL.length);
      await commit(trading(3, 3));
      expect(await rowsOf(db, 'fill_legs')).to.equal(BUY.length + SELL.length);
      const all = [...opening().entries, ...trading(2).entries, ...trading(3, 3).entries];
      expect((await entriesOf(db)).sort()).to.deep.equal(inOrder(all).sort());
      const read = await fillWithLegs(db.knex, 0, 1);
      expect(read!.decomposition).to.deep.equal(trading(2).fills[0]!.decomposition);
      await reverse(3, 1);
      const units = (await readBalances(db.knex, { account: alice })).map((row) => row.balanceUnits);
      expect(units.sort()).to.deep.equal([100n * ETHER, 300_000_000_000n].sort());
    });

    it('are not reversed into a balance that is missing', async () => {
      const { db, commit, reverse } = await ledgerOf();
      await commit(opening());
      await commit(trading(2));
      await db.knex('balances').where({ account: alice, token: WETH_USDC.base.address }).delete();
      const stored = await dump(db);
      expect(await codeOf(reverse(2, 1))).to.equal('balance_missing');
      expect(await dump(db)).to.equal(stored);
    });

    it('are not read with parts that are of no leg', async () => {
      const { db, commit } = await ledgerOf();
      await commit(opening());
      await commit(trading(2));
      const last = BUY.length - 1;
      const at = { market: 0, fill_seq: 1, part_no: last };
      for (const [column, value] of [
        ['leg_no', 7],
        ['leg_no', 0],
      ] as const) {
        await db
          .knex('order_fills')
          .where(at)
          .update({ [column]: value });
        expect(await codeOf(fillWithLegs(db.knex, 0, 1)), `${column} ${value}`).to.equal('fill_parts');
        expect(await codeOf(readEntries(db.knex, EVER)), `${column} ${value}`).to.equal('fill_parts');
      }
      await db.knex('order_fills').where(at).update({ leg_no: last });
      await storeAsOlder(db);
      await db.knex('order_fills').where(at).update({ leg_no: 7 });
      expect(await codeOf(fillWithLegs(db.knex, 0, 1))).to.equal('fill_parts');
    });

    for (const perScan of [4, 1]) {
      it(`add at most 4 kB each, with five legs and ${perScan} per scan, and a book of twenty orders 600 bytes, to the tables that they add rows to`, async function () {
        this.timeout(120_000);
        // Whose files no other test has grown.
        const db = await openBare();
        await migrate(db);
        const feed = await createFeed(db, 5, { others: 15, generationsPerCurve: 1 });
        try {
          const counted = perScan === 1 ? GROWING : [...GROWING, ...SCANS];
          const sizeOf = async () => {
            const bytes = await tableBytes(db);
            const fills = counted.reduce((sum, table) => sum + (bytes.get(table) ?? 0), 0);
            return { fills, books: bytes.get('snapshots') ?? 0 };
          };
          await feed.run(200 / perScan, perScan);
          const before = await sizeOf();
          await feed.run(1_000 / perScan, perScan);
          const after = await sizeOf();
          expect((after.fills - before.fills) / 1_000, `bytes, ${name}`).to.be.within(1_000, 4_000);
          // Tables grow by whole pages, so that the last one may hold nearly nothing yet.
          const books = 1_000 / perScan;
          expect((after.books - before.books) / books, `bytes of a book, ${name}`).to.be.within(
            200,
            600 + PAGE_BYTES / books,
          );
        } finally {
          await feed.close();
        }
      });
    }
  });
});

/** The blocks of another generation. */
function reread(n: number): Pick<GenerationWrite, 'fromBlock' | 'toBlock' | 'blocks' | 'scannedMs' | 'observedHead'> {
  const { fromBlock, toBlock, blocks, scannedMs, observedHead } = generationOf(n);
  return { fromBlock, toBlock, blocks, scannedMs, observedHead };
}
