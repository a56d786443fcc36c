/** The publication log and the outbox: what a poster stores before it sends. */
import { expect } from 'chai';
import type { Hex } from '../../core/types.js';
import { isUniqueViolation } from '../../ledger/errors.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
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
import { carry } from '../../ledger/migrations/0015-carry.js';
import { migrations } from '../../ledger/migrations/index.js';
import type { OutboxRow, PostSeen, Publication } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { forEachDatabase } from '../support/db.js';
import { OPERATOR, generationOf } from '../support/generations.js';
import { WETH_DAI, WETH_USDC } from '../support/markets.js';
import { alice, bob, opened, errorOf } from '../support/databases/log-rows.js';

const hash = (digit: string): Hex => `0x${digit.repeat(64)}`;

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
