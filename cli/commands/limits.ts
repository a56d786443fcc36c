/** Limits that the help of a command names: apart, so that help loads nothing else. */

/** How long `reconcile` waits for the watcher. */
export const RECONCILE_WAIT_MS = 20_000;
/** How many transactions `outbox` lists at most. */
export const OUTBOX_ROWS = 200;
