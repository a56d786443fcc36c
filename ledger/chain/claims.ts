/** Withdrawals and taker fees, as projections that each generation brings up to date. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import { NO_CLAIM, addSaturating, type LaterRequests } from '../../core/claim-state.js';
import type { Address } from '../../core/types.js';
import { count } from '../db/aggregates.js';
import { checkLimit, chunks, fromColumn, insertAll, toColumn, upsertAll } from '../db/columns.js';
import { placeholders, sendForRows, allOrFirstError } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import {
  isAddress,
  type ClaimRow,
  type CustodyEvent,
  type GenerationWrite,
  type LedgerEntry,
  type Queryable,
} from '../types.js';
import type { Stored } from '../db/tables.js';

/** One maker's claim in one token, as events and rows name it. */
type ClaimKey = Pick<ClaimRow, 'maker' | 'token'>;

/** Writes claims as they are after a generation, inside a transaction of the ledger log's writer. */
export async function storeClaims(
  tx: Knex.Transaction,
  claims: readonly ClaimRow[],
  generation: number,
): Promise<void> {
  const rows = claims.map((claim): Stored<'claims'> => ({
    maker: claim.maker,
    token: claim.token,
    claim_units: toColumn(claim.claimUnits),
    basis: toColumn(claim.basis),
    outstanding_units: toColumn(claim.outstandingUnits),
    advance_units: toColumn(claim.advanceUnits),
    ready_at_sec: claim.readyAtSec,
    pending_since_block: claim.pendingSinceBlock,
    generation,
  }));
  await allOrFirstError([upsertAll(tx, 'claims', ['maker', 'token'], rows), insertAll(tx, 'claim_changes', rows)]);
}

/** Claims that changed after a generation. */
export async function claimsChangedAfter(q: Queryable, generation: number): Promise<ClaimKey[]> {
  return q('claim_changes')
    .where('generation', '>', generation)
    .distinct<{ maker: Address; token: Address }[]>('maker', 'token');
}

/** Puts claims back to the newest state that `claim_changes` has of them, inside a transaction of the ledger log's writer. */
export async function restoreClaims(tx: Knex.Transaction, keys: readonly ClaimKey[]): Promise<void> {
  for (const { maker, token } of keys) {
    await tx('claims').where({ maker, token }).delete();
    const before = await tx('claim_changes').where({ maker, token }).orderBy('generation', 'desc').first();
    if (before !== undefined) await tx('claims').insert(before);
  }
}

/** Adds amounts to the totals of takers, inside a transaction of the ledger log's writer; those of a reversal are below zero. */
export async function addTakerFees(
  tx: Knex.Transaction,
  generation: number,
  fees: readonly { taker: Address; token: Address; amountUnits: bigint }[],
): Promise<void> {
  for (const { taker, token, amountUnits } of fees) {
    const before = await tx('taker_fees').where({ taker, token }).first();
    const accrued = fromColumn(before?.accrued_units) + amountUnits;
    await tx('taker_fees')
      .where({ taker, token })
      .update({ accrued_units: toColumn(accrued), generation });
  }
}

/** The claim of one maker in one token; `NO_CLAIM` when there never was any. */
export async function readClaim(q: Queryable, { maker, token }: ClaimKey): Promise<ClaimRow> {
  const row = await q('claims').where({ maker, token }).first();
  return row === undefined ? { maker, token, ...NO_CLAIM } : fromRow(row);
}

/** Claims of these makers, by maker and token; claims that no event ever changed are missing. */
export async function readClaimsOf(q: Queryable, makers: readonly Address[]): Promise<ClaimRow[]> {
  const claims: ClaimRow[] = [];
  for (const part of chunks([...new Set(makers)].sort())) {
    const rows = await q('claims').whereIn('maker', part).orderBy(['maker', 'token']).select();
    claims.push(...rows.map(fromRow));
  }
  return claims;
}

/** A maker's claim that exceeds its balance, null when there is none. The operator's own row is not checked, because it may be negative. */
export async function readUnbackedClaim(
  q: Queryable,
  operator: Address | null,
): Promise<(ClaimKey & { claimUnits: bigint; balanceUnits: bigint }) | null> {
  const rows = await q('claims as claim')
    .leftJoin('balances as row', (on) => {
      on.on('row.account', 'claim.maker').on('row.token', 'claim.token');
    })
    .whereNot('claim.claim_units', '0')
    .orderBy(['claim.maker', 'claim.token'])
    .select<{ maker: Address; token: Address; claim_units: string; balance_units: string | null }[]>(
      'claim.maker',
      'claim.token',
      'claim.claim_units',
      'row.balance_units',
    );
  for (const { maker, token, claim_units, balance_units } of rows) {
    const [claimUnits, balanceUnits] = [fromColumn(claim_units), fromColumn(balance_units ?? '0')];
    if (maker !== operator && claimUnits > balanceUnits) return { maker, token, claimUnits, balanceUnits };
  }
  return null;
}

/** A withdrawal that waits for its settlement, with the ledger balance behind it. */
export interface PendingClaim extends ClaimRow {
  balanceUnits: bigint;
}

/**
 * Withdrawals with a request that no settlement has covered, the one that waits longest first, at most `limit` (1..10000): those with a
 * ledger balance (`funded`), or those without. The two are separate queries, so that unfunded ones, however many, never crowd out a funded
 * one. `of` keeps only these makers; `except` skips these tokens; `unsettledSinceMs` skips claims with a settlement that was prepared since
 * then and has landed.
 * `only` keeps claims of zero, those above zero, or those with a waiting request that was paid for (see `countPaidRequests`).
 */
export async function readPendingClaims(
  q: Queryable,
  options: {
    funded: boolean;
    limit: number;
    of?: readonly Address[];
    except?: readonly Address[];
    unsettledSinceMs?: number;
    only?: 'nothing' | 'standing' | 'paid';
  },
): Promise<PendingClaim[]> {
  const { funded, limit, of, except = [], unsettledSinceMs, only } = options;
  const query = q('claims as claim')
    .leftJoin('balances as row', (on) => {
      on.on('row.account', 'claim.maker').on('row.token', 'claim.token');
    })
    .whereNotNull('claim.pending_since_block')
    .orderBy(['claim.pending_since_block', 'claim.maker', 'claim.token'])
    .limit(checkLimit(limit))
    .select<(Stored<'claims'> & { balance_units: string | null })[]>('claim.*', 'row.balance_units');
  if (of !== undefined) void query.whereIn('claim.maker', of);
  if (except.length > 0) void query.whereNotIn('claim.token', except);
  if (unsettledSinceMs !== undefined) {
    const landed = q('settlements as one')
      .join('settlement_outcomes as end', 'end.settlement_no', 'one.settlement_no')
      .where('one.maker', q.ref('claim.maker'))
      .where('one.token', q.ref('claim.token'))
      .where('one.prepared_ms', '>=', unsettledSinceMs)
      .where('end.outcome', 'landed')
      .select('one.settlement_no');
    void query.whereNotExists(landed);
  }
  if (only === 'nothing') void query.where('claim.claim_units', '0');
  if (only === 'standing') void query.whereNot('claim.claim_units', '0');
  if (only === 'paid') void query.whereRaw(`(${PAID_REQUESTS}) > 0`);
  // Compares for equality only: on SQLite amounts are text, which does not sort like numbers.
  if (funded) void query.whereNot('row.balance_units', '0');
  else void query.where((none) => void none.whereNull('row.balance_units').orWhere('row.balance_units', '0'));
  const rows = await query;
  return rows.map((row) => ({
    ...fromRow(row),
    balanceUnits: row.balance_units === null ? 0n : fromColumn(row.balance_units),
  }));
}

/**
 * How many of the requests that wait for a settlement were paid for with a transaction, by `maker:token`: transactions with at least one of
 * them whose first event of custody is of this claim. One that names many claims counts for the first alone, since each further one costs next to nothing.
 * The newest requests of each claim are looked at, `COUNTED_REQUESTS` of them, so that a maker who requests often in one transaction makes nobody count them all;
 * what that leaves out are requests of its own.
 */
export async function countPaidRequests(
  q: Queryable,
  claims: readonly Pick<ClaimRow, 'maker' | 'token' | 'pendingSinceBlock'>[],
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const makers = [...new Set(claims.filter((one) => one.pendingSinceBlock !== null).map(({ maker }) => maker))];
  for (const part of chunks(makers.sort())) {
    const rows = await q('claims as claim')
      .whereIn('claim.maker', part)
      .whereNotNull('claim.pending_since_block')
      .select<{ maker: Address; token: Address; paid: number }[]>(
        'claim.maker',
        'claim.token',
        q.raw(`(${PAID_REQUESTS}) as paid`),
      );
    for (const { maker, token, paid } of rows) if (paid > 0) counts.set(`${maker}:${token}`, paid);
  }
  return counts;
}

/** More requests than pay for any settlement. */
const COUNTED_REQUESTS = 16;

/** Of a row of `claims as claim`: two looks at an index for each request that is counted. */
const PAID_REQUESTS = `select count(distinct newest.tx_hash) from (
    select asked.tx_hash from custody_events as asked
    where asked.maker = claim.maker and asked.token = claim.token and asked.kind = 'requested'
      and asked.block_number >= claim.pending_since_block
    order by asked.block_number desc, asked.log_index desc limit ${COUNTED_REQUESTS}
  ) as newest
  join custody_events as one on one.tx_hash = newest.tx_hash
    and one.log_index = (select min(log_index) from custody_events as any_one where any_one.tx_hash = newest.tx_hash)
  where one.maker = claim.maker and one.token = claim.token`;

/** How many withdrawals wait for a settlement. */
export async function countPendingClaims(q: Queryable): Promise<number> {
  return count(q('claims').whereNotNull('pending_since_block'));
}

/** Requests of a maker in a token that were mined after `afterBlock`. */
export async function requestsAfter(
  q: Queryable,
  { maker, token }: ClaimKey,
  afterBlock: number,
): Promise<LaterRequests> {
  const rows = await q('custody_events')
    .where({ maker, token, kind: 'requested' })
    .where('block_number', '>', afterBlock)
    .orderBy('block_number')
    .select<{ amount_units: string; block_number: number }[]>('amount_units', 'block_number');
  return {
    units: rows.reduce((sum, row) => addSaturating(sum, fromColumn(row.amount_units)), 0n),
    sinceBlock: rows[0]?.block_number ?? null,
  };
}

/** Makers that requested a withdrawal in a generation after this one; each once. */
export async function makersWithRequestsAfter(q: Queryable, generation: number): Promise<Address[]> {
  const rows = await q('custody_events')
    .where('generation', '>', generation)
    .where({ kind: 'requested' })
    .distinct<{ maker: Address }[]>('maker');
  return rows.map((row) => row.maker);
}

function fromRow(row: Stored<'claims'>): ClaimRow {
  return {
    maker: row.maker,
    token: row.token,
    claimUnits: fromColumn(row.claim_units),
    basis: fromColumn(row.basis),
    readyAtSec: row.ready_at_sec,
    outstandingUnits: fromColumn(row.outstanding_units),
    advanceUnits: fromColumn(row.advance_units),
    pendingSinceBlock: row.pending_since_block,
  };
}

/** All fees ever credited to a taker in a token. */
export interface TakerFee {
  taker: Address;
  token: Address;
  accruedUnits: bigint;
}

/** Whom a fee was credited to. Throws RangeError for an account that is no address. */
export function takerOf({ account }: Pick<LedgerEntry, 'account'>): Address {
  if (!isAddress(account)) throw new RangeError(`a fee is credited to ${account}`);
  return account;
}

/** Adds the taker fees of a generation, inside a transaction of the ledger log's writer. */
export async function insertTakerFees(tx: Knex.Transaction, { generation, entries }: GenerationWrite): Promise<void> {
  const fees = entries.filter(({ kind }) => kind === 'takerFee');
  if (fees.length === 0) return;
  const accrued = new Map<string, bigint>();
  for (const part of chunks([...new Set(fees.map(({ account }) => account))])) {
    const sql = `select * from taker_fees where taker in (${placeholders(part.length)})`;
    const rows = await sendForRows<Stored<'taker_fees'>>(tx, sql, part);
    for (const row of rows) accrued.set(`${row.taker}:${row.token}`, fromColumn(row.accrued_units));
  }
  const credited = groupBy(fees, ({ account, token }) => `${account}:${token}`);
  const rows = [...credited].map(([key, credits]): Stored<'taker_fees'> => {
    const { token } = credits[0]!;
    const units = credits.reduce((sum, { amountUnits }) => sum + amountUnits, accrued.get(key) ?? 0n);
    return { taker: takerOf(credits[0]!), token, accrued_units: toColumn(units), generation };
  });
  await upsertAll(tx, 'taker_fees', ['taker', 'token'], rows);
}

/** Takers that were ever credited a fee, by taker and token, with their ledger balances. */
export async function readTakerFees(q: Queryable): Promise<(TakerFee & { balanceUnits: bigint })[]> {
  const rows = await q('taker_fees as fee')
    .leftJoin('balances as row', (on) => {
      on.on('row.account', 'fee.taker').on('row.token', 'fee.token');
    })
    .orderBy(['fee.taker', 'fee.token'])
    .select<(Stored<'taker_fees'> & { balance_units: string | null })[]>('fee.*', 'row.balance_units');
  return rows.map((row) => ({
    taker: row.taker,
    token: row.token,
    accruedUnits: fromColumn(row.accrued_units),
    balanceUnits: row.balance_units === null ? 0n : fromColumn(row.balance_units),
  }));
}

/** The `limit` (1..10000) newest custody events of an account, newest last. */
export async function custodyEventsOf(q: Queryable, maker: Address, limit: number): Promise<CustodyEvent[]> {
  const rows = await q('custody_events')
    .where({ maker })
    .orderBy([
      { column: 'block_number', order: 'desc' },
      { column: 'log_index', order: 'desc' },
    ])
    .limit(checkLimit(limit))
    .select<Stored<'custody_events'>[]>();
  return rows.reverse().map((row) => ({
    kind: row.kind,
    maker: row.maker,
    token: row.token,
    amountUnits: fromColumn(row.amount_units),
    basis: row.basis === null ? null : fromColumn(row.basis),
    readyAtSec: row.ready_at_sec,
    settlementNo: row.settlement_no,
    blockNumber: row.block_number,
    txHash: row.tx_hash,
    logIndex: row.log_index,
  }));
}

/** The deposit or withdrawal event that a ref `<kind>:<transaction>:<log index>` names, as it is stored. Throws SyntaxError for another ref. */
export async function readCustodyEvent(q: Queryable, ref: string): Promise<Stored<'custody_events'> | undefined> {
  const [, txHash = '', logIndex = ''] = ref.split(':');
  const sql = 'select * from custody_events where tx_hash = ? and log_index = ?';
  const rows = await sendForRows<Stored<'custody_events'>>(q, sql, [txHash, toSafeInt(BigInt(logIndex))]);
  return rows[0];
}
