/** What went wrong, by a stable code, and what to do about it. */
export class CurvebookError extends Error {
  override readonly name = 'CurvebookError';
  /** HTTP status, null when there was no answer. */
  readonly status: number | null;
  /** When to come back, where the server said so. */
  readonly retryAfterSec: number | null;
  readonly remedy: string | null;

  constructor(
    readonly code: string,
    message: string,
    more: { status?: number; retryAfterSec?: number | null; remedy?: string; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = more.status ?? null;
    this.retryAfterSec = more.retryAfterSec ?? null;
    this.remedy = more.remedy ?? REMEDIES[code] ?? null;
  }
}

/** For codes of which the text alone does not say what to do. */
const REMEDIES: Readonly<Record<string, string>> = {
  RATE_LIMITED: 'come back after retryAfterSec seconds',
  NOT_READY: 'the server starts or its ledger catches up: ask again in a few seconds',
  NO_ANSWER: 'the server is down or out of reach; what was sent may have been stored: look before sending it again',
  not_ready: 'wait until the ledger is ready; cancels work meanwhile',
  unknown_signer: 'sign by an approved maker, or by an agent that is still valid',
  maker_not_approved: 'ask the operator for approval',
  duplicate_nonce: 'look by client order id whether the action was stored',
  inventory_exceeded: 'cancel something or deposit more',
  outcome_unknown: 'look by client order id before sending it again',
};
