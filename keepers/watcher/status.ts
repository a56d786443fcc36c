import type { Address, Readiness } from '../../core/types.js';
import type { TokenFinding, Queryable } from '../../ledger/types.js';
import { FOLLOWED_HALTS, readHalt } from '../../ledger/chain/halts.js';
import { readOperatorHalt } from '../../ledger/operator/operator-log.js';

/** Why inventory is not safe to quote against; the last two are those of a reader, and of a process that waits for another one's logs. */
export const NOT_READY_REASONS = [
  'missing_canonical_state',
  'startup_catch_up',
  'integrity_halt',
  'operator_halt',
  'failed_write',
  'no_sync_replica',
  'stale_ledger',
  'chain_stalled',
  'clock_skew',
  'replica_lag',
  'standby',
] as const;
type NotReadyReason = (typeof NOT_READY_REASONS)[number];

/** The watcher's state as of its last scan. Times are of this process's clock unless named otherwise. */
export interface WatcherStatus {
  /** Newest generation applied in memory, and newest committed. */
  inventoryRevision: number;
  durableInventoryRevision: number;
  /** First block that no generation includes yet. */
  nextBlock: number;
  scannedBlockHash: string | null;
  observedHead: number;
  /** Of the newest proven block, so that no endpoint can make a stopped chain look alive. */
  observedHeadTimestampMs: number;
  /** When the chain was last scanned with success, also when that found no new block. Elsewhere than in the watcher's process: as noted, about each second. */
  lastSuccessfulScanMs: number;
  catchingUp: boolean;
  failedWrite: boolean;
  /**
   * What the vault held at the last scanned block beyond what all rows add up to, per token: zero, or less when it lacks something. Empty
   * before this process scanned anything.
   */
  solvency: readonly { token: Address; differenceUnits: bigint }[];
  /** What is wrong with tokens, those in quarantine among them. */
  findings: readonly TokenFinding[];
  halt: { code: string; message: string; byOperator: boolean } | null;
}

/** The status before anything was scanned or read. */
export const beforeFirstScan = (deploymentBlock: number): WatcherStatus => ({
  inventoryRevision: 0,
  durableInventoryRevision: 0,
  nextBlock: deploymentBlock,
  scannedBlockHash: null,
  observedHead: 0,
  observedHeadTimestampMs: 0,
  lastSuccessfulScanMs: 0,
  catchingUp: true,
  failedWrite: false,
  solvency: [],
  findings: [],
  halt: null,
});

/** Ledger data older than this is not safe to quote against. */
export const MAX_LEDGER_AGE_MS = 5_000;
/** A head older than this means that the chain, or our view of it, has stopped. */
export const MAX_HEAD_AGE_MS = 10_000;
/**
 * What lies further in the future than this was not written by a clock like ours: the chain's newest block, or the last scan. Blocks may be a
 * little ahead, as sequencers stamp them for the moment at which they are due.
 */
export const MAX_CLOCK_SKEW_MS = 5_000;
/** The watcher is catching up while the scan target is more than this many blocks ahead at the end of a scan. */
export const CATCH_UP_BLOCKS = 2;

/** The first reason that holds, in the order in which an operator should look. */
export function judgeReadiness(
  status: Omit<WatcherStatus, 'solvency' | 'findings'>,
  nowMs: number,
): Readiness<NotReadyReason> {
  const notReady = (reason: NotReadyReason): Readiness<NotReadyReason> => ({ ready: false, reason });
  if (status.halt !== null) return notReady(status.halt.byOperator ? 'operator_halt' : 'integrity_halt');
  if (status.scannedBlockHash === null) return notReady('missing_canonical_state');
  if (status.failedWrite) return notReady('failed_write');
  if (status.catchingUp) return notReady('startup_catch_up');
  // A clock behind the chain would accept stale data and expired quotes.
  if (Math.max(status.lastSuccessfulScanMs, status.observedHeadTimestampMs) - nowMs > MAX_CLOCK_SKEW_MS)
    return notReady('clock_skew');
  if (nowMs - status.lastSuccessfulScanMs > MAX_LEDGER_AGE_MS) return notReady('stale_ledger');
  if (nowMs - status.observedHeadTimestampMs > MAX_HEAD_AGE_MS) return notReady('chain_stalled');
  return { ready: true, reason: null };
}

/** The halt in effect: one found by a scan comes before the operator's own. Null when there is none. */
export async function readStandingHalt(q: Queryable): Promise<WatcherStatus['halt']> {
  const found = await readHalt(q);
  if (found !== null) return { code: found.code, message: found.message, byOperator: false };
  const asked = await readOperatorHalt(q);
  return asked === null ? null : { ...asked, byOperator: true };
}

/** Whether the chain is not read on: after what a scan found to be impossible, and not for the operator's own halt. */
export function stopsScans(halt: WatcherStatus['halt']): boolean {
  return halt !== null && !halt.byOperator && !FOLLOWED_HALTS.has(halt.code);
}
