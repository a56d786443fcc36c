import { expect } from 'chai';
import type { Address, Hex, OrderLogRow } from '../../core/types.js';
import { WriterLostError, isUniqueViolation } from '../../ledger/errors.js';
import { commitGeneration, insertHalt, readHalt } from '../../ledger/chain/ledger-log.js';
import { insertMarkets } from '../../ledger/chain/markets.js';
import {
  appendOperatorRow,
  followOperatorLog,
  readOperatorRows,
  readOperatorState,
} from '../../ledger/operator/operator-log.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../ledger/orders/order-log.js';
import { finishOutbox, insertOutbox, lastNonce, readOutbox } from '../../ledger/transactions/outbox.js';
import {
  executablePublications,
  insertPublications,
  landedSeq,
  lastPublicationSeq,
  readPostSeen,
  readPublication,
  readPublications,
} from '../../ledger/publications/publication-log.js';
import { listings } from '../../ledger/migrations/0008-0014-columns.js';
import { carry } from '../../ledger/migrations/0015-carry.js';
import { migrations } from '../../ledger/migrations/index.js';
import type { Db, LogName, OperatorRow, OutboxRow, PostSeen, Publication, Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { forEachDatabase, type OpenTestDb } from '../support/db.js';
import { OPERATOR, generationOf } from '../support/generations.js';
import { coarseMarkets, MAKERS, WETH_DAI, WETH_USDC } from '../support/markets.js';

const [alice, bob] = MAKERS as readonly [Address, Address];
const hash = (digit: string): Hex => `0x${digit.repeat(64)}`;

async function opened(open: OpenTestDb, log: LogName): Promise<{ db: Db; writer: Writer }> {
  const db = await open();
  return { db, writer: await acquireWriter(db, log) };
}

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

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

function publicationOf(seq: number, change: Partial<Publication> = {}): Publication {
  return {
    market: 0,
    seq,
    baseSeq: seq,
    kind: 'full',
    blockNumber: 20 + seq,
    blockHash: hash('c'),
    excluded: [`0x${'d'.repeat(40)}`],
    askKnots: 15,
    bidKnots: 7,
    compression: 1,
    maxErrorMilliBps: 5_000,
    askErrorPpb: 12_345,
    bidErrorPpb: null,
    exactAskKnots: 15,
    exactBidKnots: 2,
    cut: { orderSeq: 10 + seq, generation: seq, timeMs: 1_800_000_000_000 + seq },
    fillSeq: 3,
    askVolumeUnits: 2n ** 90n + 1n,
    bidVolumeUnits: 0n,
    trims: [{ oid: 4, lots: 12n }],
    snapshotHash: hash('a'),
    askWords: [2n ** 256n - 1n, 1n],
    bidWords: [],
    wordsHash: hash('b'),
    deadlineSec: 1_000 + seq,
    preparedMs: 5,
    txKey: `post:${seq}`,
    ...change,
  };
}

describe('publication log', () => {
  forEachDatabase((_name, open, openBare) => {
    it('gives publications back as they were prepared', async () => {
      const { db, writer } = await opened(open, 'publication');
      const all = [
        publicationOf(1),
        publicationOf(2, { baseSeq: 1, trims: [] }),
        publicationOf(7),
        publicationOf(3, { market: 1 }),
      ];
      await writer.tx((tx) => insertPublications(tx, all));
      expect(await readPublication(db.knex, 0, 2)).to.deep.equal(all[1]);
      expect(await readPublication(db.knex, 0, 3)).to.equal(null);
      expect(await readPublications(db.knex, { market: 0, afterSeq: 1, limit: 5 })).to.deep.equal([all[1], all[2]]);
      expect(await readPublications(db.knex, { market: 0, afterSeq: 0, upToSeq: 2, limit: 5 })).to.deep.equal(
        all.slice(0, 2),
      );

      expect([await lastPublicationSeq(db.knex, 0), await lastPublicationSeq(db.knex, 2)]).to.deep.equal([7, 0]);
    });

    it('never prepares two curves under one number', async () => {
      const { db, writer } = await opened(open, 'publication');
      await writer.tx((tx) => insertPublications(tx, [publicationOf(1)]));
      const again = writer.tx((tx) =>
        insertPublications(tx, [publicationOf(2), publicationOf(1, { wordsHash: hash('c') })]),
      );
      expect(isUniqueViolation(await errorOf(again))).to.equal(true);
      expect(await lastPublicationSeq(db.knex, 0)).to.equal(1);
    });

    it('knows which post the touches of an older database go back to', async () => {
      const db = await openBare();
      const at = migrations.indexOf(carry);
      for (const step of migrations.slice(0, at)) await step.up(db.knex);
      // [market, seq, base_seq]: a post, a touch of it, a touch of that, a post, and in another market the touch of an unknown curve.
      const seen = [
        [0, 3, 3],
        [0, 4, 3],
        [0, 7, 4],
        [0, 9, 9],
        [1, 5, 4],
      ] as const;
      for (const [market, seq, base_seq] of seen) {
        const zeros = { deadline_sec: 0, block_number: 0, block_timestamp_sec: 0, generation: 1 };
        const amounts = { snap_ask_units: '0', snap_bid_units: '0' };
        const texts = { words_hash: '0x', tx_hash: hash('d') } as const;
        await db.knex('posts_seen').insert({ market, seq, base_seq, ...zeros, ...amounts, ...texts });
      }
      for (const step of migrations.slice(at)) await step.up(db.knex);
      const posted = [];
      for (const [market, seq] of seen) posted.push((await readPostSeen(db.knex, market, seq))?.postedSeq);
      expect(posted).to.deep.equal([3, 3, 3, 9, 5]);
    });

    it('counts as executable what has neither died nor been superseded on-chain', async () => {
      const { db, writer } = await opened(open, 'publication');
      const ledger = await acquireWriter(db, 'ledger');
      await writer.tx((tx) =>
        insertPublications(
          tx,
          [1, 2, 3, 4, 5].map((seq) => publicationOf(seq)).concat(publicationOf(1, { market: 1 })),
        ),
      );
      const seqs = async (market: number, atSec: number): Promise<number[]> =>
        (await executablePublications(db.knex, { market, atSec })).map((one) => one.seq);
      expect(await seqs(0, 1_000)).to.deep.equal([1, 2, 3, 4, 5]);
      expect(await seqs(0, 1_002), 'a deadline is exclusive').to.deep.equal([3, 4, 5]);

      const seen: PostSeen = {
        market: 0,
        seq: 3,
        era: 0,
        baseSeq: 3,
        postedSeq: 3,
        deadlineSec: 1_003,
        snapAskUnits: 2n ** 92n - 1n,
        snapBidUnits: 0n,
        wordsHash: hash('b'),
        blockNumber: 101,
        blockTimestampSec: 990,
        txHash: hash('d'),
      };
      const write = generationOf(1, { listed: [WETH_USDC, WETH_DAI], posts: [seen] });
      await ledger.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
      expect([await landedSeq(db.knex, 0), await landedSeq(db.knex, 1)]).to.deep.equal([3, 0]);
      expect(await seqs(0, 1_000), 'the landed one lives on').to.deep.equal([3, 4, 5]);
      expect(await seqs(0, 1_004)).to.deep.equal([5]);
      expect(await seqs(1, 1_000), 'another market').to.deep.equal([1]);
    });
  });
});

describe('outbox', () => {
  forEachDatabase((_name, open) => {
    const row = (nonce: number, digit: string, change: Partial<OutboxRow> = {}): OutboxRow => ({
      txKey: `post:${nonce}`,
      signer: alice,
      nonce,
      to: bob,
      raw: `0x02${digit.repeat(200)}`,
      hash: hash(digit),
      sentMs: 100,
      validUntilSec: null,
      maxFeeWei: null,
      ...change,
    });

    it('keeps signed bytes until the chain has used their nonce', async () => {
      const { db, writer } = await opened(open, 'publication');
      expect(await lastNonce(db.knex, alice)).to.equal(null);
      const rows = [
        row(0, '1'),
        row(1, '2', { validUntilSec: 1_800_000_000 }),
        row(1, '3', { sentMs: 200, txKey: 'replacement' }),
        row(2, '4'),
      ];
      for (const one of rows.toReversed()) await writer.tx((tx) => insertOutbox(tx, one));
      await writer.tx((tx) => insertOutbox(tx, row(9, '5', { signer: bob })));
      expect(await readOutbox(db.knex, alice)).to.deep.equal(rows);
      await writer.tx((tx) => finishOutbox(tx, alice, 2));
      expect(await readOutbox(db.knex, alice)).to.deep.equal(rows.slice(3));
      expect(await readOutbox(db.knex, bob)).to.have.length(1);
      expect(await lastNonce(db.knex, alice)).to.equal(2);
    });

    it('never stores the same transaction twice', async () => {
      const { writer } = await opened(open, 'publication');
      await writer.tx((tx) => insertOutbox(tx, row(0, '1')));
      expect(isUniqueViolation(await errorOf(writer.tx((tx) => insertOutbox(tx, row(0, '1')))))).to.equal(true);
    });
  });
});
