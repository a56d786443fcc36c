/** The settlement log: settlements prepared before they are signed, and how each of them ended. Its checkpoints are in checkpoint-log.ts. */
import type { Knex } from 'knex';
import { maxBig } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { count, highest } from '../db/aggregates.js';
import { checkLimit, fromColumn, insertAll, toColumn } from '../db/columns.js';
import { isTakenBack, type Reversal } from '../chain/branches.js';
import { readClaimsOf } from '../chain/claims.js';
import { GIVEN_UP } from '../transactions/outbox.js';
import type { ClaimRow, CustodyEvent, Queryable, Settlement, SettlementOutcome } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A settlement as the database and the archive store it. */
export type SettlementRow = Stored<'settlements'>;

/** Number of the newest settlement, 0 before the first. */
export async function lastSettlementNo(q: Queryable): Promise<number> {
  return (await highest(q('settlements'), 'settlement_no')) ?? 0;
}

/** Settlements with `after` < settlementNo, lowest number first, at most `limit` (1..10000). */
export async function readSettlements(
  q: Queryable,
  { after, limit }: { after: number; limit: number },
): Promise<Settlement[]> {
  const rows = await q('settlements')
    .where('settlement_no', '>', after)
    .orderBy('settlement_no')
    .limit(checkLimit(limit))
    .select<SettlementRow[]>();
  return rows.map(settlementOf);
}

/** Appends prepared settlements, numbered without gaps by the caller, inside a transaction of the settlement log's writer. */
export async function insertSettlements(tx: Knex.Transaction, settlements: readonly Settlement[]): Promise<void> {
  await insertAll(tx, 'settlements', settlements.map(settlementRow));
}

/** A settlement as it is stored. */
export function settlementRow(one: Settlement): SettlementRow {
  return {
    settlement_no: one.settlementNo,
    maker: one.maker,
    token: one.token,
    amount_units: toColumn(one.amountUnits),
    basis: toColumn(one.basis),
    previous_units: toColumn(one.previousUnits),
    cut_generation: one.cutGeneration,
    cut_block: one.cutBlock,
    checkpoint_seq: one.checkpointSeq,
    prepared_ms: one.preparedMs,
    prepared_by: one.preparedBy,
    operator_seq: one.operatorSeq,
    tx_key: one.txKey,
  };
}

/**
 * Identifies a settlement within a deployment, independent of the number that a database gives it: by its claim, its time and its amounts.
 */
export function settlementKey(one: Settlement): string {
  return [one.maker, one.token, one.amountUnits, one.basis, one.preparedMs].join(' ');
}

/** Those of the given settlements that the database does not have, each once, compared by `settlementKey` and not by number. */
export async function missingSettlements(q: Queryable, archived: readonly Settlement[]): Promise<Settlement[]> {
  const missing = new Map<string, Settlement>();
  for (const one of archived) {
    const known = await q<SettlementRow>('settlements')
      .where({ maker: one.maker, token: one.token, prepared_ms: one.preparedMs })
      .where('amount_units', toColumn(one.amountUnits))
      .where('basis', toColumn(one.basis))
      .first('settlement_no');
    const key = settlementKey(one);
    if (known === undefined && !missing.has(key)) missing.set(key, one);
  }
  return [...missing.values()];
}

/**
 * Stores settlements of a lost database, so that what lands of them is explained, inside a transaction of the settlement log's writer. They
 * get this database's next numbers, and the settler waits for none of them: whether one may still land depends on the version of the claim
 * on-chain.
 */
export async function storeArchivedSettlements(
  tx: Knex.Transaction,
  lost: readonly Settlement[],
  nowMs: number,
): Promise<void> {
  const first = (await lastSettlementNo(tx)) + 1;
  const own = lost.map((one, i): Settlement => ({
    ...one,
    settlementNo: first + i,
    cutGeneration: 0,
    checkpointSeq: 0,
    preparedBy: 'archive',
    operatorSeq: null,
    txKey: `archived:${one.preparedMs}:${one.txKey}`,
  }));
  await insertSettlements(tx, own);
  await insertOutcomes(
    tx,
    own.map(({ settlementNo }) => ({ settlementNo, outcome: 'abandoned' })),
    nowMs,
  );
}

/** Appends how settlements ended, each once, inside a transaction of the settlement log's writer. */
export async function insertOutcomes(
  tx: Knex.Transaction,
  outcomes: readonly { settlementNo: number; outcome: SettlementOutcome }[],
  timeMs: number,
): Promise<void> {
  const rows = outcomes.map(({ settlementNo, outcome }) => ({ settlement_no: settlementNo, time_ms: timeMs, outcome }));
  await insertAll(tx, 'settlement_outcomes', rows);
}

/** Settlements whose end is not known, oldest first, at most `limit` (1..10000). */
export async function openSettlements(q: Queryable, limit = 10_000): Promise<Settlement[]> {
  const rows = await q('settlements as one')
    .leftJoin('settlement_outcomes as end', 'end.settlement_no', 'one.settlement_no')
    .whereNull('end.settlement_no')
    .orderBy('one.settlement_no')
    .limit(checkLimit(limit))
    .select<SettlementRow[]>('one.*');
  return rows.map(settlementOf);
}

/**
 * The most that an account may withdraw of each token, by token: its claim, or what is signed for it, which may land with the next block.
 * Claims in `changed` count instead of the stored ones.
 */
export async function withdrawableUnits(
  q: Queryable,
  account: Address,
  changed: readonly ClaimRow[] = [],
): Promise<ReadonlyMap<Address, bigint>> {
  const most = new Map<Address, bigint>();
  const claims = [...(await readClaimsOf(q, [account])), ...changed.filter(({ maker }) => maker === account)];
  for (const { token, claimUnits } of claims) most.set(token, claimUnits);
  for (const { maker, token, amountUnits } of await openSettlements(q)) {
    if (maker === account) most.set(token, maxBig(most.get(token) ?? 0n, amountUnits));
  }
  return most;
}

/** Those of the given settlements whose WithdrawSettled is in the ledger. */
export async function landedSettlements(q: Queryable, settlementNos: readonly number[]): Promise<Set<number>> {
  const rows = await q('custody_events')
    .whereIn('settlement_no', settlementNos)
    .select<{ settlement_no: number }[]>('settlement_no');
  return new Set(rows.map((row) => row.settlement_no));
}

/**
 * The prepared settlement behind a WithdrawSettled event: same maker, token, amount and basis, and not yet used by an earlier event. The
 * one that the event's transaction was signed for comes first, then the newest. Null when this database never prepared it.
 */
export async function explainSettlement(
  q: Queryable,
  event: Pick<CustodyEvent, 'maker' | 'token' | 'amountUnits' | 'basis' | 'txHash'>,
  taken: ReadonlySet<number> = new Set(),
): Promise<Settlement | null> {
  if (event.basis === null) return null;
  const rows = await q('settlements as one')
    .leftJoin('custody_events as seen', 'seen.settlement_no', 'one.settlement_no')
    .whereNull('seen.settlement_no')
    .where({ 'one.maker': event.maker, 'one.token': event.token })
    .where('one.amount_units', toColumn(event.amountUnits))
    .where('one.basis', toColumn(event.basis))
    .orderBy('one.settlement_no', 'desc')
    .select<SettlementRow[]>('one.*');
  const free = rows.filter((row) => !taken.has(row.settlement_no));
  const signed = await q<{ hash: string; tx_key: string }>('outbox').where({ hash: event.txHash }).first('tx_key');
  const row = free.find((one) => one.tx_key === signed?.tx_key) ?? free[0];
  return row === undefined ? null : settlementOf(row);
}

/**
 * Whether the requests that a settlement covers may be gone: it was computed from a generation that a reorganisation reversed. When blocks
 * of the same chain were only read again, their requests still exist. A lowering by the operator does not depend on requests. Holds for
 * good of a settlement whose event is in the ledger.
 */
export function isLost(
  { preparedBy, cutGeneration }: Pick<Settlement, 'preparedBy' | 'cutGeneration'>,
  reversals: readonly (Reversal & { depth: number })[],
): boolean {
  const lost = reversals.filter(({ depth }) => depth > 0);
  return preparedBy === 'settler' && isTakenBack(lost, cutGeneration);
}

/**
 * Keys of the settler's transactions that were computed from generations which a reorganisation reversed, so that their requests may be
 * gone. Lowerings by the operator are not among them.
 */
export async function reversedSettlementKeys(q: Queryable): Promise<Set<string>> {
  const rows = await q('settlements as one')
    .join('reversals as back', (on) => {
      on.on('one.cut_generation', '>', 'back.kept_generation').on('one.cut_generation', '<', 'back.generation');
    })
    .where({ 'one.prepared_by': 'settler' })
    .where('back.depth', '>', 0)
    .distinct<{ tx_key: string }[]>('one.tx_key');
  return new Set(rows.map((row) => row.tx_key));
}

/** When claims were settled last, by `claimKey`: of settlements that were prepared since `sinceMs` and have landed. */
export async function lastSettlements(
  q: Queryable,
  sinceMs: number,
  maker?: Address,
): Promise<ReadonlyMap<string, number>> {
  const query = q('settlements as one')
    .join('settlement_outcomes as end', 'end.settlement_no', 'one.settlement_no')
    .where('one.prepared_ms', '>=', sinceMs)
    .where({ 'end.outcome': 'landed' })
    .groupBy('one.maker', 'one.token')
    .max({ last: 'one.prepared_ms' })
    .select<{ maker: Address; token: Address; last: number }[]>('one.maker', 'one.token');
  if (maker !== undefined) void query.where({ 'one.maker': maker });
  return new Map((await query).map((row) => [claimKey(row), row.last]));
}

/** Names one claim. */
export const claimKey = ({ maker, token }: { maker: Address; token: Address }): string => `${maker}:${token}`;

/** How many settlements that raise no claim were prepared since `sinceMs`. */
export async function countEmptySettlements(q: Queryable, sinceMs: number): Promise<number> {
  const empty = q('settlements').where('prepared_ms', '>=', sinceMs).where({ prepared_by: 'settler' });
  return count(empty.whereRaw('amount_units = previous_units'));
}

/** The highest nonce at which a signer has signed a transaction of one outbox key. */
export interface SignedKey {
  signer: Address;
  nonce: number;
}

/**
 * The signers of an outbox key, one row each; none when it was never signed. Signers whose transactions were given up are left out:
 * `isSigned` says that there were some.
 */
export async function signersOf(q: Queryable, txKey: string): Promise<{ isSigned: boolean; open: SignedKey[] }> {
  const rows = await q('outbox').where({ tx_key: txKey }).select<StoredSend[]>('signer', 'nonce', 'finished');
  const open = new Map<Address, number>();
  for (const { signer, nonce, finished } of rows) {
    if (finished !== GIVEN_UP) open.set(signer, Math.max(open.get(signer) ?? 0, nonce));
  }
  return { isSigned: rows.length > 0, open: [...open].map(([signer, nonce]) => ({ signer, nonce })) };
}

interface StoredSend {
  signer: Address;
  nonce: number;
  finished: number;
}

/** Inverse of settlementRow. Throws RangeError for amounts that are none. */
export function settlementOf(row: SettlementRow): Settlement {
  return {
    settlementNo: row.settlement_no,
    maker: row.maker,
    token: row.token,
    amountUnits: fromColumn(row.amount_units),
    basis: fromColumn(row.basis),
    previousUnits: fromColumn(row.previous_units),
    cutGeneration: row.cut_generation,
    cutBlock: row.cut_block,
    checkpointSeq: row.checkpoint_seq,
    preparedMs: row.prepared_ms,
    preparedBy: row.prepared_by,
    operatorSeq: row.operator_seq,
    txKey: row.tx_key,
  };
}
