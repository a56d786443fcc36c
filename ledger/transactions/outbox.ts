/** Signed transactions, durable before they are broadcast, so that a restart sends the very same bytes again. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { highest } from '../db/aggregates.js';
import { checkLimit } from '../db/columns.js';
import { isSqlite, sendForRows } from '../db/dialects.js';
import { DuplicateRowError } from '../errors.js';
import type { OutboxRow, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A stored transaction, and its state as far as its keeper knows. */
export interface ListedOutboxRow extends OutboxRow {
  /** The chain has used its nonce, or it was given up. */
  finished: boolean;
  /** Its signing key is no longer in use, and it can have no effect any more. */
  givenUp: boolean;
}

/** Values of `finished`: the nonce is not known to be used, or the chain has used it. */
const [OPEN, USED] = [0, 1];
/** Value of `finished`: it can have no effect any more. */
export const GIVEN_UP = 2;

/**
 * Stores a signed transaction, before its first broadcast. One nonce may have several rows, its replacements; each has a hash of
 * its own, which is unique: on PostgreSQL it is looked up, since the key of an outbox that is divided by time can't say so. A second
 * one is a unique violation.
 */
export async function insertOutbox(tx: Knex.Transaction, row: OutboxRow): Promise<void> {
  const known: unknown = isSqlite(tx) ? undefined : await tx('outbox').where({ hash: row.hash }).first('nonce');
  if (known !== undefined) throw new DuplicateRowError(`transaction ${row.hash} is stored already`);
  await tx('outbox').insert({
    hash: row.hash,
    tx_key: row.txKey,
    signer: row.signer,
    nonce: row.nonce,
    to_address: row.to,
    raw: row.raw,
    sent_ms: row.sentMs,
    valid_until_sec: row.validUntilSec,
    max_fee_wei: row.maxFeeWei?.toString() ?? null,
    finished: OPEN,
  });
}

/** Unfinished rows of a signer: lowest nonce first, and of one nonce the oldest first. */
export async function readOutbox(q: Queryable, signer: Address): Promise<OutboxRow[]> {
  const rows = await ordered(q('outbox').where({ signer, finished: OPEN }));
  return rows.map(({ finished: _, givenUp: __, ...row }) => row);
}

/** Rows of a signer from `nonce` on, finished ones included, in the order of `readOutbox`. */
export async function readOutboxFrom(q: Queryable, signer: Address, nonce: number): Promise<ListedOutboxRow[]> {
  return ordered(q('outbox').where({ signer }).where('nonce', '>=', nonce));
}

/** Hashes of everything that was signed at a nonce. */
export async function readHashesAt(q: Queryable, signer: Address, nonce: number): Promise<Hex[]> {
  return (await q('outbox').where({ signer, nonce }).orderBy('sent_ms').select('hash')).map(({ hash }) => hash);
}

/** Everything that was signed at a nonce and sent since. */
export async function readSignedAt(q: Queryable, signer: Address, nonce: number, sinceMs: number): Promise<Hex[]> {
  const rows = await q('outbox').where({ signer, nonce }).where('sent_ms', '>=', sinceMs).select('raw');
  return rows.map(({ raw }) => raw);
}

/** The act behind a stored transaction. */
export async function readTxKey(q: Queryable, hash: Hex): Promise<string> {
  return (await q('outbox').where({ hash }).first('tx_key'))?.tx_key ?? '';
}

/** The newest rows of all signers, at most `limit` (1..10000), those of the highest nonces first. */
export async function listOutbox(
  q: Queryable,
  filter: { signer?: Address; unfinished?: boolean; limit: number },
): Promise<ListedOutboxRow[]> {
  const query = q('outbox')
    .orderBy([{ column: 'signer' }, { column: 'nonce', order: 'desc' }, { column: 'sent_ms', order: 'desc' }, 'hash'])
    .limit(checkLimit(filter.limit));
  if (filter.signer !== undefined) void query.where({ signer: filter.signer });
  if (filter.unfinished === true) void query.where({ finished: OPEN });
  return (await query.select()).map(fromRow);
}

/** Transactions of a signer that the chain has not mined yet, as far as its keeper knows. */
export interface Unmined {
  signer: Address;
  /** Number of nonces; replacements do not count. */
  count: number;
  /** When the oldest transaction was signed; null without any. */
  oldestSentMs: number | null;
}

/** Every signer that ever signed, by address; the number of its old transactions does not matter. */
export async function readUnmined(q: Queryable): Promise<Unmined[]> {
  const rows = await sendForRows<{ signer: Address; count: number; oldest: number | null }>(q, UNMINED);
  return rows.map(({ signer, count, oldest }) => ({ signer, count, oldestSentMs: oldest }));
}

/** Every signer of the outbox as `signers`, found one after the other through the index, whatever the number of rows. */
export const SIGNERS_CTE = `recursive signers (signer) as (
    select min(signer) from outbox
    union all
    select (select min(signer) from outbox where outbox.signer > signers.signer) from signers where signer is not null
  )`;

const UNMINED = `with ${SIGNERS_CTE}
  select signer,
    (select count(distinct nonce) from outbox where outbox.signer = signers.signer and finished = ${OPEN}) as count,
    (select min(sent_ms) from outbox where outbox.signer = signers.signer and finished = ${OPEN}) as oldest
  from signers where signer is not null order by signer`;

async function ordered(query: Knex.QueryBuilder<Stored<'outbox'>, Stored<'outbox'>[]>): Promise<ListedOutboxRow[]> {
  const rows = await query.orderBy([{ column: 'nonce' }, { column: 'sent_ms' }, { column: 'hash' }]).select();
  return rows.map(fromRow);
}

function fromRow(row: Stored<'outbox'>): ListedOutboxRow {
  return {
    txKey: row.tx_key,
    signer: row.signer,
    nonce: row.nonce,
    to: row.to_address,
    raw: row.raw,
    hash: row.hash,
    sentMs: row.sent_ms,
    validUntilSec: row.valid_until_sec,
    maxFeeWei: row.max_fee_wei === null ? null : BigInt(row.max_fee_wei),
    finished: row.finished !== OPEN,
    givenUp: row.finished === GIVEN_UP,
  };
}

/** Marks every row of the signer below `nonce` as finished: the chain has used those nonces, whichever of their rows was mined. */
export async function finishOutbox(tx: Knex.Transaction, signer: Address, nonce: number): Promise<void> {
  await tx('outbox').where({ signer, finished: OPEN }).where('nonce', '<', nonce).update({ finished: USED });
}

/** Marks transactions as given up: their key is no longer in use, and they would have no effect even if they were mined. */
export async function giveUpOutbox(tx: Knex.Transaction, hashes: readonly Hex[]): Promise<void> {
  for (const hash of hashes) await tx('outbox').where({ hash, finished: OPEN }).update({ finished: GIVEN_UP });
}

/** Signers other than one that have called a contract and have an unfinished transaction; at most 16. */
export async function otherSigners(q: Queryable, contract: Address, own: Address): Promise<Address[]> {
  const signers = (await readUnmined(q)).filter(({ signer, count }) => signer !== own && count > 0);
  const serving: Address[] = [];
  for (const { signer } of signers) {
    const row: unknown = await q('outbox').where({ signer, to_address: contract }).first('hash');
    if (row !== undefined) serving.push(signer);
  }
  return serving.slice(0, 16);
}

/** Undoes `finishOutbox` and `giveUpOutbox` from `nonce` on: the chain has dropped those blocks, or the key is in use again. */
export async function reopenOutbox(tx: Knex.Transaction, signer: Address, nonce: number): Promise<void> {
  await tx('outbox')
    .where({ signer })
    .whereNot({ finished: OPEN })
    .where('nonce', '>=', nonce)
    .update({ finished: OPEN });
}

/** Highest nonce that was ever signed and stored for the signer, null before the first. */
export async function lastNonce(q: Queryable, signer: Address): Promise<number | null> {
  return highest(q('outbox').where({ signer }), 'nonce');
}

/** Highest nonce of the signer that the chain has used as far as its keeper knows, null before the first. */
export async function lastFinishedNonce(q: Queryable, signer: Address): Promise<number | null> {
  return highest(q('outbox').where({ signer, finished: USED }), 'nonce');
}

/** Whether a transaction of this act was ever signed and stored. */
export async function wasSigned(q: Queryable, txKey: string): Promise<boolean> {
  return (await q('outbox').where({ tx_key: txKey }).first('hash')) !== undefined;
}
