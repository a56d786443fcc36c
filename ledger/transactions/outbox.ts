/** Signed transactions, durable before they are broadcast, so that a restart sends the very same bytes again. */
import type { Knex } from 'knex';
import type { Address, Hex } from '../../core/types.js';
import { checkLimit } from '../db/columns.js';
import type { OutboxRow, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A stored transaction, and what became of it as far as its keeper knows. */
export interface ListedOutboxRow extends OutboxRow {
  /** The chain has used its nonce, or it was given up. */
  finished: boolean;
  /** Of a key that is not in use any more, and can't do anything any more. */
  givenUp: boolean;
}

/** `finished`: nothing is known, or the chain has used the nonce. */
const [OPEN, USED] = [0, 1];
/** `finished`: nothing can come of it any more. */
export const GIVEN_UP = 2;

/**
 * Stores a signed transaction, before its first broadcast. One nonce may have several rows, its replacements; each has a hash of
 * its own, which is unique.
 */
export async function insertOutbox(tx: Knex.Transaction, row: OutboxRow): Promise<void> {
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

/** What a signer has signed and the chain has not used yet, as far as its keeper knows. */
export interface Unmined {
  signer: Address;
  /** Nonces, whatever their number of replacements. */
  count: number;
  /** When the oldest transaction was signed; null without any. */
  oldestSentMs: number | null;
}

/** Every signer that ever signed, by address; the number of its old transactions does not matter. */
export async function readUnmined(q: Queryable): Promise<Unmined[]> {
  const unmined: Unmined[] = [];
  for (let last = ''; ;) {
    const next = await q('outbox').where('signer', '>', last).orderBy('signer').first('signer');
    if (next === undefined) return unmined;
    last = next.signer;
    const row = (await q('outbox')
      .where({ signer: next.signer, finished: OPEN })
      .countDistinct({ count: 'nonce' })
      .min({ oldest: 'sent_ms' })
      .first()) as { count: number; oldest: number | null };
    unmined.push({ signer: next.signer, count: row.count, oldestSentMs: row.oldest });
  }
}

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

/** Marks transactions as given up: of a key that is not in use any more, and without any effect if they were mined after all. */
export async function giveUpOutbox(tx: Knex.Transaction, hashes: readonly Hex[]): Promise<void> {
  for (const hash of hashes) await tx('outbox').where({ hash, finished: OPEN }).update({ finished: GIVEN_UP });
}

/** Signers but one that have called a contract, and of whom a transaction is neither done with nor given up; at most 16. */
export async function otherSigners(q: Queryable, contract: Address, own: Address): Promise<Address[]> {
  const signers = (await readUnmined(q)).filter(({ signer, count }) => signer !== own && count > 0);
  const serving: Address[] = [];
  for (const { signer } of signers) {
    const row: unknown = await q('outbox').where({ signer, to_address: contract }).first('hash');
    if (row !== undefined) serving.push(signer);
  }
  return serving.slice(0, 16);
}

/** Takes `finishOutbox` and `giveUpOutbox` back from `nonce` on: the chain has dropped those blocks, or the key is in use again. */
export async function reopenOutbox(tx: Knex.Transaction, signer: Address, nonce: number): Promise<void> {
  await tx('outbox')
    .where({ signer })
    .whereNot({ finished: OPEN })
    .where('nonce', '>=', nonce)
    .update({ finished: OPEN });
}

/** Highest nonce that was ever signed and stored for the signer, null before the first. */
export async function lastNonce(q: Queryable, signer: Address): Promise<number | null> {
  const row = (await q('outbox').where({ signer }).max({ last: 'nonce' }).first()) as { last: number | null };
  return row.last;
}

/** Highest nonce of the signer that the chain has used as far as its keeper knows, null before the first. */
export async function lastFinishedNonce(q: Queryable, signer: Address): Promise<number | null> {
  const row = (await q('outbox').where({ signer, finished: USED }).max({ last: 'nonce' }).first()) as {
    last: number | null;
  };
  return row.last;
}

/** Whether a transaction of this act was ever signed and stored. */
export async function wasSigned(q: Queryable, txKey: string): Promise<boolean> {
  return (await q('outbox').where({ tx_key: txKey }).first('hash')) !== undefined;
}
