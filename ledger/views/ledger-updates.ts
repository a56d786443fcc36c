/** What an account paid in and was paid out, with the time of each. */
import type { Address, Hex } from '../../core/types.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';

export interface LedgerUpdate {
  kind: 'deposited' | 'executed';
  token: Address;
  amountUnits: bigint;
  txHash: Hex;
  timeMs: number;
}

interface Row {
  kind: LedgerUpdate['kind'];
  token: Address;
  amount_units: string;
  tx_hash: Hex;
  time_ms: number;
}

/** The `limit` (1..10000) oldest deposits and executed withdrawals of an account within both times, in milliseconds, oldest first. */
export async function ledgerUpdates(
  q: Queryable,
  account: Address,
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
): Promise<LedgerUpdate[]> {
  const sql =
    'select event.kind, event.token, event.amount_units, event.tx_hash, block.timestamp_sec * 1000 as time_ms ' +
    'from custody_events as event join blocks as block on block.number = event.block_number ' +
    `where event.maker = ? and event.kind in ('deposited', 'executed') ` +
    'and block.timestamp_sec * 1000 >= ? and block.timestamp_sec * 1000 <= ? ' +
    'order by event.block_number, event.log_index limit ?';
  const rows = await sendForRows<Row>(q, sql, [account, fromMs, toMs, checkLimit(limit)]);
  return rows.map((row) => ({
    kind: row.kind,
    token: row.token,
    amountUnits: fromColumn(row.amount_units),
    txHash: row.tx_hash,
    timeMs: row.time_ms,
  }));
}
