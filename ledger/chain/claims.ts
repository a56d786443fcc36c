/** Withdrawals and taker fees, as projections that each generation brings up to date. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import { NO_CLAIM, addSaturating, type LaterRequests } from '../../core/claim-state.js';
import { LEAST_SETTLE_GAS, PAID_GAS_MAX, addGas } from '../../core/settle-gas.js';
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
    paid_gas: toSafeInt(claim.paidGas),
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

/** What a halt says of such a claim. */
export const unbackedMessage = (claim: ClaimKey & { claimUnits: bigint; balanceUnits: bigint }): string =>
  `${claim.maker} may withdraw ${claim.claimUnits} units of ${claim.token} and has ${claim.balanceUnits}`;

/** A withdrawal that waits for its settlement, with the ledger balance behind it. */
export interface PendingClaim extends ClaimRow {
  balanceUnits: bigint;
}

/**
 * Withdrawals with a request that no settlement has covered, the one that waits longest first, or those that were paid most for
 * (`mostPaid`), at most `limit` (1..10000): those with a ledger balance (`funded`), or those without. The two are separate queries, so that unfunded ones, however many, never crowd out a funded
 * one. `of` keeps only these makers; `except` skips these tokens; `unsettledSinceMs` skips claims with a settlement that was prepared since
 * then and has landed.
 * `only` keeps claims that were never raised, or those above zero.
 */
export async function readPendingClaims(
  q: Queryable,
  options: {
    funded: boolean;
    limit: number;
    of?: readonly Address[];
    except?: readonly Address[];
    unsettledSinceMs?: number;
    only?: 'first' | 'standing';
    mostPaid?: boolean;
  },
): Promise<PendingClaim[]> {
  const { funded, limit, of, except = [], unsettledSinceMs, only, mostPaid = false } = options;
  const query = q('claims as claim')
    .leftJoin('balances as row', (on) => {
      on.on('row.account', 'claim.maker').on('row.token', 'claim.token');
    })
    .whereNotNull('claim.pending_since_block')
    .orderBy([
      ...(mostPaid ? [{ column: 'claim.paid_gas', order: 'desc' as const }] : []),
      ...['claim.pending_since_block', 'claim.maker', 'claim.token'].map((column) => ({ column })),
    ])
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
  if (only === 'first') void query.where({ 'claim.claim_units': '0', 'claim.basis': '0' });
  if (only === 'standing') void query.whereNot('claim.claim_units', '0');
  // Compares for equality only: on SQLite amounts are text, which does not sort like numbers.
  if (funded) void query.whereNot('row.balance_units', '0');
  else void query.where((none) => void none.whereNull('row.balance_units').orWhere('row.balance_units', '0'));
  const rows = await query;
  return rows.map((row) => ({
    ...fromRow(row),
    balanceUnits: row.balance_units === null ? 0n : fromColumn(row.balance_units),
  }));
}

/** How many withdrawals wait for a settlement. */
export async function countPendingClaims(q: Queryable): Promise<number> {
  return count(q('claims').whereNotNull('pending_since_block'));
}

/**
 * Whether any of the withdrawals that wait may be settled: all of them together were paid as much for as the least settlement costs, or one needs no
 * payment, since it is a claim's first raise or takes a claim back that nothing is left for. Without that, nothing more needs to be read of them.
 */
export async function maySettleAny(q: Queryable): Promise<boolean> {
  const row = await q('claims as claim')
    .leftJoin('balances as row', (on) => {
      on.on('row.account', 'claim.maker').on('row.token', 'claim.token');
    })
    .whereNotNull('claim.pending_since_block')
    .first<{ paid: number | string | null; free: number | string | null }>(
      q.raw('sum(claim.paid_gas) as paid'),
      q.raw(`sum(case when ${IS_FREE} then 1 else 0 end) as free`),
    );
  return BigInt(row.paid ?? 0) >= LEAST_SETTLE_GAS || BigInt(row.free ?? 0) > 0n;
}

/** Of a claim and its row: more than `isFree` says, since amounts that are text are compared for equality and by their sign only. */
const IS_FREE = `case when coalesce(row.balance_units, '0') = '0' or cast(row.balance_units as text) like '-%' then claim.claim_units <> '0'
  else claim.basis = '0' end`;

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
    .select<Pick<Stored<'custody_events'>, 'amount_units' | 'block_number' | 'paid_gas'>[]>(
      ...['amount_units', 'block_number', 'paid_gas'],
    );
  return {
    units: rows.reduce((sum, row) => addSaturating(sum, fromColumn(row.amount_units)), 0n),
    sinceBlock: rows[0]?.block_number ?? null,
    paidGas: rows.reduce((sum, row) => addGas(sum, BigInt(row.paid_gas ?? PAID_GAS_MAX)), 0n),
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
    paidGas: BigInt(row.paid_gas),
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

/** What takers were credited in fees so far, by taker and token. */
type AccruedFees = ReadonlyMap<string, bigint>;

const feesIn = (entries: GenerationWrite['entries']): GenerationWrite['entries'] =>
  entries.filter(({ kind }) => kind === 'takerFee');

/** What the takers that a generation credits were credited before it. */
export async function readAccruedFees(q: Queryable, { entries }: GenerationWrite): Promise<AccruedFees> {
  const accrued = new Map<string, bigint>();
  for (const part of chunks([...new Set(feesIn(entries).map(({ account }) => account))])) {
    const sql = `select * from taker_fees where taker in (${placeholders(part.length)})`;
    const rows = await sendForRows<Stored<'taker_fees'>>(q, sql, part);
    for (const row of rows) accrued.set(`${row.taker}:${row.token}`, fromColumn(row.accrued_units));
  }
  return accrued;
}

/** Adds the taker fees of a generation, inside a transaction of the ledger log's writer. */
export async function insertTakerFees(
  tx: Knex.Transaction,
  { generation, entries }: GenerationWrite,
  accrued: AccruedFees,
): Promise<void> {
  const fees = feesIn(entries);
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
    paidGas: row.paid_gas === null ? null : BigInt(row.paid_gas),
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
