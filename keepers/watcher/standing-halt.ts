import { FOLLOWED_HALTS, readHalt } from '../../ledger/chain/halts.js';
import { readOperatorState } from '../../ledger/operator/operator-log.js';
import type { Queryable } from '../../ledger/types.js';
import type { WatcherStatus } from './status.js';

/** The halt that stands now: what a scan found comes before what the operator asked for. Null when there is none. */
export async function readStandingHalt(q: Queryable): Promise<WatcherStatus['halt']> {
  const found = await readHalt(q);
  if (found !== null) return { code: found.code, message: found.message, byOperator: false };
  const { halted } = await readOperatorState(q);
  return halted === null ? null : { ...halted, byOperator: true };
}

/** Whether the chain is not read on: after what a scan found to be impossible, and not for the operator's own halt. */
export function stopsScans(halt: WatcherStatus['halt']): boolean {
  return halt !== null && !halt.byOperator && !FOLLOWED_HALTS.has(halt.code);
}
