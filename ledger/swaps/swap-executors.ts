/** Whether executors can pay for transactions, as each of them said last: quotes of any server go by it. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import type { Queryable } from '../types.js';

interface ExecutorFunds {
  signer: Address;
  isFunded: boolean;
  timeMs: number;
}

/** Notes it in the place of what the signer said before, inside a transaction of the swap log's writer. */
export async function noteExecutor(tx: Knex.Transaction, { signer, isFunded, timeMs }: ExecutorFunds): Promise<void> {
  const row = { signer, funded: isFunded ? 1 : 0, time_ms: timeMs };
  await tx('swap_executors').insert(row).onConflict('signer').merge();
}

/** What executors said since `sinceMs`. */
export async function readExecutors(q: Queryable, sinceMs: number): Promise<ExecutorFunds[]> {
  const rows = await q('swap_executors')
    .where('time_ms', '>=', sinceMs)
    .select<{ signer: string; funded: number; time_ms: number }[]>();
  return rows.map(({ signer, funded, time_ms }) => ({
    signer: signer as Address,
    isFunded: funded !== 0,
    timeMs: time_ms,
  }));
}
