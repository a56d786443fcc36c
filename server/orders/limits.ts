/** Caps of the order interface. */
export const MAX_OPEN_ORDERS = 1_000;
export const MAX_BATCH_ENTRIES = 1_000;
/** Asset id of the spot market with index 0. */
export const SPOT_ASSET_BASE = 10_000;
/** Closed orders that stay known per maker; older ones are forgotten. */
export const MAX_CLOSED_ORDERS = 2_000;
/** Fills per reply of userFills. */
export const MAX_USER_FILLS = 2_000;
/** Levels per side of l2Book. */
export const MAX_BOOK_LEVELS = 20;
/** Used nonces that a signer's set remembers: the highest ones. */
export const MAX_NONCES = 100;
export const NONCE_PAST_MS = 2 * 86_400_000;
export const NONCE_FUTURE_MS = 86_400_000;
/** Longest body of a request. */
export const MAX_BODY_BYTES = 1024 * 1024;
