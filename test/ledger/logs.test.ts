import { expect } from 'chai';
import type { Address, OrderLogRow } from '../../core/types.js';
import { WriterLostError, isUniqueViolation } from '../../ledger/errors.js';
import { insertHalt, readHalt } from '../../ledger/chain/ledger-log.js';
import { insertMarkets } from '../../ledger/chain/markets.js';
import {
  appendOperatorRow,
  followOperatorLog,
  readOperatorRows,
  readOperatorState,
} from '../../ledger/operator/operator-log.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../ledger/orders/order-log.js';
import { listings } from '../../ledger/migrations/0008-0014-columns.js';
import { migrations } from '../../ledger/migrations/index.js';
import type { Db, OperatorRow } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import { alice, bob, opened, errorOf } from '../support/databases/log-rows.js';

function orderRow(orderSeq: number, change: Partial<OrderLogRow> = {}): OrderLogRow {
  return {
    orderSeq,
    timeMs: 1_800_000_000_000 + orderSeq,
    maker: alice,
    signer: alice,
    nonce: 1_800_000_000_000 + orderSeq,
    kind: 'order',
    effects: [],
    ...change,
  };
}

describe('order log', () => {
  forEachDatabase((_name, open) => {
    it('gives rows back as they were written, oldest first', async () => {
      const { db, writer } = await opened(open, 'order');
      const rows: OrderLogRow[] = [
        orderRow(1, {
          effects: [
            {
              type: 'open',
              oid: 1,
              market: 0,
              side: 'ask',
              priceTicks: 2n ** 70n + 1n,
              sizeLots: 10n,
              tif: 'Alo',
              cloid: '0x01',
            },
            { type: 'open', oid: 2, market: 1, side: 'bid', priceTicks: 5n, sizeLots: 1n, tif: 'Gtc', cloid: null },
          ],
        }),
        orderRow(2, {
          signer: null,
          nonce: null,
          kind: 'close',
          effects: [{ type: 'close', oid: 1, reason: 'inventory' }],
        }),
        orderRow(3, { maker: bob, signer: bob }),
      ];
      await writer.tx((tx) => appendOrderRows(tx, rows));
      expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.deep.equal(rows);
      expect(await readOrderRows(db.knex, { after: 1, upTo: 2, limit: 10 })).to.deep.equal(rows.slice(1, 2));
      expect(await readOrderRows(db.knex, { after: 0, limit: 2 })).to.deep.equal(rows.slice(0, 2));
      expect(await lastOrderSeq(db.knex)).to.equal(3);
    });

    it('takes thousands of rows in one transaction', async () => {
      const { db, writer } = await opened(open, 'order');
      const rows = Array.from({ length: 2_500 }, (_, i) => orderRow(i + 1));
      await writer.tx((tx) => appendOrderRows(tx, rows));
      expect(await lastOrderSeq(db.knex)).to.equal(2_500);
      expect(await readOrderRows(db.knex, { after: 0, limit: 10_000 })).to.deep.equal(rows);
    });

    it('never takes a number or a nonce twice', async () => {
      const { db, writer } = await opened(open, 'order');
      await writer.tx((tx) => appendOrderRows(tx, [orderRow(1)]));
      const again = await errorOf(writer.tx((tx) => appendOrderRows(tx, [orderRow(1, { nonce: 7 })])));
      const sameNonce = await errorOf(
        writer.tx((tx) =>
          appendOrderRows(tx, [orderRow(2, { maker: bob, signer: bob }), orderRow(3, { nonce: orderRow(1).nonce })]),
        ),
      );
      expect([isUniqueViolation(again), isUniqueViolation(sameNonce)]).to.deep.equal([true, true]);
      expect(await lastOrderSeq(db.knex)).to.equal(1);
      const ownActs = [2, 3].map((orderSeq) => orderRow(orderSeq, { signer: null, nonce: null }));
      await writer.tx((tx) => appendOrderRows(tx, ownActs));
    });

    it('starts at zero, and names its limits', async () => {
      const { db } = await opened(open, 'order');
      expect(await lastOrderSeq(db.knex)).to.equal(0);
      expect(await readOrderRows(db.knex, { after: 0, limit: 1 })).to.deep.equal([]);
      expect(await errorOf(readOrderRows(db.knex, { after: 0, limit: 10_001 }))).to.be.instanceOf(RangeError);
      expect(await errorOf(readOrderRows(db.knex, { after: 0, limit: 0 }))).to.be.instanceOf(RangeError);
    });
  });
});

describe('operator log', () => {
  forEachDatabase((_name, open, openBare) => {
    const act = (kind: 'approve' | 'suspend' | 'halt' | 'resume', maker: Address | null = null, timeMs = 1) => ({
      kind,
      maker,
      timeMs,
      note: `${kind} it`,
    });

    it('approves and suspends, the last word counting', async () => {
      const { db } = await opened(open, 'order');
      await appendOperatorRow(db, act('approve', alice));
      await appendOperatorRow(db, act('approve', bob));
      const early = await readOperatorState(db.knex);
      await appendOperatorRow(db, act('suspend', alice));
      const row = await appendOperatorRow(db, act('approve', bob, 9));
      expect(row).to.deep.equal({ operatorSeq: 4, kind: 'approve', maker: bob, timeMs: 9, note: 'approve it' });
      const late = await readOperatorState(db.knex);
      expect([...early.approved, ...early.suspended]).to.deep.equal([alice, bob]);
      expect([...late.approved]).to.deep.equal([bob]);
      expect([...late.suspended]).to.deep.equal([alice]);
      expect(await readOperatorState(db.knex, early), 'continued').to.deep.equal(late);
      expect([...early.approved], 'unchanged by it').to.deep.equal([alice, bob]);
      expect(await readOperatorRows(db.knex, { after: 3, limit: 5 })).to.deep.equal([row]);
    });

    it('refuses what names the wrong maker', async () => {
      const { db } = await opened(open, 'order');
      const codes = [];
      for (const bad of [
        act('approve'),
        act('approve', '0x12'),
        act('approve', `0x${'A'.repeat(40)}`),
        act('halt', alice),
        act('suspend', alice),
      ]) {
        codes.push(((await errorOf(appendOperatorRow(db, bad))) as { code?: unknown } | null)?.code);
      }
      expect(codes).to.deep.equal(['bad_maker', 'bad_maker', 'bad_maker', 'bad_maker', 'never_approved']);
      expect((await readOperatorState(db.knex)).lastSeq).to.equal(0);
    });

    it('delists and relists listed markets, and no others', async () => {
      const { db } = await opened(open, 'order');
      const listing = (kind: OperatorRow['kind'], market?: number) =>
        appendOperatorRow(db, { kind, maker: null, timeMs: 1, note: '0', market });
      const codeOf = async (work: Promise<unknown>) => ((await errorOf(work)) as { code?: unknown } | null)?.code;
      expect(await codeOf(listing('delist', 0))).to.equal('bad_market');
      await db.knex.transaction((tx) => insertMarkets(tx, coarseMarkets(), 1));
      for (const market of [undefined, 3, -1, 0.5, Number.NaN]) {
        expect(await codeOf(listing('delist', market)), `${market}`).to.equal('bad_market');
      }
      expect(await codeOf(listing('halt', 0)), 'halt').to.equal('bad_market');
      await listing('delist', 0);
      const early = await readOperatorState(db.knex);
      await listing('delist', 2);
      await listing('relist', 0);
      const late = await readOperatorState(db.knex);
      expect([[...early.delisted], [...late.delisted]]).to.deep.equal([[0], [2]]);
      expect(await readOperatorState(db.knex, early), 'continued').to.deep.equal(late);
      expect((await followOperatorLog(db.knex, early)).delisted).to.deep.equal(late.delisted);
      expect([...early.delisted], 'unchanged by it').to.deep.equal([0]);
      const rows = await readOperatorRows(db.knex, { after: 0, limit: 10 });
      expect(rows.map(({ kind, market, note }) => [kind, market, note])).to.deep.equal([
        ['delist', 0, '0'],
        ['delist', 2, '0'],
        ['relist', 0, '0'],
      ]);
    });

    it('keeps what rows said that named their market in the note', async () => {
      const db = await openBare();
      const at = migrations.indexOf(listings);
      for (const step of migrations.slice(0, at)) await step.up(db.knex);
      const written = (
        [
          ['halt', '7'],
          ['delist', '0'],
          ['delist', '12'],
          ['relist', '0'],
        ] as const
      ).map(([kind, note], i) => ({ operator_seq: i + 1, time_ms: 1, kind, note, maker: null }));
      for (const row of written) await db.knex('operator_log').insert(row);
      for (const step of migrations.slice(at)) await step.up(db.knex);
      const rows = await readOperatorRows(db.knex, { after: 0, limit: 10 });
      expect(rows.map(({ kind, market, note }) => [kind, market, note])).to.deep.equal([
        ['halt', undefined, '7'],
        ['delist', 0, ''],
        ['delist', 12, ''],
        ['relist', 0, ''],
      ]);
      const { delisted, operatorHalt } = await readOperatorState(db.knex);
      expect([[...delisted], operatorHalt]).to.deep.equal([[12], '7']);
    });

    it('numbers simultaneous acts without a gap', async () => {
      const { db } = await opened(open, 'order');
      await Promise.all(MAKERS.map((maker) => appendWithRetry(db, act('approve', maker))));
      const rows = await readOperatorRows(db.knex, { after: 0, limit: 10 });
      expect(rows.map((row) => row.operatorSeq)).to.deep.equal([1, 2, 3, 4]);
      expect(new Set(rows.map((row) => row.maker)).size).to.equal(4);
    });

    it('halts and resumes', async () => {
      const { db } = await opened(open, 'order');
      await appendOperatorRow(db, act('halt'));
      const state = await readOperatorState(db.knex);
      expect(state.halted).to.deep.equal({ code: 'operator', message: 'halt it' });
      await appendOperatorRow(db, act('resume'));
      expect((await readOperatorState(db.knex, state)).halted).to.equal(null);
    });

    it('clears the halts that a resume knew of, and none that follows', async () => {
      const { db, writer } = await opened(open, 'ledger');
      const halt = (code: string) => writer.tx((tx) => insertHalt(tx, { code, message: `${code}!`, timeMs: 5 }));
      await halt('shortfall');
      await halt('fill_gap');
      const halted = await readOperatorState(db.knex);
      expect(halted.halted).to.include({ code: 'shortfall', message: 'shortfall!' });
      await appendOperatorRow(db, act('resume'));
      expect(await readHalt(db.knex)).to.equal(null);
      expect((await readOperatorState(db.knex, halted)).halted).to.equal(null);
      await halt('shortfall');
      expect(await readHalt(db.knex)).to.deep.equal({
        haltNo: 3,
        code: 'shortfall',
        fromBlock: null,
        message: 'shortfall!',
        generation: null,
        timeMs: 5,
      });
    });
  });

  /** On SQLite the newest taker wins at once, and whom it overtook tries again. */
  async function appendWithRetry(db: Db, row: Parameters<typeof appendOperatorRow>[1]): Promise<void> {
    for (let tries = 0; tries < 50; tries++) {
      try {
        await appendOperatorRow(db, row);
        return;
      } catch (error) {
        if (!(error instanceof WriterLostError)) throw error;
      }
    }
    throw new Error('lost the operator log fifty times');
  }
});
