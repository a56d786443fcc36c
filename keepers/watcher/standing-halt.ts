import { readHalt } from '../../ledger/halts.js';
import { readOperatorState } from '../../ledger/operator-log.js';
import type { Queryable } from '../../ledger/types.js';
import type { WatcherStatus } from './status.js';

/** The halt that stands now: what a scan found comes before what the operator asked for. Null when there is none. */
export async function readStandingHalt(q: Queryable): Promise<WatcherStatus['halt']> {
  const found = await readHalt(q);
  if (found !== null) return { code: found.code, message: found.message, byOperator: false };
  const { halted } = await readOperatorState(q);
  return halted === null ? null : { ...halted, byOperator: true };
}
