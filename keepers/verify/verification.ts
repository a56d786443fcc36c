/** Input of every check of a verification, and the error for a difference. */
import type { Address, Market } from '../../core/types.js';
import type { ReversalRow } from '../../ledger/chain/reversals.js';
import type { CompactionPosition } from '../../ledger/orders/compacted-book.js';
import type { Db, GenerationRow, Queryable } from '../../ledger/types.js';
import type { RpcPool } from '../chain/pool.js';

/** A stored value differs from the derived one. The first difference ends a verification. */
export class VerifyError extends Error {
  override readonly name = 'VerifyError';

  constructor(
    /** Which check found it. */
    readonly check: string,
    message: string,
  ) {
    super(message);
  }
}

/** How far one check is. */
export interface VerifyProgress {
  check: string;
  done: number;
  total: number;
}

export interface VerifyDeps {
  db: Db;
  deploymentId: string;
  deploymentBlock: number;
  /** Ledger row of the operator's residual and input fees, as the watcher has it. */
  operator: Address;
  contracts: { custodian: Address; curveBook: Address; entrypoint: Address; orderSettler?: Address | undefined };
  /** Compares with the chain, too. */
  rpc: RpcPool | null;
  onProgress(progress: VerifyProgress): void;
}

/** What every check works on: one state of the database, however long it takes. */
export interface Verification extends VerifyDeps {
  q: Queryable;
  head: GenerationRow;
  markets: readonly Market[];
  reversals: readonly ReversalRow[];
  compacted: CompactionPosition;
  warn(message: string): void;
  /** Fills in suspense because no book explains them, as `market:fillSeq`. */
  suspended: ReadonlySet<string>;
}

/** Throws VerifyError unless the two are the same. */
export function same(check: string, what: string, stored: unknown, derived: unknown): void {
  const text = (value: unknown): string => JSON.stringify(value, comparable) ?? 'nothing';
  if (text(stored) !== text(derived)) {
    throw new VerifyError(check, `${what}: stored is ${text(stored)}, derived ${text(derived)}`);
  }
}

/** Amounts as text, and properties by name, since two makers of the same object need not agree on their order. */
function comparable(_key: string, item: unknown): unknown {
  if (typeof item === 'bigint') return item.toString();
  if (item === null || typeof item !== 'object' || Array.isArray(item)) return item;
  return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
}
