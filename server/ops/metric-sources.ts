/** What metrics are read from. */
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
  /** Transfers to itself that filled a gap between nonces, and numbers of used nonces that were not believed, since the start. */
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

/** What signed orders of one sell token, named by its symbol, brought and cost; `none` for what was sent for no order. */
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
  /** Since when something that was prepared waits to be written; null while nothing does. */
  waitingSinceMs: number | null;
  /** Entries that were sent and will not be written without an export. */
  dropped: number;
}

interface PosterFacts {
  latency: readonly { pair: string; orderToSignMs: QuantileFacts; orderToLandedMs: QuantileFacts }[];
  /** Records sent, by kind. */
  sent: Readonly<Record<string, number>>;
  /** Transactions, by what became of them. */
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
}

/** A market as the business sees it; see `readBusiness`. */
export interface BusinessSource {
  markets: readonly (MarketFacts & { pair: string; quoteDecimals: number })[];
  gasWei: Readonly<Record<string, bigint>>;
}

/** What is asked at each scrape. A role that this process does not play answers null, and its metrics are left out. */
export interface MetricSources {
  readiness(): Readiness;
  /** Of the newest durable generation, and of the scan. Null before the first scan. */
  ledger(): { head: number; nextBlock: number; headTimestampMs: number; scannedMs: number; generation: number } | null;
  /** What the vault lacked (less than zero) at the last scan, per token: zero, or the ledger halts. Only a watcher knows. */
  solvency(): readonly { token: string; differenceUnits: bigint }[];
  /** How many blocks were proven, and how many believed for less, since the start. Null elsewhere than in the watcher's process. */
  proofs(): {
    proven: number;
    unconfirmed: number;
    unreadableHeaders: number;
    unreadableReceipts: number;
    wrongLogs: number;
  } | null;
  /** Every listed token, and what stands against it. */
  tokens(): readonly { token: string; quarantined: boolean; doubted: boolean }[];
  /** What came into the vault without a deposit, per token. */
  unattributed(): Promise<readonly { token: string; units: bigint }[]>;
  /** Per token, whether the newest measured transfer out of the vault took or brought another amount than asked for; null if none was measured. */
  transfers(): readonly { token: string; isUneven: boolean | null }[];
  /** Transactions of signed orders that were mined and reverted within the last hour, and their gas. */
  orderReverts(): Promise<{ count: number; gasUsed: bigint } | null>;
  /** Of the last hour, one for each sell token of the listed ones; none where no executor runs. */
  swapProfits(): Promise<readonly SwapProfitFacts[]>;
  /** What nothing stored explains: open items by kind, and what they come to per token. */
  suspense(): Promise<{
    items: readonly { kind: string; count: number }[];
    units: readonly { token: string; units: bigint }[];
  }>;
  /** The operator's row in every served token, against the floor below which somebody should top it up. */
  operator(): Promise<readonly { token: string; balanceUnits: bigint; floorUnits: bigint; isBelow: boolean }[]>;
  /**
   * The pairs of maker and taker that lost the operator most, per quote token; a few. `losing`: systematically, not by chance. One without
   * maker and taker stands for each token, so that there is a series of it from the start.
   */
  pairs(): Promise<readonly PairFacts[]>;
  /** Of the process that owns the ledger log; null elsewhere. */
  business(): Promise<BusinessSource | null>;
  signers(): readonly SignerFacts[];
  endpoints(): readonly EndpointFacts[];
  /** Of heads that are told to the watcher; null where none are. */
  heads(): {
    wakes: number;
    endpoints: readonly { name: string; connected: boolean; heads: number; failures: number }[];
  } | null;
  /** Of commits that the database tells of; null where it does not. */
  hints(): { connected: boolean; received: number; lost: number } | null;
  poster(): PosterFacts | null;
  settler(): { blockedBy: string | null; archive: ArchiveFacts | null } | null;
  /** Size of the database, and how far the order log is compacted. */
  storage(): Promise<{ bytes: number; foldedOrderSeq: number }>;
  /** Replicas of the database by what a commit waits for; null on SQLite. */
  replication(): { counts: Readonly<Record<'sync' | 'async' | 'unknown', number>>; isUnsafe: boolean } | null;
  gateway(): GatewayFacts | null;
  nowMs(): number;
}
