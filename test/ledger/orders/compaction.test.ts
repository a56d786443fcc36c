import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { DAY_MS } from '../../../core/book/schedules.js';
import type { Address, CloseReason, OrderEffect, OrderFill, OrderLogRow, Side } from '../../../core/types.js';
import { LogCompactedError } from '../../../ledger/errors.js';
import { readCompactionPosition } from '../../../ledger/orders/compacted-book.js';
import {
  compactionBounds,
  compactStep,
  type CompactionBounds,
  type CompactionLimits,
} from '../../../ledger/orders/compaction.js';
import { createFollower } from '../../../ledger/orders/follower.js';
import { insertMarkets } from '../../../ledger/chain/markets.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../../ledger/orders/order-log.js';
import { readStorage, SHARES, tableBytes } from '../../../ledger/db/storage.js';
import type { Db, Writer } from '../../../ledger/types.js';
import { migrate } from '../../../ledger/db/db.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { loadState } from '../../../server/orders/state.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import { coarseMarkets, MAKERS } from '../../support/markets.js';

const markets = coarseMarkets();
const FAR_MS = Number.MAX_SAFE_INTEGER;
const LIMITS: CompactionLimits = { effects: 5, generations: 2, closedOrders: 2_000 };

type Act =
  | { kind: 'open'; maker: number; market: number; sizeLots: bigint; cloid: boolean }
  | { kind: 'close'; pick: number; reason: CloseReason }
  | { kind: 'reduce'; pick: number; lots: bigint }
  | { kind: 'fill'; pick: number; permille: bigint }
  | { kind: 'schedule'; maker: number; timeMs: number | null }
  | { kind: 'trigger'; maker: number; timeMs: number }
  | { kind: 'agent'; maker: number; name: string; isRemoval: boolean };

const maker = fc.nat(MAKERS.length - 1);
const pick = fc.nat();
const of = <K extends Act['kind']>(
  kind: K,
  weight: number,
  rest: { [F in Exclude<keyof Extract<Act, { kind: K }>, 'kind'>]: fc.Arbitrary<Extract<Act, { kind: K }>[F]> },
) => ({ weight, arbitrary: fc.record({ kind: fc.constant(kind), ...rest }) as unknown as fc.Arbitrary<Act> });

const act = fc.oneof(
  of('open', 6, { maker, market: fc.nat(2), sizeLots: fc.bigInt(1n, 9n), cloid: fc.boolean() }),
  of('close', 3, { pick, reason: fc.constantFrom<CloseReason>('canceled', 'replaced', 'inventory', 'delisted') }),
  of('reduce', 1, { pick, lots: fc.bigInt(1n, 4n) }),
  of('fill', 3, { pick, permille: fc.bigInt(1n, 1_200n) }),
  of('schedule', 1, { maker, timeMs: fc.option(fc.integer({ min: 1, max: 9 * DAY_MS })) }),
  of('trigger', 1, { maker, timeMs: fc.integer({ min: 1, max: 9 * DAY_MS }) }),
  of('agent', 3, { maker: fc.nat(1), name: fc.constantFrom('', 'a'), isRemoval: fc.boolean() }),
);

interface Logs {
  rows: OrderLogRow[];
  /** Fills by generation, from 1. */
  generations: OrderFill[][];
}

/** One order row or one generation per act. A fill may come before or after the row that cancels its order. */
function logsOf(acts: readonly Act[]): Logs {
  const logs: Logs = { rows: [], generations: [] };
  const opened: { oid: number; maker: Address; market: number; side: Side; priceTicks: bigint; sizeLots: bigint }[] =
    [];
  let agents = 0;
  const row = (by: Address, effects: OrderEffect[], signed = true): void => {
    const orderSeq = logs.rows.length + 1;
    const signer = signed ? by : null;
    logs.rows.push({
      orderSeq,
      timeMs: orderSeq * 10,
      maker: by,
      signer,
      nonce: signed ? orderSeq : null,
      kind: 'x',
      effects,
    });
  };
  for (const one of acts) {
    if (one.kind === 'open') {
      const oid = opened.length + 1;
      const side: Side = oid % 2 === 0 ? 'ask' : 'bid';
      const terms = {
        oid,
        market: one.market,
        side: side,
        priceTicks: BigInt(1 + (oid % 7)),
        sizeLots: one.sizeLots,
      };
      opened.push({ ...terms, maker: MAKERS[one.maker]! });
      row(MAKERS[one.maker]!, [{ type: 'open', ...terms, tif: 'Gtc', cloid: one.cloid ? `0x${oid % 5}` : null }]);
    } else if (one.kind === 'schedule') {
      row(MAKERS[one.maker]!, [{ type: 'schedule', timeMs: one.timeMs }]);
    } else if (one.kind === 'trigger') {
      row(MAKERS[one.maker]!, [{ type: 'trigger', timeMs: one.timeMs }], false);
    } else if (one.kind === 'agent') {
      agents += 1;
      const agent: Address | null = one.isRemoval ? null : `0x${agents.toString(16).padStart(40, 'a')}`;
      row(MAKERS[one.maker]!, [{ type: 'agent', name: one.name, agent, sinceMs: agents, validUntilMs: agents + 9 }]);
    } else if (opened.length > 0) {
      const order = opened[one.pick % opened.length]!;
      if (one.kind === 'close') row(order.maker, [{ type: 'close', oid: order.oid, reason: one.reason }]);
      if (one.kind === 'reduce') row(order.maker, [{ type: 'reduce', oid: order.oid, lots: one.lots }], false);
      if (one.kind === 'fill') {
        const units = (order.sizeLots * markets[order.market]!.lotUnits * one.permille) / 1_000n;
        const { sizeLots: _, ...terms } = order;
        logs.generations.push([{ ...terms, baseUnits: units > 0n ? units : 1n }]);
      }
    }
  }
  logs.generations.push([]);
  return logs;
}

/** Stores the logs as their readers see them; what else a generation has plays no part here. */
async function store(db: Db, writer: Writer, { rows, generations }: Logs): Promise<void> {
  await writer.tx(async (tx) => {
    for (const table of ['order_log', 'generations', 'order_fills', 'markets', 'market_progress'])
      await tx(table).delete();
    for (const table of ['fold_position', 'folded_orders', 'folded_signers', 'folded_makers', 'folded_agents'])
      await tx(table).delete();
    await insertMarkets(tx, markets, 1);
    await appendOrderRows(tx, rows);
    for (const [i, fills] of generations.entries()) {
      const generation = i + 1;
      await tx('generations').insert({
        generation,
        from_block: generation,
        to_block: generation,
        block_timestamp_ms: generation * 1_000,
        scanned_ms: generation * 1_000,
        observed_head: generation,
        observed_head_timestamp_ms: generation * 1_000,
        block_hash: `0x${generation}`,
      });
      for (const fill of fills) {
        const { oid, market, side, maker: owner, priceTicks, baseUnits } = fill;
        const counters = { market, fill_seq: generation, generation };
        await tx('order_fills').insert({
          ...counters,
          oid,
          part_no: 0,
          leg_no: 0,
          tid: generation,
          maker: owner,
          side,
          price_ticks: priceTicks.toString(),
          base_units: baseUnits.toString(),
          start_base_units: '0',
        });
        await tx('market_progress').insert({ ...counters, ask_volume_units: `${generation}`, bid_volume_units: '0' });
      }
    }
  });
}

/** All that a gateway holds of the order log. Of a filled order only that it is: sizes taken off it before or after don't matter any more. */
async function stateOf(db: Db) {
  const state = await loadState(db);
  const { book, agents } = state.committed();
  const plain = <T>(value: T): T => structuredClone(value);
  return {
    at: [book.lastOrderSeq(), book.lastOid(), state.generation(), state.lastRowMs()],
    armed: [...book.armed()].sort(),
    makers: MAKERS.map((one) => ({
      open: plain(book.openOrders(one)),
      exposure: [...book.exposureUnits(one)].sort(),
      nonces: book.nonces(one),
      triggers: Array.from({ length: 10 }, (_, day) => book.triggers(one, day * DAY_MS)),
      lastActionMs: state.lastActionMs(one),
      agents: agents.ofMaster(one),
      cloids: Array.from({ length: 5 }, (_, i) => state.history.orderByCloid(one, `0x${i}`)?.order.oid),
      known: state.history
        .ofMaker(one)
        .sort((a, b) => a.order.oid - b.order.oid)
        .map(({ order, state: stands, stateMs }) => {
          const lotUnits = markets[order.market]!.lotUnits;
          const filled = order.sizeLots * lotUnits - order.filledUnits < lotUnits;
          return filled ? { oid: order.oid, filled } : { order: plain(order), stands, stateMs };
        }),
    })),
    wasAgent: Array.from({ length: 60 }, (_, i) => agents.wasAgent(`0x${i.toString(16).padStart(40, 'a')}`)),
  };
}

async function bookAt(db: Db, cut: { orderSeq: number; generation: number }) {
  const follower = createFollower(markets);
  await follower.advance(db.knex, cut);
  return {
    open: MAKERS.map((one) => follower.book.openOrders(one)),
    progress: markets.map(({ index }) => follower.progress(index)),
    armed: [...follower.book.armed()].sort(),
  };
}

async function compact(writer: Writer, bounds: CompactionBounds, limits = LIMITS): Promise<void> {
  for (;;) {
    const step = await writer.tx((tx) => compactStep(tx, bounds, limits));
    if (step.orderRows === 0 && step.generations === 0) return;
  }
}

describe('compaction of the order log', function () {
  this.timeout(120_000);

  forEachDatabase((name, open, openBare) => {
    let db: Db;
    let writer: Writer;

    beforeEach(async () => {
      db = await open();
      writer = await acquireWriter(db, 'order');
    });

    it('changes neither what a gateway begins with nor the book of any later cut', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(act, { minLength: 2, maxLength: 40 }),
          fc.array(fc.tuple(fc.nat(60), fc.nat(15)), { minLength: 1, maxLength: 3 }),
          fc.integer({ min: 1, max: 6 }),
          async (acts, steps, effects) => {
            const logs = logsOf(acts);
            await store(db, writer, logs);
            const expected = await stateOf(db);
            const newest = { orderSeq: logs.rows.length, generation: logs.generations.length };
            let at = { orderSeq: 0, generation: 0 };
            for (const [rows, generations] of steps) {
              at = {
                orderSeq: Math.min(Math.max(at.orderSeq, rows), Math.max(0, newest.orderSeq - 1)),
                generation: Math.min(Math.max(at.generation, generations), newest.generation),
              };
              const books = [await bookAt(db, at), await bookAt(db, newest)];
              await compact(writer, { ...at, beforeMs: FAR_MS }, { ...LIMITS, effects });
              const position = await readCompactionPosition(db.knex);
              expect(position.orderSeq).to.equal(at.orderSeq);
              expect(position.generation).to.be.at.most(at.generation);
              expect([await bookAt(db, at), await bookAt(db, newest)]).to.deep.equal(books);
              expect(await stateOf(db)).to.deep.equal(expected);
            }
            const left = await readOrderRows(db.knex, { after: 0, limit: 1_000 });
            expect(left).to.deep.equal(logs.rows.slice(at.orderSeq));
          },
        ),
        fcOptions(name === 'SQLite' ? 25 : 8),
      );
    });

    const opens = (count: number): Act[] =>
      Array.from({ length: count }, () => ({ kind: 'open', maker: 0, market: 0, sizeLots: 5n, cloid: false }));

    it('keeps every order that had a fill, and the newest closed ones beside', async () => {
      const closes = Array.from({ length: 10 }, (_, i): Act => ({ kind: 'close', pick: i, reason: 'canceled' }));
      // One before its cancel is compacted, one after; the third lies beyond the generation that is compacted.
      const fills = [0, 1, 2].map((i): Act => ({ kind: 'fill', pick: i, permille: 100n }));
      const logs = logsOf([...opens(12), fills[0]!, ...closes, fills[1]!, fills[2]!]);
      await store(db, writer, logs);
      await compact(
        writer,
        { orderSeq: logs.rows.length - 1, generation: 2, beforeMs: FAR_MS },
        { ...LIMITS, closedOrders: 3 },
      );
      const kept = await db.knex('folded_orders').orderBy('oid').select<{ oid: number; filled_units: string }[]>();
      expect(kept.map(({ oid }) => oid)).to.deep.equal([1, 2, 3, 7, 8, 9, 10, 11, 12]);
      await compact(
        writer,
        { orderSeq: logs.rows.length - 1, generation: 4, beforeMs: FAR_MS },
        { ...LIMITS, closedOrders: 3 },
      );
      const third = await db.knex('folded_orders').where({ oid: 3 }).first<{ filled_units: string }>();
      expect(third.filled_units).to.equal(`${(5n * markets[0]!.lotUnits) / 10n}`);
    });

    it('leaves young rows, and rows that a cut within reach of a reorganisation was made from', async () => {
      const logs = logsOf(opens(9));
      await store(db, writer, { ...logs, generations: Array.from({ length: 40 }, () => []) });
      await db.knex('blocks').insert(
        Array.from({ length: 40 }, (_, i) => ({
          number: i + 1,
          timestamp_sec: i + 1,
          generation: i + 1,
          hash: `0x${i + 1}`,
          parent_hash: `0x${i}`,
        })),
      );
      const rule = { nowMs: 60_000, retentionMs: 0, reorgBlocks: 10 };
      expect(await compactionBounds(db.knex, rule), 'nothing was ever published').to.deep.equal({
        orderSeq: 8,
        generation: 30,
        beforeMs: 60_000,
      });
      expect(await compactionBounds(db.knex, { ...rule, reorgBlocks: 40 })).to.equal(null);
      const publication = async (seq: number, cut: [number, number], deadlineSec: number): Promise<void> => {
        const texts = ['trims', 'snapshot_hash', 'ask_words', 'bid_words', 'words_hash', 'tx_key'];
        await db.knex('publications').insert({
          market: 0,
          seq,
          base_seq: seq,
          cut_order_seq: cut[0],
          cut_generation: cut[1],
          cut_time_ms: 0,
          fill_seq: 0,
          ask_volume_units: '0',
          bid_volume_units: '0',
          deadline_sec: deadlineSec,
          prepared_ms: 0,
          ...Object.fromEntries(texts.map((column) => [column, 'x'])),
        });
      };
      await publication(1, [2, 12], 30);
      expect((await compactionBounds(db.knex, rule))?.orderSeq, 'dead at the horizon').to.equal(8);
      await publication(2, [5, 22], 31);
      expect(await compactionBounds(db.knex, rule)).to.deep.include({ orderSeq: 5, generation: 22 });
      const young = await compactionBounds(db.knex, { ...rule, nowMs: 50_000, retentionMs: 49_960 });
      expect(young).to.deep.equal({ orderSeq: 5, generation: 0, beforeMs: 40 });
      await compact(writer, young!);
      expect((await readCompactionPosition(db.knex)).orderSeq, 'rows up to 40 ms').to.equal(4);
      await compact(writer, { orderSeq: 8, generation: 0, beforeMs: FAR_MS });
      expect(await lastOrderSeq(db.knex)).to.equal(9);
    });

    it('says of a cut before the compacted book that it was compacted, and lets a reader that fell behind begin anew', async () => {
      const logs = logsOf(opens(9));
      await store(db, writer, logs);
      const behind = createFollower(markets);
      await behind.advance(db.knex, { orderSeq: 2, generation: 1 });
      await compact(writer, { orderSeq: 6, generation: 1, beforeMs: FAR_MS });
      const failure = async (work: Promise<unknown>): Promise<unknown> =>
        work.then(
          () => null,
          (error: unknown) => error,
        );
      expect(await failure(behind.advance(db.knex, { orderSeq: 9, generation: 1 }))).to.be.instanceOf(
        LogCompactedError,
      );
      expect(await failure(behind.advance(db.knex, { orderSeq: 5, generation: 1 }))).to.be.instanceOf(
        LogCompactedError,
      );
      expect(await failure(bookAt(db, { orderSeq: 5, generation: 1 }))).to.be.instanceOf(LogCompactedError);
      expect(await failure(bookAt(db, { orderSeq: 12, generation: 1 }))).to.be.instanceOf(RangeError);
      expect((await bookAt(db, { orderSeq: 9, generation: 1 })).open.flat()).to.have.length(9);
    });

    it('has its share of the database shown, by rows of the last day and bytes of each', async () => {
      const logs = logsOf(opens(40));
      // Whose files no other test has grown.
      db = await openBare();
      await migrate(db);
      await store(db, await acquireWriter(db, 'order'), logs);
      // Rows are made 10 ms apart, from 10 ms on.
      const { bytes, shares, otherBytes } = await readStorage(db, DAY_MS + 300);
      const orders = shares.find((share) => share.name === 'order rows')!;
      expect(orders).to.include({ count: 40, lastDay: 10, bytesLastDay: 10 * orders.bytesEach });
      expect(orders.bytesEach).to.be.within(100, 3_000);
      expect(bytes).to.be.greaterThan(40 * orders.bytesEach);
      expect(shares.find((share) => share.name === 'fills')).to.include({ count: 0, bytesEach: 0, bytesLastDay: 0 });
      expect(otherBytes).to.be.within(1, bytes);
      // What is in no share must not grow with trading: these are the tables whose size is that of the platform.
      const sizes = await tableBytes(db);
      const others = [...sizes.keys()].filter((table) => !SHARES.some(({ tables }) => tables.includes(table)));
      expect(others.filter((table) => !/^(knex_|sqlite_)/.test(table))).to.have.members([
        ...[
          'meta',
          'writers',
          'operator_log',
          'markets',
          'custody_events',
          'halts',
          'balances',
          'suspense',
          'suspense_assignments',
          'token_findings',
          'claims',
          'claim_changes',
        ],
        ...[
          'taker_fees',
          'settlements',
          'settlement_outcomes',
          'settlement_costs',
          'reversals',
          'orphaned_rows',
          'capital_origins',
        ],
        ...[
          'fold_position',
          'folded_signers',
          'folded_makers',
          'folded_agents',
          'scan_times',
          'swap_reverts',
          'swap_executors',
          'pair_gains',
        ],
      ]);
      for (const { tables } of SHARES) expect([...sizes.keys()]).to.include.members([...tables]);
    });

    it('loses nothing when it is killed in the middle', async () => {
      const acts = fc.sample(act, { numRuns: 90, seed: 7 });
      const logs = logsOf([...opens(5), ...acts]);
      await store(db, writer, logs);
      const expected = await stateOf(db);
      await writer.release();
      const { url, schema = '-' } = locationOf(db);
      const to = [`${logs.rows.length - 1}`, `${logs.generations.length}`];
      let kills = 0;
      for (let done = false; !done;) {
        const args = ['--import', 'tsx', 'test/support/children/compaction-child.ts', url, schema, ...to];
        const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
        child.stdin.on('error', () => undefined);
        const ended = once(child, 'exit');
        let steps = 0;
        for await (const line of createInterface({ input: child.stdout })) {
          if (line === 'done') done = true;
          steps += 1;
          // So that it is on its way when it is killed, and no further than one step on.
          child.stdin.write('go\n');
          if (steps === 4 + kills && kills < 3) {
            child.kill('SIGKILL');
            kills += 1;
            break;
          }
        }
        const [code] = (await ended) as [number | null];
        expect(code, 'exit code').to.be.oneOf([0, null]);
        expect(await stateOf(db)).to.deep.equal(expected);
      }
      expect(kills).to.equal(3);
      expect((await readCompactionPosition(db.knex)).orderSeq).to.equal(logs.rows.length - 1);
    });
  });
});
