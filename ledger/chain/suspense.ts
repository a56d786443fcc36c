/**
 * Amounts that no stored book or settlement explains: they stay on the suspense account until the operator assigns them, or until their
 * book is known.
 */
import type { Knex } from 'knex';
import { keccakText } from '../../core/hash.js';
import type { Address } from '../../core/types.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import type { Stored } from '../db/tables.js';
import type { GenerationWrite, OperatorRow, Queryable, SuspenseItem, SuspenseKind } from '../types.js';
import { accountKey } from './invariants.js';

/** An item with the generation that found it, and its assignment, null while it is open. */
export interface SuspenseRow extends SuspenseItem {
  generation: number;
  assignment: { account: Address; operatorSeq: number; generation: number } | null;
}

/** Open items: their number by kind, and their amounts per token. */
export interface SuspenseFacts {
  /** Open items by kind, without curves, which nobody has to resolve. */
  items: Record<Exclude<SuspenseKind, 'curve'>, number>;
  /** Curves that were not prepared here. */
  curves: number;
  /** What the suspense account has of each token, signed; tokens without anything are missing. */
  units: { token: Address; units: bigint }[];
}

/** An item with its assignment; nulls while it has none. */
type StoredItem = Stored<'suspense'> & {
  [K in 'account' | 'operator_seq']: Stored<'suspense_assignments'>[K] | null;
} & { assigned_in: number | null };

/**
 * Derives an item's name from its kind, ref, transaction, subject and amounts, so that the operator's decision on it can't apply to another
 * item.
 */
export function nameItem(item: Omit<SuspenseItem, 'item' | 'message' | 'blockNumber'>): string {
  const { kind, ref, txHash, market, seq, maker, token, units, otherToken, otherUnits } = item;
  const told = [kind, ref, txHash, market, seq, maker, token, units, otherToken, otherUnits];
  return keccakText(told.map(String).join(' ')).slice(2, 18);
}

/** Stores what a generation suspends and what it assigns, inside its transaction. */
export async function insertSuspense(
  tx: Knex.Transaction,
  { generation, suspense = [], assignments = [] }: Pick<GenerationWrite, 'generation' | 'suspense' | 'assignments'>,
): Promise<void> {
  if (suspense.length > 0) {
    const rows = suspense.map((one) => ({
      item: one.item,
      kind: one.kind,
      code: one.code,
      message: one.message,
      ref: one.ref,
      market: one.market,
      seq: one.seq,
      maker: one.maker,
      token: one.token,
      units: toColumn(one.units),
      other_token: one.otherToken,
      other_units: toColumn(one.otherUnits),
      block_number: one.blockNumber,
      tx_hash: one.txHash,
      generation,
    }));
    await insertAll(tx, 'suspense', rows);
  }
  if (assignments.length > 0) {
    const rows = assignments.map(({ item, operatorSeq, account }) => ({
      item,
      account,
      operator_seq: operatorSeq,
      generation,
    }));
    await insertAll(tx, 'suspense_assignments', rows);
  }
}

const ITEMS = `select one.*, done.account, done.operator_seq, done.generation as assigned_in
  from suspense as one left join suspense_assignments as done on done.item = one.item`;

/** Items by block, oldest first: all, or the open ones. Curves, which nobody has to resolve, are never open. */
export async function readSuspense(q: Queryable, options: { open: boolean }): Promise<SuspenseRow[]> {
  const where = options.open ? `where done.item is null and one.kind <> 'curve'` : '';
  const rows = await sendForRows<StoredItem>(q, `${ITEMS} ${where} order by one.block_number, one.ref`);
  return rows.map(toRow);
}

/** The items of these generations, by the ref of their posting, which a fill's items share. */
export async function readSuspended(
  q: Queryable,
  span: { from: number; to: number },
): Promise<ReadonlyMap<string, SuspenseRow[]>> {
  const sql = `${ITEMS} where one.generation between ? and ? order by one.ref, one.item`;
  const rows = await sendForRows<StoredItem>(q, sql, [span.from, span.to]);
  return groupBy(rows.map(toRow), (row) => row.ref);
}

/** The items that were assigned in these generations. */
export async function readAssigned(q: Queryable, span: { from: number; to: number }): Promise<SuspenseRow[]> {
  const sql = `${ITEMS} where done.generation between ? and ? order by one.block_number, one.ref`;
  return (await sendForRows<StoredItem>(q, sql, [span.from, span.to])).map(toRow);
}

/**
 * Whether a curve was seen on-chain that this database did not prepare, so that its book is unknown; only in one transaction, if that is
 * given.
 */
export async function isSuspendedCurve(q: Queryable, market: number, seq: number, txHash?: string): Promise<boolean> {
  const sql = `select item from suspense where kind = 'curve' and market = ? and seq = ?`;
  const one = txHash === undefined ? '' : ' and tx_hash = ?';
  const values = txHash === undefined ? [market, seq] : [market, seq, txHash];
  return (await sendForRows(q, `${sql}${one} limit 1`, values)).length > 0;
}

/** An item that the operator has decided on, with the newest act on it. */
export interface DecidedItem<Item extends SuspenseItem = SuspenseItem> {
  row: Item;
  act: OperatorRow & { maker: Address };
}

/** Open items that the operator has decided on. */
export async function readDecided(q: Queryable): Promise<DecidedItem<SuspenseRow>[]> {
  return decidedOf(q, await readSuspense(q, { open: true }));
}

/** Those of these items that the operator has decided on; an item that comes back with the same name keeps its decision. */
export async function decidedOf<Item extends SuspenseItem>(
  q: Queryable,
  items: readonly Item[],
): Promise<DecidedItem<Item>[]> {
  const decided: DecidedItem<Item>[] = [];
  for (const row of items) {
    const [act] = await sendForRows<{ operator_seq: number; time_ms: number; maker: Address; note: string }>(
      q,
      `select operator_seq, time_ms, maker, note from operator_log
         where kind = 'assign' and item = ? order by operator_seq desc limit 1`,
      [row.item],
    );
    if (act === undefined) continue;
    const { operator_seq: operatorSeq, time_ms: timeMs, maker, note } = act;
    decided.push({ row, act: { operatorSeq, timeMs, kind: 'assign', maker, note, item: row.item } });
  }
  return decided;
}

/** What these items take from the accounts that they are assigned to when they are booked, by `accountKey`. */
export function takenUnits(decided: readonly DecidedItem[]): ReadonlyMap<string, bigint> {
  const taken = new Map<string, bigint>();
  const take = (account: Address, token: Address | null, units: bigint): void => {
    if (token === null || units >= 0n) return;
    const key = accountKey({ account, token });
    taken.set(key, (taken.get(key) ?? 0n) - units);
  };
  for (const { row, act } of decided) {
    take(act.maker, row.token, row.units);
    take(act.maker, row.otherToken, row.otherUnits);
  }
  return taken;
}

/** What `concerns` needs of an item. */
type Concern = Pick<SuspenseRow, 'kind' | 'maker' | 'token' | 'otherToken'>;

/** Open items, and as sides of the accounts that the operator assigned them to those that are not booked yet: they may take from these. */
export async function readConcerns(q: Queryable): Promise<Concern[]> {
  const open = await readSuspense(q, { open: true });
  const decided = await decidedOf(q, open);
  return [...open, ...decided.map(({ row, act }): Concern => ({ ...row, kind: 'fill', maker: act.maker }))];
}

/**
 * Whether an open item forbids to settle a claim. Whose tokens an unexplained fill moved is unknown, so it blocks the claims of all makers
 * in both of its tokens; a maker's side of a fill blocks only that maker's claims in both, and a settlement or payout only the claim of its
 * maker in its token.
 */
export function concerns(open: readonly Concern[], claim: { maker: Address; token: Address }): boolean {
  return open.some(({ kind, maker, token, otherToken }) =>
    kind === 'fill'
      ? (maker === null || claim.maker === maker) && (claim.token === token || claim.token === otherToken)
      : claim.maker === maker && claim.token === token,
  );
}

/** Counts and amounts of open items. */
export async function readSuspenseFacts(q: Queryable): Promise<SuspenseFacts> {
  const counts = await sendForRows<{ kind: SuspenseKind; items: number }>(
    q,
    `select one.kind, count(*) as items from suspense as one
       left join suspense_assignments as done on done.item = one.item where done.item is null group by one.kind`,
  );
  const of = (kind: SuspenseKind): number => counts.find((one) => one.kind === kind)?.items ?? 0;
  const rows = await sendForRows<{ token: Address; balance_units: string }>(
    q,
    `select token, balance_units from balances where account = 'suspense' order by token`,
  );
  return {
    items: { fill: of('fill'), settlement: of('settlement'), execution: of('execution') },
    curves: of('curve'),
    units: rows
      .map(({ token, balance_units }) => ({ token, units: fromColumn(balance_units) }))
      .filter(({ units }) => units !== 0n),
  };
}

function toRow(row: StoredItem): SuspenseRow {
  return {
    item: row.item,
    kind: row.kind,
    code: row.code,
    message: row.message,
    ref: row.ref,
    market: row.market,
    seq: row.seq,
    maker: row.maker,
    token: row.token,
    units: fromColumn(row.units),
    otherToken: row.other_token,
    otherUnits: fromColumn(row.other_units),
    blockNumber: row.block_number,
    txHash: row.tx_hash,
    generation: row.generation,
    assignment:
      row.account === null
        ? null
        : { account: row.account, operatorSeq: row.operator_seq ?? 0, generation: row.assigned_in ?? 0 },
  };
}
