/** Deposits and executed withdrawals of an account, with the time of each. */
import type { Address, Hex } from '../../core/types.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';

export interface LedgerUpdate {
  account: Address;
  /** The generation that booked it. */
  generation: number;
  kind: 'deposited' | 'executed';
  token: Address;
  amountUnits: bigint;
  txHash: Hex;
  timeMs: number;
}

interface Row {
  maker: Address;
  generation: number;
  kind: LedgerUpdate['kind'];
  token: Address;
  amount_units: string;
  tx_hash: Hex;
  time_ms: number;
}

const SELECT =
  'select event.maker, event.generation, event.kind, event.token, event.amount_units, event.tx_hash, block.timestamp_sec * 1000 as time_ms ' +
  'from custody_events as event join blocks as block on block.number = event.block_number ' +
  `where event.kind in ('deposited', 'executed')`;

/** The `limit` (1..10000) oldest deposits and executed withdrawals of an account within both times, in milliseconds, oldest first. */
export async function ledgerUpdates(
  q: Queryable,
  account: Address,
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
): Promise<LedgerUpdate[]> {
  const sql =
    `${SELECT} and event.maker = ? and block.timestamp_sec * 1000 >= ? and block.timestamp_sec * 1000 <= ? ` +
    'order by event.block_number, event.log_index limit ?';
  return (await sendForRows<Row>(q, sql, [account, fromMs, toMs, checkLimit(limit)])).map(toUpdate);
}

/** The `limit` (1..10000) newest ones of an account that generations up to one booked, oldest first. */
export async function newestLedgerUpdates(
  q: Queryable,
  account: Address,
  { upTo, limit }: { upTo: number; limit: number },
): Promise<LedgerUpdate[]> {
  const sql = `${SELECT} and event.maker = ? and event.generation <= ? order by event.block_number desc, event.log_index desc limit ?`;
  return (await sendForRows<Row>(q, sql, [account, upTo, checkLimit(limit)])).map(toUpdate).reverse();
}

/** Those of all accounts that the generations from one to another booked, both included, in their order. */
export async function ledgerUpdatesBetween(
  q: Queryable,
  { from, to, limit, skip }: { from: number; to: number; limit: number; skip: number },
): Promise<LedgerUpdate[]> {
  const sql =
    `${SELECT} and event.generation >= ? and event.generation <= ? ` +
    'order by event.generation, event.block_number, event.log_index limit ? offset ?';
  return (await sendForRows<Row>(q, sql, [from, to, checkLimit(limit), skip])).map(toUpdate);
}

const toUpdate = (row: Row): LedgerUpdate => ({
  account: row.maker,
  generation: row.generation,
  kind: row.kind,
  token: row.token,
  amountUnits: fromColumn(row.amount_units),
  txHash: row.tx_hash,
  timeMs: row.time_ms,
});
