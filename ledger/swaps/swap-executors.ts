/** Whether executors can pay for transactions, as each of them reported last. Every server of the swap API reads this before it quotes. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import { sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';

/** Age beyond which an executor's report of its funds is ignored. */
const EXECUTOR_NEWS_MS = 5 * 60_000;

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

/** The newest report of each executor that still counts. */
export async function readExecutors(q: Queryable, nowMs: number): Promise<ExecutorFunds[]> {
  const sql = 'select signer, funded, time_ms from swap_executors where time_ms >= ?';
  const rows = await sendForRows<Stored<'swap_executors'>>(q, sql, [nowMs - EXECUTOR_NEWS_MS]);
  return rows.map(({ signer, funded, time_ms }) => ({ signer, isFunded: funded !== 0, timeMs: time_ms }));
}
