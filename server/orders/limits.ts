/** Caps of the order interface. */
export const MAX_OPEN_ORDERS = 1_000;
export const MAX_BATCH_ENTRIES = 1_000;
/** Asset id of the spot market with index 0. */
export const SPOT_ASSET_BASE = 10_000;
/** Closed orders per maker that are kept in memory; older ones are dropped. */
export const MAX_CLOSED_ORDERS = 2_000;
/** Fills per reply of userFills. */
export const MAX_USER_FILLS = 2_000;
/** Rows per reply of userNonFundingLedgerUpdates. */
export const MAX_LEDGER_UPDATES = 2_000;
/** Trades per reply of recentTrades. */
export const MAX_RECENT_TRADES = 100;
/** Levels per side of l2Book. */
export const MAX_BOOK_LEVELS = 20;
/** Used nonces that a signer's set remembers: the highest ones. */
export const MAX_NONCES = 100;
export const NONCE_PAST_MS = 2 * 86_400_000;
export const NONCE_FUTURE_MS = 86_400_000;
/** Longest body of a request. */
export const MAX_BODY_BYTES = 1024 * 1024;
/** Longest body of a query, which is unsigned and has only an address, a coin or a time. */
export const MAX_INFO_BYTES = 16 * 1024;
/** A scheduled cancel must be at least this far ahead. */
export const MIN_SCHEDULE_MS = 5_000;
/** Scheduled cancels that may come due per maker and UTC day before no more can be armed. */
export const MAX_TRIGGERS_PER_DAY = 10;
/** Agents with a name, beside the one without. */
export const MAX_NAMED_AGENTS = 3;
/** Longest name of an agent, without its suffix. */
export const MAX_AGENT_NAME = 16;
/** Duration of an approval without a stated end, and the longest that may be stated. */
export const AGENT_DEFAULT_MS = 90 * 86_400_000;
export const AGENT_MAX_MS = 180 * 86_400_000;
