/** Whether the key of this tab may sign for its maker, and how it comes to. */
import { CurvebookError } from '../../../sdk/src/index.js';
import type { Loadable } from '../loadable.js';

/** All tabs call theirs so: the newest replaces the former, and the slots of an account are never used up. */
export const AGENT_NAME = 'console';

/** So long after an approval an answer may be from before it. */
const UNLISTED_MS = 5_000;

export interface TabAgent {
  key: string;
  /** Null until it is derived from the key. */
  address: string | null;
  /** When its approval was answered; 0 where an earlier page asked for it. */
  sinceMs: number;
}

interface Account {
  agents: readonly { address: string; valid_until_ms: number }[];
}

/** Whether the tab's key is an agent of the account: the account may have those of other tabs, whose keys are not here. Null while it is not known. */
export function mayAgentSign(
  held: TabAgent | null,
  { data, atMs }: Pick<Loadable<Account>, 'data' | 'atMs'>,
  nowMs: number,
): boolean | null {
  if (held === null) return false;
  if (held.address === null || data === null || atMs === null) return null;
  const isListed = data.agents.some(({ address, valid_until_ms: endMs }) => address === held.address && nowMs < endMs);
  return isListed || (atMs < held.sinceMs + UNLISTED_MS ? null : false);
}

/** After these, what was asked for may have been stored all the same. */
const MAYBE_STORED: ReadonlySet<string> = new Set([
  ...['NO_ANSWER', 'HTTP_ERROR', 'INTERNAL_ERROR', 'NOT_JSON', 'TOO_LONG', 'outcome_unknown', 'duplicate_nonce'],
]);

/** Whether an error says for certain that nothing was stored. */
export const saysNotStored = (error: unknown): boolean =>
  error instanceof CurvebookError && !((error.status ?? 0) >= 500 || MAYBE_STORED.has(error.code));

interface Keeping {
  /** The tab's key so far. */
  former: string | null;
  store(key: string | null): void;
  /** The tab signs by this key from now on. */
  adopt(key: string): void;
  approve(): Promise<void>;
}

/**
 * Has a new key approved. The tab stores it first: a page that ends before the answer would leave an approval for months whose key is nowhere. Only
 * a refusal that is certain takes it away again. Throws what `approve` throws.
 */
export async function approveKept(key: string, { former, store, adopt, approve }: Keeping): Promise<void> {
  store(key);
  try {
    await approve();
  } catch (error) {
    if (saysNotStored(error)) store(former);
    else adopt(key);
    throw error;
  }
  adopt(key);
}
