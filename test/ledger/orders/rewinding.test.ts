/** The compacted book after a reversal that reaches behind it. */
import { expect } from 'chai';
import fc from 'fast-check';
import { isFilled } from '../../../core/book/order-life.js';
import type { OpenOrder, OrderFill } from '../../../core/types.js';
import { verifyCompaction } from '../../../keepers/verify/compaction.js';
import { VerifyError } from '../../../keepers/verify/verification.js';
import { LogCompactedError } from '../../../ledger/errors.js';
import { readReversals } from '../../../ledger/chain/reversals.js';
import { packBook } from '../../../ledger/chain/packed-book.js';
import { readCompactionPosition, toCompactedOrder } from '../../../ledger/orders/compacted-book.js';
import { rewindCompactedBook } from '../../../ledger/orders/rewinding.js';
import { loadState } from '../../../server/orders/state.js';
import { forEachDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import { MAKERS } from '../../support/markets.js';
import {
  act,
  appendGenerations,
  bookAt,
  compact,
  compactedLog,
  FAR_MS,
  LIMITS,
  logsOf,
  markets,
  stateOf,
  store,
  takeBack,
  type Act,
} from '../../support/worlds/compacted-log.js';

describe('the compacted book after a reversal', function () {
  this.timeout(120_000);

  forEachDatabase((name, open) => {
    const suite = compactedLog(open);
    const { opens } = suite;

    const rewind = () => suite.writer.tx((tx) => rewindCompactedBook(tx, markets));

    /** What is filled of each order by the fills that are live. */
    async function filledUnits(upTo = Number.MAX_SAFE_INTEGER): Promise<Map<number, bigint>> {
      const sums = new Map<number, bigint>();
      const rows = await suite.db.knex('order_fills').where('generation', '<=', upTo).select();
      for (const row of rows as { oid: number; base_units: string }[])
        sums.set(row.oid, (sums.get(row.oid) ?? 0n) + BigInt(row.base_units));
      return sums;
    }

    /** As `verify` wants it. */
    async function expectSound(): Promise<void> {
      const { generation } = await readCompactionPosition(suite.db.knex);
      const sums = await filledUnits(generation);
      for (const row of await suite.db.knex('folded_orders').select()) {
        const { order, state } = toCompactedOrder(row);
        expect(order.filledUnits, `order ${order.oid}`).to.equal(sums.get(order.oid) ?? 0n);
        expect(state === 'filled', `order ${order.oid}`).to.equal(isFilled(order, markets[order.market]!.lotUnits));
      }
    }

    async function openOrders(): Promise<Map<number, OpenOrder>> {
      const { book } = (await loadState(suite.db)).committed();
      return new Map(MAKERS.flatMap((maker) => [...book.openOrders(maker)]).map((order) => [order.oid, order]));
    }

    it('counts fills that are read again, whatever has become of them, and never opens an order again', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(act, { minLength: 2, maxLength: 40 }),
          fc.record({ rows: fc.nat(60), generations: fc.nat(15), kept: fc.nat(12), pick: fc.nat() }),
          fc.constantFrom<'same' | 'less' | 'more'>('same', 'less', 'more'),
          async (acts, { rows, generations, kept, pick }, change) => {
            const logs = logsOf(acts);
            const newest = { orderSeq: logs.rows.length, generation: logs.generations.length };
            const keptGeneration = Math.min(kept, newest.generation - 1);
            const again = logs.generations.slice(keptGeneration).map((fills) => [...fills]);
            const hits = again.flatMap((fills, i) => (fills.length > 0 ? [i] : []));
            const hit = again[hits[pick % Math.max(1, hits.length)] ?? 0]!;
            if (change === 'less') hit.length = 0;
            if (change === 'more') again.push(hit.map((fill): OrderFill => ({ ...fill, baseUnits: 1n })));

            await store(suite.db, suite.writer, logs);
            await takeBack(suite.db, keptGeneration);
            await appendGenerations(suite.db, again);
            const [expected, expectedOpen] = [await stateOf(suite.db), await openOrders()];

            await store(suite.db, suite.writer, logs);
            const atNewest = await bookAt(suite.db, newest);
            const bounds = {
              orderSeq: Math.min(rows, Math.max(0, newest.orderSeq - 1)),
              generation: Math.min(generations, newest.generation),
              beforeMs: FAR_MS,
            };
            await compact(suite.writer, bounds);
            const before = await readCompactionPosition(suite.db.knex);
            const ended = await suite.db.knex('folded_orders').where({ state: 'filled' }).select<{ oid: number }[]>();
            const endedOids = new Set(ended.map(({ oid }) => oid));
            await takeBack(suite.db, keptGeneration);
            await rewind();
            const position = await readCompactionPosition(suite.db.knex);
            const reached = Math.min(before.generation, keptGeneration);
            expect(position).to.deep.equal({ ...before, generation: reached, cutGeneration: before.generation });
            await expectSound();
            expect(await bookAt(suite.db, newest), 'a cut that was made before').to.deep.equal(atNewest);

            await appendGenerations(suite.db, again);
            const state = await stateOf(suite.db);
            if (change === 'same') expect(state).to.deep.equal(expected);
            const opened = await openOrders();
            for (const [oid, order] of opened) expect(order, `order ${oid}`).to.deep.equal(expectedOpen.get(oid));
            for (const oid of expectedOpen.keys())
              if (!opened.has(oid)) expect(endedOids.has(oid), `order ${oid} was filled`).to.equal(true);
            await compact(suite.writer, {
              orderSeq: Math.max(0, newest.orderSeq - 1),
              generation: newest.generation + 1 + again.length,
              beforeMs: FAR_MS,
            });
            expect(await stateOf(suite.db)).to.deep.equal(state);
            await expectSound();
          },
        ),
        fcOptions(name === 'SQLite' ? 40 : 10),
      );
    });

    it('does not give cuts in which an order may have been open that reversed fills had filled', async () => {
      const fill: Act = { kind: 'fill', pick: 0, permille: 1_000n };
      const logs = logsOf([...opens(3), fill, { ...fill, pick: 1, permille: 300n }]);
      await store(suite.db, suite.writer, logs);
      const cut = { orderSeq: 3, generation: 1 };
      await compact(suite.writer, { orderSeq: 2, generation: 2, beforeMs: FAR_MS });
      const later = await bookAt(suite.db, { orderSeq: 3, generation: 2 });
      await takeBack(suite.db, 0);
      await rewind();
      const error: unknown = await bookAt(suite.db, cut).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(LogCompactedError);
      expect(await bookAt(suite.db, { orderSeq: 3, generation: 2 })).to.deep.equal(later);
      expect([...(await openOrders())].map(([oid, { filledUnits: units }]) => [oid, units])).to.deep.equal([
        [2, 0n],
        [3, 0n],
      ]);
    });

    it('keeps orders whose fills were reversed before they were compacted, until they come again', async () => {
      const closes = [0, 1, 2].map((pick): Act => ({ kind: 'close', pick, reason: 'canceled' }));
      const logs = logsOf([...opens(5), ...closes, { kind: 'fill', pick: 0, permille: 100n }]);
      await store(suite.db, suite.writer, logs);
      // Not forgotten yet: its maker's newest closed orders stay.
      await compact(suite.writer, { orderSeq: 7, generation: 0, beforeMs: FAR_MS });
      await takeBack(suite.db, 0);
      await rewind();
      await compact(
        suite.writer,
        { orderSeq: 8, generation: 0, beforeMs: FAR_MS },
        { ...LIMITS, effects: 100, closedOrders: 0 },
      );
      expect((await suite.db.knex('folded_orders').orderBy('oid').select()).map(({ oid }) => oid)).to.deep.equal([
        1, 4, 5,
      ]);
      await appendGenerations(suite.db, logs.generations);
      await compact(suite.writer, { orderSeq: 8, generation: 4, beforeMs: FAR_MS });
      await expectSound();
      expect((await filledUnits()).get(1)).to.equal((5n * markets[0]!.lotUnits) / 10n);
    });

    it('takes an order that was forgotten from the book of its curve once a block that is read again has a fill of it', async () => {
      const logs = logsOf([...opens(3), { kind: 'close', pick: 0, reason: 'canceled' }, ...opens(1)]);
      await store(suite.db, suite.writer, logs);
      const limits = { ...LIMITS, closedOrders: 0 };
      await compact(suite.writer, { orderSeq: 4, generation: 1, beforeMs: FAR_MS }, limits);
      expect(await suite.db.knex('folded_orders').where({ oid: 1 }).select()).to.deep.equal([]);
      await takeBack(suite.db, 0);
      await rewind();
      const terms = { oid: 1, maker: MAKERS[0]!, priceTicks: 2n };
      await appendGenerations(suite.db, [[{ ...terms, market: 0, side: 'bid', baseUnits: 7n }], []]);
      const fill = {
        market: 0,
        fill_seq: 3,
        curve_seq: 3,
        block_number: 1,
        log_index: 0,
        timestamp_ms: 1,
        generation: 3,
      };
      const texts = ['side', 'taker', 'recipient', 'block_hash', 'tx_hash'].map((column) => [column, '0x']);
      const amounts = [
        'base',
        'quote',
        'fee',
        'input_fee',
        'consumed_before',
        'residual',
        'rounding',
        'compression_residual',
      ];
      const units = [...amounts, 'operator_gain', 'missing_base'].map((column) => [`${column}_units`, '0']);
      await suite.db.knex('fills').insert({ ...fill, ...Object.fromEntries([...texts, ...units]) });
      // Until compaction restores it, verification finds nothing wrong, and only because of where its fills are.
      const reversals = await readReversals(suite.db.knex);
      const compacted = await readCompactionPosition(suite.db.knex);
      const verify = (change: Partial<Parameters<typeof verifyCompaction>[0]> = {}): Promise<unknown> => {
        const state = { q: suite.db.knex, reversals, compacted, markets, onProgress: () => undefined, ...change };
        return verifyCompaction(state).catch((reason: unknown) => reason);
      };
      const isRefused = (outcome: unknown): void => {
        expect(outcome).to.be.instanceOf(VerifyError);
        expect((outcome as VerifyError).message).to.equal('order 1 has a fill and was not kept');
      };
      expect(await verify(), 'of a block that is read again').to.be.a('number');
      isRefused(await verify({ reversals: [] }));
      isRefused(await verify({ reversals: reversals.map((one) => ({ ...one, generation: fill.generation })) }));
      isRefused(await verify({ reversals: reversals.map((one) => ({ ...one, toBlock: fill.block_number - 1 })) }));
      isRefused(await verify({ compacted: { ...compacted, generation: fill.generation } }));
      const bounds = { orderSeq: 4, generation: 4, beforeMs: FAR_MS };
      const error: unknown = await compact(suite.writer, bounds, limits).catch((reason: unknown) => reason);
      expect(String(error), 'without the book').to.match(/order 1 has a fill and was not kept/);
      const book = { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, asks: [] };
      const payload = packBook({ ...book, bids: [{ ...terms, sizeLots: 5n }] });
      await suite.db.knex('snapshots').insert({ market: 0, seq: 3, generation: 3, payload });
      await compact(suite.writer, bounds, limits);
      const rows = await suite.db.knex('folded_orders').where({ oid: 1 }).select();
      expect(
        rows.map(toCompactedOrder).map(({ order, state }) => [order.sizeLots, order.filledUnits, state]),
      ).to.deep.equal([[5n, 7n, 'canceled']]);
      await expectSound();
    });
  });
});
