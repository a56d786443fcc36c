/** What an answer that is no success says of a request that is stored. A server may lie, and something in between may answer in its place. */
import { CurvebookError } from './errors.js';

/** Faults of the server by which nothing of a gasless order was stored, as docs/swap.md says. After any other one, it may have been. */
const NOTHING_STORED: ReadonlySet<string> = new Set([
  ...['STANDBY', 'WRITE_FAILED', 'NOT_READY', 'CHAIN_UNAVAILABLE', 'READ_ONLY', 'REPLICA_LAG'],
  ...['TOO_MANY_ORDERS', 'TOO_MANY_LIMIT_ORDERS', 'TOKEN_QUARANTINED', 'EXECUTOR_UNFUNDED'],
]);

/**
 * Whether a submission was refused for good. Submissions are refused by one code only. Any other one says nothing of what became of the signature, above
 * all a code of the SDK's own, by which callers would sign a second order.
 */
export const isRefusal = (error: unknown): boolean =>
  error instanceof CurvebookError && error.code === 'BAD_REQUEST' && (error.status === 400 || error.status === 413);

/** Whether an answer says that the submission made no order. */
export const isNothingStored = (error: unknown): boolean => {
  if (isRefusal(error)) return true;
  if (!(error instanceof CurvebookError)) return false;
  const { status, code } = error;
  return (status === 429 && code === 'RATE_LIMITED') || (status === 503 && NOTHING_STORED.has(code));
};

/** Statuses by which the API refuses a request that it has not carried out, whatever the text. */
const NOT_DONE: ReadonlySet<number> = new Set([400, 404, 405, 413, 415, 422, 429]);

/** Codes that say with 503 what became of an action of a maker. */
export const ACTION_CODES: ReadonlySet<string> = new Set([
  ...['standby', 'write_failed', 'replica_lag', 'outcome_unknown'],
]);

/** Codes that say with 409 or 503 what became of the cancellation of a gasless order. */
export const CANCELLATION_CODES: ReadonlySet<string> = new Set([
  ...[...NOTHING_STORED, 'OUTCOME_UNKNOWN', 'ORDER_SENT', 'ORDER_ENDED'],
]);

/** Whether a request may have been carried out, and what came instead of its answer does not say so. `codes` are those with 409 and 503 that do. */
export function isUnsaid(error: unknown, codes: ReadonlySet<string>): boolean {
  if (!(error instanceof CurvebookError)) return false;
  const { status, code } = error;
  if (status === null) return code === 'NOT_JSON' || code === 'TOO_LONG';
  return !NOT_DONE.has(status) && !((status === 409 || status === 503) && codes.has(code));
}
