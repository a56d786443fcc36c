/**
 * Compacts the oldest rows of the order log into the compacted book, a bounded number at a time. A step is one transaction of the order
 * log's writer: after a crash at any point, the log is either unchanged or one step shorter.
 */
import type { Knex } from 'knex';
import { createNonceSet } from '../../core/book/nonces.js';
import { createSchedules } from '../../core/book/schedules.js';
import type { Address, OrderLogRow } from '../../core/types.js';
import { liveRanges } from '../chain/branches.js';
import { highest, numberIn } from '../db/aggregates.js';
import { chunks } from '../db/columns.js';
import { allOrFirstError, sendChange } from '../db/dialects.js';
import { decodeNonces, readCompactionPosition, type CompactionPosition } from './compacted-book.js';
import { createCompactedOrders, type CompactedOrders } from './compacted-orders.js';
import { createForgetting } from './forgetting.js';
import { readForgottenOrders } from './forgotten-orders.js';
import { lastGeneration } from '../chain/generations.js';
import { readGenerationEffects, readMarkets } from '../chain/ledger-log.js';
import { lastOrderSeq, readOrderRows } from './order-log.js';
import { readReversals } from '../chain/reversals.js';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** How far the logs may be compacted. */
export interface CompactionBounds {
  orderSeq: number;
  generation: number;
  /** Order rows after this time stay, but for the surplus. */
  beforeMs: number;
  /** Rows beyond the most that are kept: up to this number, and none after this time. Absent while there are none. */
  surplus?: { orderSeq: number; beforeMs: number };
}

/** A bound lies at most so many live generations ahead; the next step has the next bound. */
const GENERATIONS_AHEAD = 2_000;

interface CompactionRule {
  nowMs: number;
  /** Rows younger than this stay, but for the surplus. */
  retentionMs: number;
  /** Rows up to this number are the surplus, beyond the most that are kept; 0: there is none. */
  surplusSeq: number;
  /** Rows younger than this stay, also of the surplus. */
  leastAgeMs: number;
  /** Most blocks that a reorganisation may take back. */
  reorgBlocks: number;
}

/**
 * How far the order log may be compacted: each publication that can still be executed after a reorganisation of `reorgBlocks` keeps the
 * rows that its book is rebuilt from, however old or many they are. Null while nothing may be compacted. The newest order row always stays,
 * so that the log never looks empty.
 */
export async function compactionBounds(q: Queryable, rule: CompactionRule): Promise<CompactionBounds | null> {
  const head = await lastGeneration(q);
  if (head === null) return null;
  const horizon = head.toBlock - rule.reorgBlocks;
  const block = await q('blocks').where({ number: horizon }).first();
  if (block === undefined) return null;
  const live = await q('publications')
    .where('deadline_sec', '>', block.timestamp_sec)
    .min({ orderSeq: 'cut_order_seq', generation: 'cut_generation' })
    .first();
  const { nowMs, surplusSeq, leastAgeMs } = rule;
  const beforeMs = nowMs - rule.retentionMs;
  const surplus = surplusSeq === 0 ? null : { orderSeq: surplusSeq, beforeMs: nowMs - leastAgeMs };
  const upTo = Math.min(head.generation, numberIn(live, 'generation') ?? head.generation);
  const at = await readCompactionPosition(q);
  const ranges = liveRanges(await readReversals(q), head.generation);
  // Of the next ones alone: beyond them lie the generations of the whole retention, which a search from the newest would pass in each step.
  const next = q('generations')
    .where((any) => {
      for (const { from, to } of ranges) void any.orWhereBetween('generation', [from, to]);
    })
    .where('generation', '>', at.generation)
    .where('generation', '<=', upTo)
    .orderBy('generation')
    .limit(GENERATIONS_AHEAD)
    .select('generation', 'to_block', 'block_timestamp_ms');
  const settled = q
    .from(next.as('next'))
    .where('to_block', '<=', horizon)
    .where('block_timestamp_ms', '<=', Math.max(beforeMs, surplus === null ? 0 : await timeOfSurplus(q, surplus)));
  const newest = (await lastOrderSeq(q)) - 1;
  return {
    orderSeq: Math.min(numberIn(live, 'orderSeq') ?? newest, newest),
    generation: (await highest(settled, 'generation')) ?? at.generation,
    beforeMs,
    ...(surplus !== null && { surplus }),
  };
}

type Surplus = NonNullable<CompactionBounds['surplus']>;

/** Number of the newest row of the surplus while at most the newest `maxRows` rows are kept for their age; 0 without one, or at `maxRows` 0. */
export async function surplusSeqOf(q: Queryable, maxRows: number): Promise<number> {
  return maxRows === 0 ? 0 : Math.max(0, (await lastOrderSeq(q)) - maxRows);
}

/** Until when fills are compacted with the surplus, since orders that they close would stay open in the compacted book meanwhile. */
async function timeOfSurplus(q: Queryable, { orderSeq, beforeMs }: Surplus): Promise<number> {
  const row = await q('order_log').where({ order_seq: orderSeq }).first();
  // Compacted by a step before, whose fills may have been too many for it.
  const timeMs = row?.time_ms ?? (await readCompactionPosition(q)).timeMs;
  return Math.min(timeMs, beforeMs);
}

export interface CompactionLimits {
  /** Rows are read until they have this many effects together. */
  effects: number;
  generations: number;
  /** Closed orders without a fill that stay known per maker. */
  closedOrders: number;
}

/** What was compacted; zeros when nothing was left to compact. */
export interface CompactionStep {
  orderRows: number;
  /** Of these, those that went because of their number: they were younger than the retention. */
  surplusRows: number;
  generations: number;
}

interface StepDone extends CompactionStep {
  /** Of its rows. */
  effects: number;
}

/**
 * One step towards the bounds, inside a transaction of the order log's writer. The state after it depends only on how far it has come,
 * not on the size of the steps, nor on what `forgetting` remembers of the ones before.
 */
export async function compactStep(
  tx: Knex.Transaction,
  bounds: CompactionBounds,
  limits: CompactionLimits,
  forgetting = createForgetting(),
): Promise<StepDone> {
  const [at, markets] = await allOrFirstError([readCompactionPosition(tx), readMarkets(tx)]);
  const orders = createCompactedOrders(tx, markets, forgetting);
  const rows = await takeRows(tx, at, bounds, { effects: limits.effects, isNew: forgetting.isNew });
  const afterRows = await compactRows(tx, at, rows, orders);
  const generation = await compactGenerations(tx, afterRows, bounds.generation, limits.generations, orders);
  const surplusRows = rows.filter(({ timeMs }) => timeMs > bounds.beforeMs).length;
  const effects = rows.reduce((sum, row) => sum + row.effects.length, 0);
  const step = { orderRows: rows.length, surplusRows, generations: generation - at.generation, effects };
  if (step.orderRows === 0 && step.generations === 0) return step;
  const { orderSeq, oid, timeMs } = afterRows;
  await allOrFirstError([
    orders.store(limits.closedOrders),
    sendChange(tx, MOVE, [orderSeq, generation, oid, timeMs, Math.max(at.cutGeneration, generation)]),
    sendChange(tx, 'delete from order_log where order_seq <= ?', [orderSeq]),
  ]);
  return step;
}

const MOVE =
  'insert into fold_position (id, order_seq, generation, oid, time_ms, cut_generation) values (1, ?, ?, ?, ?, ?) ' +
  'on conflict (id) do update set order_seq = excluded.order_seq, generation = excluded.generation, oid = excluded.oid, ' +
  'time_ms = excluded.time_ms, cut_generation = excluded.cut_generation';

/** Rows that are read first; how many more a step needs is known from them. */
const FIRST_PAGE = 20;
const MAX_PAGE = 1_000;
/** Makers of which a step looks for the edge of their known orders: one takes a millisecond. */
const NEW_MAKERS = 20;

/** The oldest rows within the bounds; at least one when there is one. */
async function takeRows(
  q: Queryable,
  at: CompactionPosition,
  bounds: CompactionBounds,
  { effects, isNew }: { effects: number; isNew: (maker: Address) => boolean },
): Promise<OrderLogRow[]> {
  const taken: OrderLogRow[] = [];
  const newMakers = new Set<Address>();
  let left = effects;
  function take(row: OrderLogRow): boolean {
    const isFirst = taken.length === 0;
    if (!isOver(row, bounds) || (!isFirst && row.effects.length > left)) return false;
    if (isNew(row.maker) && row.effects.some(({ type }) => type === 'close')) newMakers.add(row.maker);
    if (!isFirst && newMakers.size > NEW_MAKERS) return false;
    taken.push(row);
    left -= Math.max(1, row.effects.length);
    return true;
  }
  for (let limit = FIRST_PAGE; left > 0;) {
    const after = at.orderSeq + taken.length;
    if (bounds.orderSeq <= after) break;
    const rows = await readOrderRows(q, { after, upTo: bounds.orderSeq, limit });
    if (!rows.every(take) || rows.length < limit) break;
    limit = Math.min(MAX_PAGE, Math.max(1, Math.ceil((left * taken.length) / (effects - left))));
  }
  return taken;
}

/** Whether a row is too old, or one too many. */
function isOver({ orderSeq, timeMs }: OrderLogRow, { beforeMs, surplus }: CompactionBounds): boolean {
  if (timeMs <= beforeMs) return true;
  return surplus !== undefined && orderSeq <= surplus.orderSeq && timeMs <= surplus.beforeMs;
}

async function compactRows(
  tx: Knex.Transaction,
  at: CompactionPosition,
  rows: readonly OrderLogRow[],
  orders: CompactedOrders,
): Promise<CompactionPosition> {
  if (rows.length === 0) return at;
  const after = { ...at };
  await orders.load(rows.flatMap(({ effects }) => effects.flatMap((one) => (one.type === 'reduce' ? [one.oid] : []))));
  for (const row of rows) {
    if (row.orderSeq !== after.orderSeq + 1) throw new RangeError(`order row ${after.orderSeq + 1} is missing`);
    after.orderSeq = row.orderSeq;
    after.timeMs = Math.max(after.timeMs, row.timeMs);
    orders.apply(row);
    for (const effect of row.effects) if (effect.type === 'open') after.oid = effect.oid;
  }
  await allOrFirstError([compactSigners(tx, rows), compactMakers(tx, rows), compactAgents(tx, rows)]);
  return after;
}

async function compactSigners(tx: Knex.Transaction, rows: readonly OrderLogRow[]): Promise<void> {
  const signers = [...new Set(rows.flatMap(({ signer }) => (signer === null ? [] : [signer])))];
  for (const part of chunks(signers)) {
    const stored = await tx('folded_signers')
      .whereIn('signer', part)
      .select<{ signer: Address; nonces: string }[]>('signer', 'nonces');
    const nonces = createNonceSet(new Map(stored.map((row) => [row.signer, decodeNonces(row.nonces)])));
    const within = new Set(part);
    for (const { signer, nonce } of rows) {
      if (signer !== null && nonce !== null && within.has(signer)) nonces.add(signer, nonce);
    }
    const next = part.map((signer) => ({ signer, nonces: JSON.stringify(nonces.of(signer)) }));
    await tx('folded_signers').insert(next).onConflict('signer').merge();
  }
}

async function compactMakers(tx: Knex.Transaction, rows: readonly OrderLogRow[]): Promise<void> {
  for (const part of chunks([...new Set(rows.map(({ maker }) => maker))])) {
    const stored = await tx('folded_makers').whereIn('maker', part).select();
    const armedBefore = stored.flatMap((row) => (row.armed_ms === null ? [] : [[row.maker, row.armed_ms] as const]));
    const dayOf = new Map(
      stored.flatMap((row) =>
        row.trigger_day === null ? [] : [[row.maker, { day: row.trigger_day, count: row.trigger_count }] as const],
      ),
    );
    const schedules = createSchedules(new Map(armedBefore), dayOf);
    const lastAction = new Map(stored.map((row) => [row.maker, row.last_action_ms]));
    const within = new Set(part);
    for (const row of rows.filter(({ maker }) => within.has(maker))) {
      if (row.signer !== null) lastAction.set(row.maker, row.timeMs);
      for (const effect of row.effects) {
        if (effect.type === 'schedule') schedules.set(row.maker, effect.timeMs, row.timeMs);
        if (effect.type === 'trigger') schedules.trigger(row.maker, effect.timeMs);
      }
    }
    const next = part.map((maker): Stored<'folded_makers'> => {
      const newest = schedules.newestDay(maker);
      return {
        maker,
        last_action_ms: lastAction.get(maker) ?? null,
        armed_ms: schedules.armed().get(maker) ?? null,
        trigger_day: newest?.day ?? null,
        trigger_count: newest?.count ?? 0,
      };
    });
    await tx('folded_makers').insert(next).onConflict('maker').merge();
  }
}

async function compactAgents(tx: Knex.Transaction, rows: readonly OrderLogRow[]): Promise<void> {
  for (const { orderSeq, maker: master, effects } of rows) {
    for (const effect of effects) {
      if (effect.type !== 'agent') continue;
      const { name, agent, sinceMs, validUntilMs } = effect;
      await tx('folded_agents').where({ master, name }).update({ is_live: 0 });
      if (agent === null) continue;
      const row: Stored<'folded_agents'> = {
        address: agent,
        master,
        name,
        since_ms: sinceMs,
        valid_until_ms: validUntilMs,
        approved_seq: orderSeq,
        is_live: 1,
      };
      await tx('folded_agents').insert(row).onConflict('address').merge();
    }
  }
}

/** Applies fills up to the bound, or to the generation before one that filled an order whose row is not compacted yet. */
async function compactGenerations(
  tx: Knex.Transaction,
  at: CompactionPosition,
  upTo: number,
  limit: number,
  orders: CompactedOrders,
): Promise<number> {
  if (upTo <= at.generation) return at.generation;
  const effects = await readGenerationEffects(tx, { after: at.generation, upTo, limit });
  const early = effects.findIndex(({ orderFills }) => orderFills.some(({ oid }) => oid > at.oid));
  const taken = early === -1 ? effects : effects.slice(0, early);
  const filling = taken.filter(({ orderFills }) => orderFills.length > 0);
  const oids = filling.flatMap(({ orderFills }) => orderFills.map(({ oid }) => oid));
  await orders.load(oids);
  const timeMsOf = new Map<number, number>();
  for (const part of chunks(filling.map(({ generation }) => generation))) {
    const times = await tx('generations').whereIn('generation', part).select('generation', 'block_timestamp_ms');
    for (const row of times) timeMsOf.set(row.generation, row.block_timestamp_ms);
  }
  const unknown = orders.unknown(oids);
  for (const order of unknown.length === 0 ? [] : await readForgottenOrders(tx, unknown)) {
    // When it was closed is no longer known: by its first fill at the latest, since it was forgotten before.
    const first = filling.find(({ orderFills }) => orderFills.some(({ oid }) => oid === order.oid))!;
    const timeMs = timeMsOf.get(first.generation)!;
    orders.restore({ ...order, placedMs: timeMs }, timeMs);
  }
  for (const { generation, orderFills } of filling) orders.fill(orderFills, timeMsOf.get(generation)!);
  return taken.at(-1)?.generation ?? at.generation;
}
