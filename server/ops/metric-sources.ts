/** What metrics are read from. */
import type { LinkFacts } from '../edge/link.js';
import type { SequencerFacts } from '../edge/sequencer.js';
import type { MarketFacts } from '../../ledger/accounts/business.js';
import type { Readiness } from '../../core/types.js';

/** A signer of a keeper. */
export interface SignerFacts {
  role: string;
  address: string;
  /** Null until it was read for the first time. */
  balanceWei: bigint | null;
  lowBalance: boolean;
  /** Nonces that are signed and not mined. */
  unminedCount: number;
  oldestSentMs: number | null;
  /** Since the start: transfers to itself that filled a gap between nonces, and reported nonce counts that were rejected as implausible. */
  gapTransfers: number;
  nonceDoubts: number;
}

/** An RPC endpoint as one of its users in this process sees it. */
export interface EndpointFacts {
  user: string;
  /** Its host. */
  name: string;
  healthy: boolean;
  /** Since the start: requests without an answer, answers that could not be true, and times at which it served another chain. */
  counts: { silent: number; contradiction: number; wrongChain: number };
}

/** Fees and costs of signed orders of one sell token, named by its symbol; `none` for transactions of no order. */
export interface SwapProfitFacts {
  token: string;
  filled: number;
  feesWei: bigint;
  filledCostWei: bigint;
  revertedCostWei: bigint;
  gaveWayCostWei: bigint;
  worstWei: bigint;
}

/** Milliseconds; null before the first sample. */
interface QuantileFacts {
  p50: number | null;
  p99: number | null;
}

export interface ArchiveFacts {
  files: number;
  failures: number;
  failing: boolean;
  /** Since when something waits to be written to the archive; null while nothing does. */
  waitingSinceMs: number | null;
  /** Entries that were dropped; only an export can still archive them. */
  dropped: number;
}

interface PosterFacts {
  latency: readonly { pair: string; orderToSignMs: QuantileFacts; orderToLandedMs: QuantileFacts }[];
  /** Records sent, by kind. */
  sent: Readonly<Record<string, number>>;
  /** Transactions, by result. */
  transactions: Readonly<Record<string, number>>;
  missedBlocks: number;
  /** Depth that the newest curves leave out, and why. */
  leftOut: readonly { pair: string; side: string; reason: string; lots: bigint }[];
  fees: { spentLastHourWei: bigint; budgetWei: bigint | null; lastGasUsed: number | null };
  /** Why nothing is posted; null while something may be. */
  blockedBy: string | null;
  /** Null without an archive. */
  archive: ArchiveFacts | null;
  /** Pairs that it posts for. */
  pairs: readonly string[];
  /** Those for which nothing is posted because the operator's row has too little of one of their tokens. */
  stopped: readonly string[];
  /** Orders that the newest cut left out because they cross larger ones. */
  crossing: readonly { pair: string; orders: number }[];
}

export interface PairFacts {
  maker: string;
  /** `all` for all takers of a maker together. */
  taker: string;
  token: string;
  gainUnits: bigint;
  losing: boolean;
}

export interface GatewayFacts {
  active: boolean;
  sockets: number;
  openOrders: number;
  /** Actions that wait for a commit. */
  queued: number;
  /** The library that recovers signatures. */
  signatureBackend: string;
  /** What it does for edges; null while it serves none. */
  edges: SequencerFacts | null;
}

/** A market as the business sees it; see `readBusiness`. */
export interface BusinessSource {
  markets: readonly (MarketFacts & { pair: string; baseDecimals: number; quoteDecimals: number })[];
  gasWei: Readonly<Record<string, bigint>>;
}

/** Functions that are called at each scrape. For a role that this process does not play they return null, and its metrics are left out. */
export interface MetricSources {
  readiness(): Readiness;
  /** Position of the newest durable generation and of the scan. Null before the first scan. */
  ledger(): { head: number; nextBlock: number; headTimestampMs: number; scannedMs: number; generation: number } | null;
  /**
   * Vault balance less the ledger's amount at the last scan, per token; anything below zero is missing. Known in the watcher's process
   * only.
   */
  solvency(): readonly { token: string; differenceUnits: bigint }[];
  /**
   * How many blocks were proven by hashes, and how many were accepted on less evidence, since the start. Null outside the watcher's
   * process.
   */
  proofs(): {
    proven: number;
    unconfirmed: number;
    unreadableHeaders: number;
    unreadableReceipts: number;
    wrongLogs: number;
  } | null;
  /** Every listed token, with its quarantine and doubts. */
  tokens(): readonly { token: string; quarantined: boolean; doubted: boolean }[];
  /** Amounts that the vault received without a deposit, per token. */
  unattributed(): Promise<readonly { token: string; units: bigint }[]>;
  /** Per token, whether the newest measured transfer out of the vault took or brought another amount than asked for; null if none was measured. */
  transfers(): readonly { token: string; isUneven: boolean | null }[];
  /** Transactions of signed orders that were mined and reverted within the last hour, and their gas. */
  orderReverts(): Promise<{ count: number; gasUsed: bigint } | null>;
  /** Of the last hour, one for each sell token of the listed ones; none where no executor runs. */
  swapProfits(): Promise<readonly SwapProfitFacts[]>;
  /** Whether each executor that reported lately can pay for an order; none where no executor runs. */
  executors(): Promise<readonly { signer: string; isFunded: boolean }[]>;
  /** Items in suspense: open ones by kind, and their amounts per token. */
  suspense(): Promise<{
    items: readonly { kind: string; count: number }[];
    units: readonly { token: string; units: bigint }[];
  }>;
  /** The operator's row in every served token, and the floor below which it should be topped up. */
  operator(): Promise<readonly { token: string; balanceUnits: bigint; floorUnits: bigint; isBelow: boolean }[]>;
  /**
   * The few pairs of maker and taker with the operator's largest losses, per quote token. `losing`: the loss is systematic (see
   * `isLosing`). One entry per token without maker and taker makes its series exist from the start.
   */
  pairs(): Promise<readonly PairFacts[]>;
  /** Of the process that owns the ledger log; null elsewhere. */
  business(): Promise<BusinessSource | null>;
  signers(): readonly SignerFacts[];
  endpoints(): readonly EndpointFacts[];
  /** New heads that endpoints push to the watcher; null without such subscriptions. */
  heads(): {
    wakes: number;
    endpoints: readonly { name: string; connected: boolean; heads: number; failures: number }[];
  } | null;
  /** Hints of commits by the database; null where it sends none. */
  hints(): { connected: boolean; received: number; lost: number } | null;
  poster(): PosterFacts | null;
  settler(): { blockedBy: string | null; archive: ArchiveFacts | null } | null;
  /** Size of the database, and how far the order log is compacted. */
  storage(): Promise<{ bytes: number; foldedOrderSeq: number }>;
  /**
   * How far the database of a reader may be behind its primary, infinite while that is unknown, and whether data is refused for it. Null in any
   * other process.
   */
  replica(): { lagMs: number; isBehind: boolean } | null;
  /** Of an edge; null in any other process. */
  edge(): LinkFacts | null;
  /** Replicas of the database by what a commit waits for; null on SQLite. */
  replication(): { counts: Readonly<Record<'sync' | 'async' | 'unknown', number>>; isUnsafe: boolean } | null;
  gateway(): GatewayFacts | null;
  /** Whether an edge, or a gateway that serves edges or waits to, is connected to NATS. */
  nats(): boolean | null;
  nowMs(): number;
}
