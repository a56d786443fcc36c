/** Whether executors can pay for transactions, as each of them reported last. Every server of the swap API reads this before it quotes. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';

interface ExecutorFunds {
  signer: Address;
  isFunded: boolean;
  timeMs: number;
}

/** Replaces the signer's last report, inside a transaction of the swap log's writer. */
export async function noteExecutor(tx: Knex.Transaction, { signer, isFunded, timeMs }: ExecutorFunds): Promise<void> {
  const row = { signer, funded: isFunded ? 1 : 0, time_ms: timeMs };
  await tx('swap_executors').insert(row).onConflict('signer').merge();
}

/** Reports of executors since `sinceMs`. */
export async function readExecutors(q: Queryable, sinceMs: number): Promise<ExecutorFunds[]> {
  const rows = await q('swap_executors').where('time_ms', '>=', sinceMs).select<Stored<'swap_executors'>[]>();
  return rows.map(({ signer, funded, time_ms }) => ({ signer, isFunded: funded !== 0, timeMs: time_ms }));
}
