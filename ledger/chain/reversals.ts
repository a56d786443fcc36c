/** Reversals in the ledger log: they undo generations whose blocks a reorganisation removed, or whose blocks are to be read again. */
import type { Knex } from 'knex';
import type { Tables } from 'knex/types/tables.js';
import type { Address, Hex } from '../../core/types.js';
import { addTakerFees, takerOf, claimsChangedAfter, restoreClaims } from './claims.js';
import { accountKey } from './invariants.js';
import { loadBalances, storeRows, type Balances } from './balances.js';
import { continues, liveRanges, rangesAfter, type Reversal } from './branches.js';
import { highest } from '../db/aggregates.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { LedgerInvariantError, LedgerReversedError } from '../errors.js';
import { readMarkets } from './markets.js';
import { readEntries, storeDerivedEntries } from './fill-postings.js';
import { lastHaltNo } from './halts.js';
import { lastGeneration, readGeneration } from './generations.js';
import { reverseActivity } from '../accounts/projection.js';
import { reverseMarketData } from '../market-data/projection.js';
import { reversePairGains } from './pair-gains.js';
import { reversedRef } from './refs.js';
import { reopenOrders } from '../swaps/swap-log.js';
import type { Account, BalanceRow, GenerationRow, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** A reversal with its extent. Its blocks are those that the chain no longer has, and those that are read again because of them. */
export interface ReversalRow extends Reversal {
  fromBlock: number;
  toBlock: number;
  /** Number of scanned blocks that the chain no longer has; zero when blocks of the same chain are read again. */
  depth: number;
  timeMs: number;
  /** Number of the operator-log row that requested it. */
  operatorSeq: number;
}

/** Every reversal so far, oldest first. */
export async function readReversals(q: Queryable): Promise<ReversalRow[]> {
  const rows = await q('reversals').orderBy('generation').select();
  return rows.map((row) => ({
    generation: row.generation,
    keptGeneration: row.kept_generation,
    fromBlock: row.from_block,
    toBlock: row.to_block,
    depth: row.depth,
    timeMs: row.time_ms,
    operatorSeq: row.operator_seq,
  }));
}

/** Generation of the newest reversal, 0 before the first. */
export async function lastReversal(q: Queryable): Promise<number> {
  return (await highest(q('reversals'), 'generation')) ?? 0;
}

/**
 * Throws LedgerReversedError when a projection at generation `from` can't be moved forward to `to`, because part of what it has applied was
 * reversed. `reversals` must be complete.
 */
export function checkContinues(reversals: readonly Reversal[], from: number, to: number): void {
  if (!continues(reversals, from, to)) throw new LedgerReversedError(from);
}

/** What to reverse, and the block that the ledger then ends at. */
export interface ReversalRequest {
  /**
   * Newest generation when the request was made. If the ledger has a newer one, the request is outdated, unless no reorganisation is its
   * cause and the ledger has only been extended since.
   */
  headGeneration: number;
  keptGeneration: number;
  /** The last block of the kept generation, or the block before the deployment. */
  block: { number: number; hash: Hex; timestampMs: number };
  /** Scanned blocks that the chain no longer has; zero to read blocks again that the chain still has. */
  depth: number;
}

/** Projections whose rows belong to one generation each. Rows of fills go with their legs. */
const PROJECTIONS = [
  'blocks',
  'markets',
  'custody_events',
  'posts_seen',
  'seq_resets',
  'fills',
  'order_fills',
  'market_progress',
  'settled_orders',
  'claim_changes',
  'capital_origins',
  'suspense',
  'suspense_assignments',
] as const;

/**
 * Reverses every generation after the kept one, inside a transaction of the ledger log's writer, by appending a generation: its entries are
 * those of the reversed ones with the opposite sign, so that the balances become what they were. No row is lost: entries stay, and rows of
 * other tables move to the orphans. Halts that were found after the kept generation, or between scans, are cleared. Throws
 * LedgerInvariantError `reversal_outdated` when the ledger has moved on since the request.
 */
export async function reverseGenerations(
  tx: Knex.Transaction,
  request: ReversalRequest,
  by: { operatorSeq: number; timeMs: number },
): Promise<ReversalRow> {
  const head = await lastGeneration(tx);
  const { keptGeneration, block } = request;
  const reversals = await readReversals(tx);
  // Without a reorganisation, the ledger may have scanned more blocks of the same chain since the request.
  const isSame =
    head !== null &&
    (request.depth > 0
      ? head.generation === request.headGeneration
      : continues(reversals, request.headGeneration, head.generation));
  if (!isSame || keptGeneration >= head.generation || !continues(reversals, keptGeneration, head.generation)) {
    throw new LedgerInvariantError(
      'reversal_outdated',
      `generations ${keptGeneration + 1} to ${request.headGeneration} can not be taken back from ${head?.generation ?? 0}`,
    );
  }
  const generation = head.generation + 1;
  const row: Stored<'reversals'> = {
    generation,
    kept_generation: keptGeneration,
    from_block: block.number + 1,
    to_block: head.toBlock,
    depth: request.depth,
    time_ms: by.timeMs,
    operator_seq: by.operatorSeq,
    clears_halt_no: await lastHaltNo(tx),
  };
  const reversed = generationsToReverse(reversals, { headGeneration: head.generation, keptGeneration });
  await storeDerivedEntries(tx, keptGeneration);
  await reverseEntries(tx, generation, reversed);
  const claims = await claimsChangedAfter(tx, keptGeneration);
  await reversePairGains(tx, generation, keptGeneration);
  const markets = await readMarkets(tx);
  const headMs = head.blockTimestampMs;
  await reverseActivity(tx, { markets, keptGeneration, keptMs: block.timestampMs, headMs });
  await reverseMarketData(tx, { generation, keptGeneration, keptMs: block.timestampMs });
  await setAside(tx, generation, keptGeneration);
  await restoreClaims(tx, claims);
  await tx('reversals').insert(row);
  await tx('generations').insert({
    generation,
    from_block: block.number + 1,
    to_block: block.number,
    block_hash: block.hash,
    block_timestamp_ms: block.timestampMs,
    // Nothing was read of the chain.
    scanned_ms: head.scannedMs,
    observed_head: head.observedHead,
    // No block after it is proven any more: who is ready must not be so by one that may be gone.
    observed_head_timestamp_ms: block.timestampMs,
  });
  return (await readReversals(tx)).at(-1)!;
}

/** The newest live generation that ends at or before a block; null for none. */
export async function newestWithin(q: Queryable, block: number): Promise<GenerationRow | null> {
  const head = await lastGeneration(q);
  if (head === null) return null;
  const ranges = liveRanges(await readReversals(q), head.generation);
  const row = await q<{ generation: number; to_block: number }>('generations')
    .where('to_block', '<=', block)
    .where((any) => {
      for (const { from, to } of ranges) void any.orWhereBetween('generation', [from, to]);
    })
    .orderBy('generation', 'desc')
    .first('generation');
  return row === undefined ? null : readGeneration(q, row.generation);
}

/**
 * The reversal by which a block and everything after it are read again, although the chain has them. It reverses whole scans, so it may
 * begin earlier. Null when nothing at or after the block was scanned.
 */
export async function rereadFrom(q: Queryable, block: number): Promise<ReversalRequest | null> {
  const head = await lastGeneration(q);
  if (head === null || block > head.toBlock) return null;
  const kept = await newestWithin(q, block - 1);
  const first = await q<{ number: number; parent_hash: Hex; timestamp_sec: number }>('blocks')
    .orderBy('number')
    .first('number', 'parent_hash', 'timestamp_sec');
  if (first === undefined) return null;
  const before =
    kept === null
      ? { number: first.number - 1, hash: first.parent_hash, timestampMs: first.timestamp_sec * 1_000 }
      : { number: kept.toBlock, hash: kept.blockHash, timestampMs: kept.blockTimestampMs };
  const request = { headGeneration: head.generation, keptGeneration: kept?.generation ?? 0, block: before, depth: 0 };
  return request.keptGeneration === head.generation ? null : request;
}

/** The live generations after the kept one. Earlier reversals among them stay: what they reversed is no longer live. */
function generationsToReverse(
  reversals: readonly Reversal[],
  { headGeneration, keptGeneration }: Pick<ReversalRequest, 'headGeneration' | 'keptGeneration'>,
): number[] {
  const empty = new Set(reversals.map((one) => one.generation));
  return rangesAfter(liveRanges(reversals, headGeneration), keptGeneration)
    .flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i))
    .filter((one) => !empty.has(one));
}

/** What a reversal adds to one account. */
export interface BalanceDelta {
  account: Account;
  token: Address;
  deltaUnits: bigint;
}

/** What a reversal would add to each account, by account and token; zero changes are left out. */
export async function balancesReversed(
  q: Queryable,
  request: Pick<ReversalRequest, 'headGeneration' | 'keptGeneration'>,
): Promise<BalanceDelta[]> {
  const deltas = new Map<string, BalanceDelta>();
  for (const generation of generationsToReverse(await readReversals(q), request)) {
    const entries = await readEntries(q, { from: generation, to: generation });
    for (const { account, token, amount_units } of entries) {
      const key = accountKey({ account, token });
      const delta = deltas.get(key) ?? { account, token, deltaUnits: 0n };
      delta.deltaUnits -= fromColumn(amount_units);
      deltas.set(key, delta);
    }
  }
  return [...deltas.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, delta]) => delta)
    .filter(({ deltaUnits }) => deltaUnits !== 0n);
}

async function reverseEntries(tx: Knex.Transaction, generation: number, reversed: readonly number[]): Promise<void> {
  const balances: Balances = await loadBalances(tx);
  const changes = new Map<string, { account: Account; token: Address; reserved: bigint; netCapital: bigint }>();
  const touched = new Set<string>();
  const fees: { taker: Address; token: Address; amountUnits: bigint }[] = [];
  for (const one of reversed) {
    const entries = await tx('entries').where({ generation: one }).orderBy(['ref', 'line']).select();
    await insertAll(
      tx,
      'entries',
      entries.map(({ ref, line, kind, account, token, amount_units }) => ({
        ref: reversedRef(ref),
        line,
        generation,
        kind,
        account,
        token,
        amount_units: toColumn(-fromColumn(amount_units)),
      })),
    );
    for (const { kind, account, token, amount_units } of entries) {
      balanceOf(balances, { account, token }).balanceUnits -= fromColumn(amount_units);
      touched.add(accountKey({ account, token }));
      if (kind !== 'takerFee') continue;
      fees.push({ taker: takerOf({ account }), token, amountUnits: -fromColumn(amount_units) });
    }
    const rows = await tx('balance_changes').where({ generation: one }).select();
    for (const { account, token, ...delta } of rows) {
      const key = accountKey({ account, token });
      const sum = changes.get(key) ?? { account, token, reserved: 0n, netCapital: 0n };
      sum.reserved -= fromColumn(delta.reserved_delta_units);
      sum.netCapital -= fromColumn(delta.net_capital_delta_units);
      changes.set(key, sum);
      touched.add(key);
    }
  }
  for (const { account, token, reserved, netCapital } of changes.values()) {
    const row = balanceOf(balances, { account, token });
    row.reservedUnits += reserved;
    row.netCapitalUnits += netCapital;
  }
  await insertAll(
    tx,
    'balance_changes',
    [...changes.values()].map(({ account, token, reserved, netCapital }) => ({
      generation,
      account,
      token,
      reserved_delta_units: toColumn(reserved),
      net_capital_delta_units: toColumn(netCapital),
    })),
  );
  await addTakerFees(tx, generation, fees);
  await storeRows(
    tx,
    [...touched].map((key) => balances.get(key)!),
    generation,
  );
}

/** The balance row that a posting changed. Throws LedgerInvariantError `balance_missing` when the row does not exist. */
function balanceOf(balances: Balances, at: { account: Account; token: Address }): BalanceRow {
  const row = balances.get(accountKey(at));
  if (row !== undefined) return row;
  throw new LedgerInvariantError('balance_missing', `${at.account} has postings and no balance of ${at.token}`);
}

/** Moves the rows of reversed generations out of the projections. Rows of snapshots stay: a curve's book does not depend on its fills. */
async function setAside(tx: Knex.Transaction, reversal: number, keptGeneration: number): Promise<void> {
  let rowNo = 0;
  const put = async (name: string, rows: readonly { generation: number }[]): Promise<void> => {
    await insertAll(
      tx,
      'orphaned_rows',
      rows.map((row) => ({
        reversal,
        row_no: ++rowNo,
        generation: row.generation,
        table_name: name,
        payload: JSON.stringify(row),
      })),
    );
  };
  const legs = await tx('fill_legs as leg')
    .join('fills as fill', (on) => {
      on.on('fill.market', 'leg.market').on('fill.fill_seq', 'leg.fill_seq');
    })
    .where('fill.generation', '>', keptGeneration)
    .orderBy(['leg.market', 'leg.fill_seq', 'leg.leg_no'])
    .select<{ generation: number }[]>('leg.*', 'fill.generation');
  await put('fill_legs', legs);
  const fills = await tx('fills')
    .where('generation', '>', keptGeneration)
    .select<{ market: number; fill_seq: number }[]>('market', 'fill_seq');
  for (const fill of fills) await tx('fill_legs').where(fill).delete();
  const orders = await tx('settled_orders').where('generation', '>', keptGeneration).select();
  await reopenOrders(tx, orders);
  for (const name of PROJECTIONS) {
    const rows = await tx(name).where('generation', '>', keptGeneration).orderBy('generation').select();
    await put(name, rows);
    await tx(name).where('generation', '>', keptGeneration).delete();
  }
}

/** Orphaned rows of one table of these generations, by all reversals or by one. */
export async function readOrphanedRows<T extends keyof Tables>(
  q: Queryable,
  name: T,
  { from, to }: { from: number; to: number },
  reversal?: number,
): Promise<Stored<T>[]> {
  const rows = await q('orphaned_rows')
    .where({ table_name: name, ...(reversal === undefined ? {} : { reversal }) })
    .whereBetween('generation', [from, to])
    .orderBy(['reversal', 'row_no'])
    .select<{ payload: string }[]>('payload');
  // Written from a row of this table, which may have had fewer columns then.
  // eslint-disable-next-line no-restricted-syntax
  return rows.map((row) => JSON.parse(row.payload) as Stored<T>);
}
