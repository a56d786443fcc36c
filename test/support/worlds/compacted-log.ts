/** Order logs that were drawn at random, and what of them compaction must keep. */
import fc from 'fast-check';
import type { Knex } from 'knex';
import { DAY_MS } from '../../../core/book/schedules.js';
import type { Address, CloseReason, OrderEffect, OrderFill, OrderLogRow, Side } from '../../../core/types.js';
import { compactStep, type CompactionBounds, type CompactionLimits } from '../../../ledger/orders/compaction.js';
import { createFollower } from '../../../ledger/orders/follower.js';
import { insertMarkets } from '../../../ledger/chain/markets.js';
import { appendOrderRows } from '../../../ledger/orders/order-log.js';
import type { Db, Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import type { Stored } from '../../../ledger/db/tables.js';
import { loadState } from '../../../server/orders/state.js';
import { coarseMarkets, MAKERS } from '../markets.js';
import type { OpenTestDb } from '../db.js';

export const markets = coarseMarkets();
export const FAR_MS = Number.MAX_SAFE_INTEGER;
export const LIMITS: CompactionLimits = { effects: 5, generations: 2, closedOrders: 2_000 };

export type Act =
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

export const act = fc.oneof(
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
export function logsOf(acts: readonly Act[]): Logs {
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
export async function store(db: Db, writer: Writer, { rows, generations }: Logs): Promise<void> {
  await writer.tx(async (tx) => {
    for (const table of ['order_log', 'generations', 'order_fills', 'markets', 'market_progress'])
      await tx(table).delete();
    for (const table of ['reversals', 'orphaned_rows']) await tx(table).delete();
    for (const table of ['fold_position', 'folded_orders', 'folded_signers', 'folded_makers', 'folded_agents'])
      await tx(table).delete();
    await insertMarkets(tx, markets, 1);
    await appendOrderRows(tx, rows);
    await insertGenerations(tx, generations, 1);
  });
}

async function insertGenerations(
  tx: Knex.Transaction,
  generations: readonly (readonly OrderFill[])[],
  first: number,
): Promise<void> {
  for (const [i, fills] of generations.entries()) {
    const generation = first + i;
    await tx('generations').insert(generationRow(generation));
    for (const [part, { oid, market, side, maker: owner, priceTicks, baseUnits }] of fills.entries()) {
      const counters = { market, fill_seq: generation, generation };
      await tx('order_fills').insert({
        ...counters,
        oid,
        part_no: part,
        leg_no: 0,
        tid: generation * 10 + part,
        maker: owner,
        side,
        price_ticks: priceTicks.toString(),
        base_units: baseUnits.toString(),
        start_base_units: '0',
      });
      await tx('market_progress')
        .insert({ ...counters, ask_volume_units: `${generation}`, bid_volume_units: '0' })
        .onConflict(['market', 'generation'])
        .ignore();
    }
  }
}

const generationRow = (generation: number): Stored<'generations'> => ({
  generation,
  from_block: generation,
  to_block: generation,
  block_timestamp_ms: generation * 1_000,
  scanned_ms: generation * 1_000,
  observed_head: generation,
  observed_head_timestamp_ms: generation * 1_000,
  block_hash: `0x${generation}`,
});

/** More generations after the last one, as the watcher adds them. */
export async function appendGenerations(db: Db, generations: readonly (readonly OrderFill[])[]): Promise<void> {
  await db.knex.transaction(async (tx) => insertGenerations(tx, generations, (await newestGeneration(tx)) + 1));
}

const newestGeneration = async (tx: Knex.Transaction): Promise<number> =>
  (await tx('generations').orderBy('generation', 'desc').first())?.generation ?? 0;

/** Reverses all generations after the kept one, as far as the order log's readers see it. */
export async function takeBack(db: Db, keptGeneration: number): Promise<void> {
  await db.knex.transaction(async (tx) => {
    const toBlock = await newestGeneration(tx);
    const reversal = toBlock + 1;
    let rowNo = 0;
    for (const table of ['order_fills', 'market_progress'] as const) {
      const rows: { generation: number }[] = await tx(table).where('generation', '>', keptGeneration).select();
      for (const row of rows) {
        rowNo += 1;
        const payload = JSON.stringify(row);
        const { generation } = row;
        await tx('orphaned_rows').insert({ reversal, row_no: rowNo, generation, table_name: table, payload });
      }
      await tx(table).where('generation', '>', keptGeneration).delete();
    }
    await tx('generations').insert(generationRow(reversal));
    await tx('reversals').insert({
      ...{ generation: reversal, kept_generation: keptGeneration, from_block: keptGeneration + 1, to_block: toBlock },
      ...{ depth: 0, time_ms: 1, operator_seq: 1, clears_halt_no: 0 },
    });
  });
}

/** All that a gateway holds of the order log. Of a filled order only that it is: sizes taken off it before or after don't matter any more. */
export async function stateOf(db: Db) {
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

export async function bookAt(db: Db, cut: { orderSeq: number; generation: number }) {
  const follower = createFollower(markets);
  await follower.advance(db.knex, cut);
  return {
    open: MAKERS.map((one) => follower.book.openOrders(one)),
    progress: markets.map(({ index }) => follower.progress(index)),
    armed: [...follower.book.armed()].sort(),
  };
}

/** A block of each of the first `count` generations, a second apart. */
export async function storeBlocks(db: Db, count: number): Promise<void> {
  await db.knex('blocks').insert(
    Array.from({ length: count }, (_, i) => ({
      number: i + 1,
      timestamp_sec: i + 1,
      generation: i + 1,
      hash: `0x${i + 1}`,
      parent_hash: `0x${i}`,
    })),
  );
}

/** A curve, as far as compaction looks at it. */
export async function storeCurve(
  db: Db,
  { seq, cut, deadlineSec }: { seq: number; cut: { orderSeq: number; generation: number }; deadlineSec: number },
): Promise<void> {
  const texts = ['trims', 'snapshot_hash', 'ask_words', 'bid_words', 'words_hash', 'tx_key'];
  await db.knex('publications').insert({
    market: 0,
    seq,
    base_seq: seq,
    cut_order_seq: cut.orderSeq,
    cut_generation: cut.generation,
    cut_time_ms: 0,
    fill_seq: 0,
    ask_volume_units: '0',
    bid_volume_units: '0',
    deadline_sec: deadlineSec,
    prepared_ms: 0,
    ...Object.fromEntries(texts.map((column) => [column, 'x'])),
  });
}

export async function compact(writer: Writer, bounds: CompactionBounds, limits = LIMITS): Promise<void> {
  for (;;) {
    const step = await writer.tx((tx) => compactStep(tx, bounds, limits));
    if (step.orderRows === 0 && step.generations === 0) return;
  }
}

/** Within a `describe`: a database and its writer for each test. */
export function compactedLog(open: OpenTestDb) {
  let db: Db;
  let writer: Writer;

  beforeEach(async () => {
    db = await open();
    writer = await acquireWriter(db, 'order');
  });

  const opens = (count: number): Act[] =>
    Array.from({ length: count }, () => ({ kind: 'open', maker: 0, market: 0, sizeLots: 5n, cloid: false }));

  return {
    get db() {
      return db;
    },
    set db(value) {
      db = value;
    },
    get writer() {
      return writer;
    },
    opens,
  };
}
