/** Acts of operators, as commands look at them before they add one of their own. */
import { readOperatorRows } from '../../ledger/operator/operator-log.js';
import type { OperatorRow, Queryable, Transaction } from '../../ledger/types.js';

const PAGE = 1_000;

/** All acts after one, oldest first. */
export async function actsAfter(q: Queryable, after: number): Promise<OperatorRow[]> {
  const acts: OperatorRow[] = [];
  for (let last = after; ;) {
    const page = await readOperatorRows(q, { after: last, limit: PAGE });
    acts.push(...page);
    if (page.length < PAGE) return acts;
    last = page.at(-1)!.operatorSeq;
  }
}

/** Acts of others after one, within the transaction that appends an act: its own is the newest, because the operator log is held. */
export async function actsMeanwhile(tx: Transaction, after: number): Promise<OperatorRow[]> {
  return (await actsAfter(tx, after)).slice(0, -1);
}
