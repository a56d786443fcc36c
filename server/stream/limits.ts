/** Caps of the WebSocket interface. Every one of them is answered with an error frame or a close code that names it. */
export interface StreamLimits {
  maxConnections: number;
  /** Of them, those of one address. */
  maxConnectionsPerAddress: number;
  maxSubscriptions: number;
  /** Subscriptions to what an account has, `openOrders`, `spotState` and `swapOrders`, of all connections from one address. */
  maxAccountSubscriptions: number;
  maxMessageBytes: number;
  /** Posts of one connection that are answered at the same time. */
  maxPendingPosts: number;
  /** Messages beyond the budget of the address that may have been read in the pause that the first of them caused. */
  maxRefused: number;
  /** A connection that sent nothing for this long is closed; protocol pings and pongs count. */
  idleMs: number;
  /** Bytes that the socket may hold before frames wait in the connection's own queue. */
  highWaterBytes: number;
  /** Bytes that the connection's own queue may hold. */
  maxQueueBytes: number;
  /** Events that a connection may be behind, and how long anything may wait for it. */
  retainedEvents: number;
  retainedMs: number;
  /** A connection that is being closed for slowness has this long to read the socket's buffer and the close code. */
  farewellMs: number;
  /** Changes of a book are gathered this long before it is pushed. */
  coalesceMs: number;
  /** Books and mids that did not change are pushed again after this long. */
  repeatMs: number;
}

export const STREAM_LIMITS: StreamLimits = {
  maxConnections: 5_000,
  maxConnectionsPerAddress: 1_250,
  maxSubscriptions: 32,
  maxAccountSubscriptions: 1_000,
  maxMessageBytes: 1024 * 1024,
  maxPendingPosts: 100,
  maxRefused: 100,
  idleMs: 60_000,
  highWaterBytes: 256 * 1024,
  maxQueueBytes: 4 * 1024 * 1024,
  retainedEvents: 100_000,
  retainedMs: 600_000,
  farewellMs: 10_000,
  coalesceMs: 50,
  repeatMs: 5_000,
};

/** Why the server closes a connection, beside those of the protocol that the library sends (1001 going away, 1009 message too big). */
export const CLOSE = {
  internal: { code: 1011, reason: 'updates could not be read' },
  idle: { code: 4000, reason: 'no message for too long' },
  queueFull: { code: 4001, reason: 'output queue full' },
  behind: { code: 4002, reason: 'behind retained events' },
  flood: { code: 4003, reason: 'too many messages beyond the budget' },
  replicaLag: { code: 1013, reason: 'replica_lag: try again later' },
} as const;

export type CloseReason = (typeof CLOSE)[keyof typeof CLOSE];
