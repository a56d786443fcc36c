/**
 * The outbox of a PostgreSQL database in partitions by time, so that old posts can be taken out of it at once. Only the newest partition has no end:
 * a row that is signed now always has a place, whether or not anybody cuts.
 */
import { z } from 'zod';
import type { Hex } from '../../core/types.js';
import { toSafeInt } from '../../core/amounts.js';
import { sendForRows } from '../db/dialects.js';
import { databaseErrorCode } from '../errors.js';
import type { Db, OperatorRow, Queryable, Transaction } from '../types.js';
import {
  HOLD_MS,
  PartitionError,
  STATEMENT_CANCELLED,
  alone,
  lockOutbox,
  locked,
  lockedAct,
  requirePostgres,
  tooLong,
} from './partition-locks.js';
import { copyStates, countRows, countStates, hashRows, type CheckRows } from './partition-rows.js';

/** What left with a detached partition: how many rows it had, how many of them stayed, and a hash over all of them. */
interface DetachedRows {
  rows: number;
  kept: number;
  digest: Hex;
}

/** Rows that were signed from `fromMs` on and before `toMs`; null where there is no bound. */
export interface Partition {
  no: number;
  fromMs: number | null;
  toMs: number | null;
  /** What it takes in the database, indexes included. */
  bytes: number;
  /** Null while all its rows are there. */
  detached: DetachedRows | null;
}

const DAY_MS = 86_400_000;
/**
 * What a bound is proven by while a table is no partition, so that it becomes one without being read under the lock. Never of a table that
 * takes rows: it would refuse them.
 */
const BOUND = 'outbox_bound';

const nameOf = (no: number): string => `outbox_part_${no}`;
const detachedName = (no: number): string => `${nameOf(no)}_detached`;
const keptName = (no: number): string => `${nameOf(no)}_kept`;

/** All partitions, oldest first; none while the outbox is not divided. Throws PartitionError `NOT_POSTGRESQL`. */
export async function readPartitions(db: Db): Promise<Partition[]> {
  requirePostgres(db);
  const rows = await sendForRows<{ name: string; bound: string; bytes: number }>(db.knex, PARTITIONS);
  const partitions: Partition[] = [];
  for (const { name, bound, bytes } of rows) {
    const [, no = ''] = /^outbox_part_(\d+)$/.exec(name) ?? [];
    const [, from, to] = /FROM \((?:MINVALUE|'(\d+)')\) TO \((?:MAXVALUE|'(\d+)')\)/.exec(bound) ?? [];
    const range = {
      fromMs: from === undefined ? null : toSafeInt(from),
      toMs: to === undefined ? null : toSafeInt(to),
    };
    partitions.push({ no: toSafeInt(no), ...range, bytes, detached: await readDetached(db.knex, name) });
  }
  return partitions.sort((a, b) => a.no - b.no);
}

const PARTITIONS = `select part.relname as name, pg_get_expr(part.relpartbound, part.oid) as bound, pg_total_relation_size(part.oid) as bytes
  from pg_inherits join pg_class as part on part.oid = inhrelid where inhparent = 'outbox'::regclass`;

const noteSchema = z.strictObject({ rows: z.int(), kept: z.int(), digest: z.string().regex(/^0x[0-9a-f]{64}$/) });

/** How often a partition was detached or attached; under the lock of the outbox, the act that is being noted counts as well. */
async function countActs(q: Queryable, name: string): Promise<number> {
  const sql = `select count(*) as count from operator_log where item = ? and kind in ('detachPartition', 'attachPartition')`;
  return (await sendForRows<{ count: number }>(q, sql, [name]))[0]?.count ?? 0;
}

/** What the operator log says of a partition: its newest act decides. */
async function readDetached(q: Queryable, name: string): Promise<DetachedRows | null> {
  const [act] = await sendForRows<{ kind: OperatorRow['kind']; note: string }>(
    q,
    `select kind, note from operator_log where item = ? and kind in ('detachPartition', 'attachPartition')
      order by operator_seq desc limit 1`,
    [name],
  );
  if (act?.kind !== 'detachPartition') return null;
  const { digest, ...counts } = noteSchema.parse(JSON.parse(act.note));
  return { ...counts, digest: digest as Hex };
}

/**
 * Ends the newest partition at the end of tomorrow (UTC) and begins the next one there; an outbox that is not divided becomes the first one.
 * Nothing is written anew. The newest partition is read once while nobody writes, for `holdMs` at most (0: as long as it takes), and everything is
 * done in one transaction: whatever ends it, the outbox is as before, and takes every row. Where the newest one begins later than that, nothing is
 * done. Throws PartitionError `NOT_POSTGRESQL`, `ROWS_AHEAD` when a row says that it was signed later than the end, `TOO_LONG`, `CHANGED`, `BUSY`,
 * and `LOCKED` while others hold the table.
 */
export const cutOutbox = (db: Db, nowMs: number, { holdMs = HOLD_MS } = {}): Promise<Partition[]> =>
  alone(db, async () => {
    const before = await readPartitions(db);
    const newest = before.at(-1);
    // Bounds lie a day ahead at least, so that what is signed while this runs is within them.
    const atMs = (Math.floor(nowMs / DAY_MS) + 2) * DAY_MS;
    if (newest !== undefined && newest.fromMs !== null && newest.fromMs >= atMs) return before;
    const table = newest === undefined ? 'outbox' : nameOf(newest.no);
    const next = (newest?.no ?? 1) + 1;
    if (newest === undefined) await indexByTime(db);
    // Attaching reads the same under the lock, and finds it in memory then.
    const [ahead] = await sendForRows<{ count: number }>(
      db.knex,
      `select count(*) as count from ${table} where sent_ms >= ?`,
      [atMs],
    );
    if (ahead !== undefined && ahead.count > 0) throw rowsAhead(atMs);
    try {
      await locked(db, async (tx) => {
        await lockOutbox(tx);
        if ((await sendForRows(tx, PARTITIONS)).length !== before.length)
          throw new PartitionError('CHANGED', 'the outbox was cut meanwhile');
        await tx.raw(`set local statement_timeout = ${holdMs}`);
        if (newest === undefined) await becomeFirst(tx);
        else await tx.raw('alter table outbox detach partition ??', [table]);
        await attach(tx, nameOf(next - 1), { fromMs: newest?.fromMs ?? null, toMs: atMs });
        await tx.raw(`create table ?? partition of outbox for values from (${atMs}) to (maxvalue)`, [nameOf(next)]);
      });
    } catch (error) {
      const code = databaseErrorCode(error);
      if (code === '23514') throw rowsAhead(atMs);
      if (code === STATEMENT_CANCELLED) throw tooLong(holdMs);
      throw error;
    }
    return readPartitions(db);
  });

function rowsAhead(atMs: number): PartitionError {
  const end = new Date(atMs).toISOString();
  return new PartitionError('ROWS_AHEAD', `transactions were signed after ${end}: the clock of a keeper was ahead`);
}

/** The key of a divided table has to name what it is divided by. Built beside the writers, before anything is locked. */
async function indexByTime(db: Db): Promise<void> {
  await db.knex.raw('drop index concurrently if exists outbox_part_1_key');
  await db.knex.raw('create unique index concurrently outbox_part_1_key on outbox (hash, sent_ms)');
}

/** Turns the table into a partition to be, and makes a divided one with its name and its indexes. Rights are not copied. */
async function becomeFirst(tx: Transaction): Promise<void> {
  const name = nameOf(1);
  const indexes = await sendForRows<{ name: string; definition: string }>(
    tx,
    `select kind.relname as name, pg_get_indexdef(kind.oid) as definition from pg_index
      join pg_class as kind on kind.oid = indexrelid
      where indrelid = 'outbox'::regclass and not indisprimary and kind.relname <> 'outbox_part_1_key' order by 1`,
  );
  await tx.raw('alter table outbox rename to ??', [name]);
  for (const index of indexes)
    await tx.raw('alter index ?? rename to ??', [index.name, index.name.replace('outbox', name)]);
  await tx.raw('alter table ?? drop constraint outbox_pkey', [name]);
  await tx.raw('alter table ?? add constraint ?? primary key using index outbox_part_1_key', [name, `${name}_pkey`]);
  await tx.raw('create table outbox (like ?? including defaults) partition by range (sent_ms)', [name]);
  await tx.raw('alter table outbox add primary key (hash, sent_ms)');
  for (const { definition } of indexes) await tx.raw(definition);
}

interface Range {
  fromMs: number | null;
  toMs: number | null;
}

async function attach(tx: Transaction, name: string, { fromMs, toMs }: Range): Promise<void> {
  const bounds = `from (${fromMs ?? 'minvalue'}) to (${toMs ?? 'maxvalue'})`;
  await tx.raw(`alter table outbox attach partition ?? for values ${bounds}`, [name]);
}

async function addBound(tx: Transaction, name: string, { fromMs, toMs }: Range): Promise<void> {
  const parts = [fromMs === null ? [] : `sent_ms >= ${fromMs}`, toMs === null ? [] : `sent_ms < ${toMs}`].flat();
  await tx.raw(`alter table ?? add constraint ?? check (${parts.join(' and ')})`, [name, BOUND]);
}

async function dropBound(tx: Queryable, name: string): Promise<void> {
  await tx.raw('alter table if exists ?? drop constraint if exists ??', [name, BOUND]);
}

/** A partition that may be detached, its rows to be checked. */
interface Candidate {
  no: number;
  range: Range;
  table: string;
  finalBlock: number;
}

/**
 * Finds a partition whose posts are final: their nonces are used, and what that cost is known from a block up to `finalBlock`. Throws PartitionError
 * `NO_PARTITION`, `NEWEST_PARTITION`, `NOT_OVER` while rows may still come, `IS_DETACHED`, and `NOT_FINAL`.
 */
export async function findCandidate(
  db: Db,
  no: number,
  { nowMs, finalBlock }: { nowMs: number; finalBlock: number },
): Promise<Candidate> {
  const { fromMs, toMs, detached } = await findPartition(db, no);
  if (detached !== null) throw new PartitionError('IS_DETACHED', `partition ${no} is detached`);
  if (toMs === null) throw new PartitionError('NEWEST_PARTITION', `partition ${no} is the newest one; cut first`);
  if (nowMs < toMs)
    throw new PartitionError('NOT_OVER', `partition ${no} takes what is signed until ${new Date(toMs).toISOString()}`);
  const table = nameOf(no);
  const [open] = await sendForRows<{ count: number; first: string | null }>(
    db.knex,
    `select count(*) as count, min(tx_key) as first from ${table} as part where ${IS_POST} and finished <> 2 and not exists (
      select 1 from post_costs as cost where cost.signer = part.signer and cost.nonce = part.nonce
        and (cost.hash = '0x' or cost.block_number <= ?))`,
    [finalBlock],
  );
  if (open !== undefined && open.count > 0) {
    const message = `${open.count} posts of partition ${no} are not final, ${open.first} among them`;
    throw new PartitionError('NOT_FINAL', message);
  }
  return { no, range: { fromMs, toMs }, table, finalBlock };
}

const IS_POST = `part.tx_key like 'post:%' and exists (select 1 from publications as post where post.tx_key = part.tx_key)`;

/**
 * What stays: everything but posts; posts that nothing prepared here explains, that were given up, or of which no receipt was ever found; and
 * what tells the nonces of each signer.
 */
const KEPT = `with newest as (
    select signer, to_address, finished, max(nonce) as nonce from :table: group by signer, to_address, finished
  )
  select part.* from :table: as part
  join newest on newest.signer = part.signer and newest.to_address = part.to_address and newest.finished = part.finished
  where part.nonce = newest.nonce or part.finished <> 1 or not (${IS_POST}) or not exists (
    select 1 from post_costs as cost where cost.signer = part.signer and cost.nonce = part.nonce
      and cost.hash <> '0x' and cost.block_number <= :finalBlock)`;

/**
 * Takes a partition out of the outbox: its rows are checked and hashed, those that are still of use are copied into a small one that takes its
 * place, and the operator log says so. Under the lock only the rows' states are counted again. The table stays as `outbox_part_<no>_detached` until
 * it is dropped. The outbox is held for `holdMs` at most. Throws PartitionError `NOT_VERIFIED`, `IS_DETACHED`, `CHANGED` when a row came or changed
 * meanwhile, `BUSY`, `LOCKED`, and `TOO_LONG`.
 */
export const detachPartition = (
  db: Db,
  { no, range, table, finalBlock }: Candidate,
  { check, timeMs, holdMs = HOLD_MS }: { check: CheckRows; timeMs: number; holdMs?: number },
): Promise<DetachedRows> =>
  alone(db, async () => {
    const [kept, detachedTable] = [keptName(no), detachedName(no)];
    const acts = await countActs(db.knex, table);
    if ((await findPartition(db, no)).detached !== null)
      throw new PartitionError('IS_DETACHED', `partition ${no} is detached`);
    const counted = await countStates(db.knex, table);
    const { rows, digest } = await hashRows(db.knex, table, check);
    await db.knex.raw('drop table if exists ??', [kept]);
    try {
      await db.knex.raw('create table ?? (like outbox including defaults including indexes)', [kept]);
      await db.knex.raw(`insert into :kept: ${KEPT}`, { kept, table, finalBlock });
      await db.knex.transaction((tx) => addBound(tx, kept, range));
      await db.knex.raw('analyze ??', [kept]);
      const detached = { rows, kept: await countRows(db.knex, kept), digest };
      const act = {
        timeMs,
        kind: 'detachPartition',
        maker: null,
        note: JSON.stringify(detached),
        item: table,
      } as const;
      // What is counted again under the lock is counted in an index then, without a look at the rows.
      await db.knex.raw('vacuum (analyze) ??', [table]);
      await lockedAct(db, act, holdMs, async (tx, limitHold) => {
        const isSame =
          (await countActs(tx, table)) === acts + 1 &&
          (await countStates(tx, table)) === counted &&
          (await countRows(tx, kept)) === detached.kept;
        if (!isSame) throw new PartitionError('CHANGED', `partition ${no} has changed`);
        await limitHold();
        await copyStates(tx, table, kept);
        await limitHold();
        await tx.raw('alter table outbox detach partition ??', [table]);
        await tx.raw('alter table ?? rename to ??', [table, detachedTable]);
        await tx.raw('alter table ?? rename to ??', [kept, table]);
        await attach(tx, table, range);
        await dropBound(tx, table);
      });
      return detached;
    } catch (error) {
      // What went wrong first is what is said; the next detach drops what is left here.
      await db.knex.raw('drop table if exists ??', [kept]).catch(() => {});
      throw error;
    }
  });

/**
 * Puts a detached partition back, once its rows are shown to be those that left. Throws PartitionError `NO_PARTITION`, `NOT_DETACHED`, `NOT_VERIFIED` for a
 * table that is missing or holds other rows, `CHANGED`, `BUSY`, `LOCKED`, and `TOO_LONG` after `holdMs` under the lock of the outbox.
 */
export const attachPartition = (db: Db, no: number, timeMs: number, { holdMs = HOLD_MS } = {}): Promise<DetachedRows> =>
  alone(db, async () => {
    const acts = await countActs(db.knex, nameOf(no));
    const { fromMs, toMs, detached } = await findPartition(db, no);
    if (detached === null) throw new PartitionError('NOT_DETACHED', `partition ${no} is not detached`);
    const [table, detachedTable] = [nameOf(no), detachedName(no)];
    if (!(await hasColumns(db, detachedTable)))
      throw new PartitionError('NOT_VERIFIED', `there is no table ${detachedTable} with the columns of the outbox`);
    const found = await hashRows(db.knex, detachedTable, () => Promise.resolve());
    if (found.digest !== detached.digest)
      throw new PartitionError(
        'NOT_VERIFIED',
        `${detachedTable} has ${found.rows} rows with hash ${found.digest}; ${detached.rows} with ${detached.digest} left`,
      );
    const range = { fromMs, toMs };
    await db.knex.transaction(async (tx) => {
      await dropBound(tx, detachedTable);
      await addBound(tx, detachedTable, range);
      await addIndexes(tx, detachedTable);
    });
    for (const name of [table, detachedTable]) await db.knex.raw('analyze ??', [name]);
    const act = { timeMs, kind: 'attachPartition', maker: null, note: detached.digest, item: table } as const;
    await lockedAct(db, act, holdMs, async (tx, limitHold) => {
      if ((await countActs(tx, table)) !== acts + 1) throw new PartitionError('CHANGED', `partition ${no} has changed`);
      await copyStates(tx, table, detachedTable);
      await limitHold();
      await tx.raw(
        `insert into :to: select own.* from :from: as own where not exists (
          select 1 from :to: as there where there.hash = own.hash and there.sent_ms = own.sent_ms)`,
        { from: table, to: detachedTable },
      );
      await limitHold();
      await tx.raw('alter table outbox detach partition ??', [table]);
      await tx.raw('drop table ??', [table]);
      await tx.raw('alter table ?? rename to ??', [detachedTable, table]);
      await attach(tx, table, range);
      await dropBound(tx, table);
    });
    return detached;
  });

/** Builds the indexes of the outbox that a table lacks, which attaching it would build under the lock. */
async function addIndexes(tx: Transaction, table: string): Promise<void> {
  const indexesOf = async (name: string): Promise<{ columns: string; isPrimary: boolean }[]> =>
    sendForRows(
      tx,
      `select substring(pg_get_indexdef(indexrelid) from ' USING .*') as columns, indisprimary as "isPrimary"
        from pg_index where indrelid = '${name}'::regclass`,
    );
  const own = await indexesOf(table);
  for (const { columns, isPrimary } of await indexesOf('outbox')) {
    if (own.some((index) => index.columns === columns && index.isPrimary === isPrimary)) continue;
    if (isPrimary) await tx.raw('alter table ?? add primary key (hash, sent_ms)', [table]);
    else await tx.raw(`create index on ?? ${columns}`, [table]);
  }
}

async function findPartition(db: Db, no: number): Promise<Partition> {
  const found = (await readPartitions(db)).find((one) => one.no === no);
  if (found === undefined) throw new PartitionError('NO_PARTITION', `the outbox has no partition ${no}`);
  return found;
}

async function hasColumns(db: Db, table: string): Promise<boolean> {
  const columns = async (name: string): Promise<string> =>
    (
      await sendForRows<{ name: string }>(
        db.knex,
        `select column_name || ' ' || data_type as name from information_schema.columns
          where table_schema = current_schema() and table_name = ? order by ordinal_position`,
        [name],
      )
    )
      .map((row) => row.name)
      .join();
  return (await columns(table)) === (await columns('outbox'));
}
