import type { Knex } from 'knex';
import type { Address, Market } from '../../core/types.js';
import { chunks, fromColumn, insertAll, toColumn, upsertAll } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import { LedgerInvariantError } from '../errors.js';
import { accountKey, fillRef } from './invariants.js';
import { VAULT, isAddress, type Account, type BalanceRow, type GenerationWrite, type Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** Rows ordered by account and token, of all accounts or of one. */
export async function readBalances(q: Queryable, filter: { account?: Account } = {}): Promise<BalanceRow[]> {
  const query = q('balances').orderBy([{ column: 'account' }, { column: 'token' }]);
  if (filter.account !== undefined) void query.where({ account: filter.account });
  return (await query.select()).map(fromRow);
}

/** Sum of all balances per token without the vault's mirror account: exactly what the custodian holds. */
export async function sumBalances(q: Queryable): Promise<Map<Address, bigint>> {
  const sums = new Map<Address, bigint>();
  for (const { account, token, balanceUnits } of await readBalances(q)) {
    if (account !== VAULT) sums.set(token, (sums.get(token) ?? 0n) + balanceUnits);
  }
  return sums;
}

/** Rows of these accounts, in no fixed order; reads no other rows. */
export async function readBalancesOf(q: Queryable, accounts: readonly Account[]): Promise<BalanceRow[]> {
  const found: BalanceRow[] = [];
  for (const part of chunks(accounts)) {
    const sql = `select * from balances where account in (${placeholders(part.length)})`;
    for (const row of await sendForRows<Stored<'balances'>>(q, sql, part)) found.push(fromRow(row));
  }
  return found;
}

/** Rows that a generation after this one changed, as they are now, in no fixed order: an order would make the database read all others. */
export async function readBalancesAfter(q: Queryable, generation: number): Promise<BalanceRow[]> {
  const rows = await q('balances').where('generation', '>', generation).select();
  return rows.map(fromRow);
}

export type Balances = Map<string, BalanceRow>;

/** The rows that a generation touches, as they are before it, by `accountKey`; zeros for new ones. */
export async function loadTouched(q: Queryable, write: GenerationWrite): Promise<Balances> {
  const touched: Balances = new Map();
  const vault = write.holdings.map(({ token }) => ({ account: VAULT, token }) as const);
  const claimed = write.claims.map(({ maker, token }) => ({ account: maker, token }));
  const all = [...write.entries, ...write.reservations, ...write.netCapital, ...vault, ...claimed];
  for (const { account, token } of all) {
    touched.set(accountKey({ account, token }), {
      account,
      token,
      balanceUnits: 0n,
      reservedUnits: 0n,
      netCapitalUnits: 0n,
    });
  }
  const accounts = [...new Set([...touched.values()].map((row) => row.account))];
  for (const row of await readBalancesOf(q, accounts)) {
    if (touched.has(accountKey(row))) touched.set(accountKey(row), row);
  }
  return touched;
}

/** Base balance of a maker before an order's part of a fill, by `<fill ref>:<oid>`. */
export type StartBalances = Map<string, bigint>;

/**
 * Applies a generation to its touched rows, in place. Returns the makers' base balances before each of their parts, after all entries that
 * stand before the fill's. Throws LedgerInvariantError `negative_balance` or `negative_reservation`; only the operator, the vault's mirror
 * account and the suspense account may be below zero.
 */
export function applyToBalances(
  touched: Balances,
  write: GenerationWrite,
  markets: readonly Market[],
  operator: Address,
): StartBalances {
  const row = (of: { account: Account; token: Address }): BalanceRow => touched.get(accountKey(of))!;
  const starts: StartBalances = new Map();
  const pending = new Map(write.fills.map((one) => [fillRef(markets[one.fill.market]!, one.fill.fillSeq), one]));
  for (const entry of write.entries) {
    const fill = pending.get(entry.ref);
    if (fill !== undefined) {
      pending.delete(entry.ref);
      noteStarts(starts, touched, entry.ref, fill, markets[fill.fill.market]!);
    }
    row(entry).balanceUnits += entry.amountUnits;
  }
  for (const change of write.reservations) row(change).reservedUnits += change.deltaUnits;
  for (const change of write.netCapital) row(change).netCapitalUnits += change.deltaUnits;
  for (const one of touched.values()) checkRow(one, operator);
  return starts;
}

function noteStarts(
  starts: StartBalances,
  balances: Balances,
  ref: string,
  { fill, orderFills }: GenerationWrite['fills'][number],
  market: Market,
): void {
  const sign = fill.side === 'ask' ? -1n : 1n;
  const running = new Map<Address, bigint>();
  for (const { maker, oid, baseUnits } of orderFills) {
    const key = accountKey({ account: maker, token: market.base.address });
    const start = running.get(maker) ?? balances.get(key)?.balanceUnits ?? 0n;
    starts.set(`${ref}:${oid}`, start);
    running.set(maker, start + sign * baseUnits);
  }
}

function checkRow({ account, token, balanceUnits, reservedUnits }: BalanceRow, operator: Address): void {
  if (balanceUnits < 0n && isAddress(account) && account !== operator) {
    throw new LedgerInvariantError('negative_balance', `${account} would have ${balanceUnits} units of ${token}`);
  }
  if (reservedUnits < 0n) {
    throw new LedgerInvariantError(
      'negative_reservation',
      `${account} would reserve ${reservedUnits} units of ${token}`,
    );
  }
}

/** All rows, by `accountKey`. */
export async function loadBalances(q: Queryable): Promise<Balances> {
  return new Map((await readBalances(q)).map((row) => [accountKey(row), row]));
}

/** Writes the touched rows back, except those that were only read for comparison. */
export async function storeBalances(tx: Knex.Transaction, touched: Balances, write: GenerationWrite): Promise<void> {
  const changed = new Set([...write.entries, ...write.reservations, ...write.netCapital].map(accountKey));
  const rows = [...touched.values()].filter((row) => changed.has(accountKey(row)));
  await storeRows(tx, rows, write.generation);
}

/** Writes rows as they are after a generation. */
export async function storeRows(
  tx: Knex.Transaction,
  balances: readonly BalanceRow[],
  generation: number,
): Promise<void> {
  const rows = balances.map((row) => ({
    account: row.account,
    token: row.token,
    generation,
    balance_units: toColumn(row.balanceUnits),
    reserved_units: toColumn(row.reservedUnits),
    net_capital_units: toColumn(row.netCapitalUnits),
  }));
  await upsertAll(tx, 'balances', ['account', 'token'], rows);
}

/** Stores the changes of counters that entries do not contain, one row per account and token. */
export async function insertChanges(tx: Knex.Transaction, write: GenerationWrite): Promise<void> {
  const changes = new Map<string, { account: Account; token: Address; reserved: bigint; netCapital: bigint }>();
  const of = (at: { account: Account; token: Address }) => {
    const change = changes.get(accountKey(at)) ?? { ...at, reserved: 0n, netCapital: 0n };
    changes.set(accountKey(at), change);
    return change;
  };
  for (const { account, token, deltaUnits } of write.reservations) of({ account, token }).reserved += deltaUnits;
  for (const { account, token, deltaUnits } of write.netCapital) of({ account, token }).netCapital += deltaUnits;
  const rows = [...changes.values()].map(({ account, token, reserved, netCapital }) => ({
    generation: write.generation,
    account,
    token,
    reserved_delta_units: toColumn(reserved),
    net_capital_delta_units: toColumn(netCapital),
  }));
  await insertAll(tx, 'balance_changes', rows);
}

function fromRow(row: Stored<'balances'>): BalanceRow {
  return {
    account: row.account,
    token: row.token,
    balanceUnits: fromColumn(row.balance_units),
    reservedUnits: fromColumn(row.reserved_units),
    netCapitalUnits: fromColumn(row.net_capital_units),
  };
}
