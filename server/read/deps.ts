import type { RaisedUnits } from '../../core/attribution.js';
import type { ContractName } from '../../contracts-package/src/abis.js';
import type { SettlePace } from '../../core/claim-state.js';
import type { Book } from '../../core/book.js';
import type { MinOrderUnits } from '../../core/min-order.js';
import type { Address, ChainFill, Decomposition, Market, MarketSnapshot, Readiness } from '../../core/types.js';
import type { Candle } from '../../core/market-data/candles.js';
import type { operatorSummary } from '../../ledger/accounts/operator.js';
import type { takerActivity, MakerActivity, Span } from '../../ledger/accounts/reads.js';
import type { TakerFee } from '../../ledger/chain/claims.js';
import type {
  FillPage,
  MakerFill,
  TakerSwap,
  makerFillsPage,
  takerSwapsPage,
} from '../../ledger/market-data/history.js';
import type { CandleRange } from '../../ledger/market-data/reads.js';
import type {
  BalanceRow,
  ClaimRow,
  CustodyEvent,
  GenerationRow,
  LogName,
  PostSeen,
  Publication,
  TokenFinding,
} from '../../ledger/types.js';
import type { Role } from '../../ledger/roles.js';
import type { PlatformFacts } from '../../ledger/views/platform.js';
import type { Stops } from '../../ledger/views/stops.js';
import type { CheckpointView } from './checkpoint-view.js';
import type { ReadLimits } from '../rate-limit.js';

/** A role, the log that it writes, when it last made something durable (null if never), and how much waits for it. */
export interface RoleFacts {
  role: Role;
  log: LogName;
  status(facts: PlatformFacts): { lastActMs: number | null; waiting?: number };
}

/** A fill as the read API needs it; the decomposition is final because its generation is durable. */
export interface ExplainedFill {
  fill: ChainFill;
  decomposition: Decomposition;
}

/** State of one account after a durable generation, read in one transaction. `generation` is null before the first scan. */
export interface AccountState {
  generation: GenerationRow | null;
  /** Only the tokens that the account ever had a row for. */
  balances: BalanceRow[];
  /** Highest attributed fill per market index; markets without a fill may be missing. */
  fillSeqs: ReadonlyMap<number, number>;
  /** First block that the net_capital counters include; null when they begin with the deployment. */
  capitalOrigin: number | null;
}

/** The durable facts behind the read API. */
export interface ReadStore {
  accountState(account: Address): Promise<AccountState>;
  /** The newest fills of a market that match, newest first. */
  fillsPage(page: FillPage): Promise<ChainFill[]>;
  makerFills(page: Parameters<typeof makerFillsPage>[1]): Promise<MakerFill[]>;
  takerSwaps(page: Parameters<typeof takerSwapsPage>[1]): Promise<TakerSwap[]>;
  /** A maker's activity and positions in these markets, without those where it has none. */
  makerActivity(maker: Address, markets: readonly number[], span: Span): Promise<MakerActivity[]>;
  /** What the platform earned and what it cost, by day. */
  operatorSummary(
    markets: readonly Market[],
    of: Parameters<typeof operatorSummary>[2],
  ): ReturnType<typeof operatorSummary>;
  takerActivity(taker: Address, span: Span): ReturnType<typeof takerActivity>;
  /** Without gaps, oldest first. */
  candles(range: CandleRange): Promise<Candle[]>;
  /** A key of the market's newest fill, which differs after every change of its fills; empty without any. */
  newestFill(market: number): Promise<string>;
  /** The newest fills of a market, newest first, with that key of the same state. */
  newestFills(market: number, limit: number): Promise<{ key: string; fills: ChainFill[] }>;
  explainedFill(market: number, fillSeq: number): Promise<ExplainedFill | null>;
  /** A key that differs after every change of the ledger's rows. */
  ledgerVersion(): Promise<string>;
  /** Fees per taker and token, with the taker's ledger balance in that token. */
  takerFees(): Promise<(TakerFee & { balanceUnits: bigint })[]>;
  /**
   * Claims of an account, the time of the last settlement of those settled since `settledSinceMs`, how many of their waiting requests were paid
   * for, the balances behind them, and at most `limit` of its newest custody events, newest last.
   */
  withdrawals(account: Address, limit: number, settledSinceMs: number): Promise<WithdrawalState>;
  /** State of all logs, and which of them are held; `held` is null where only this process can know. */
  platform(nowMs: number): Promise<{ facts: PlatformFacts; held: ReadonlySet<LogName> | null }>;
  /** The newest halts and reversals. */
  stops(limits: { halts: number; reversals: number }): Promise<Stops>;
  /** A curve or touch that a scanned block has; null for any other number. */
  postedCurve(market: number, seq: number): Promise<PostedCurve | null>;
}

export interface PostedCurve {
  post: PostSeen;
  /** Null when this database never prepared it, which halts the ledger. */
  publication: Publication | null;
  /** By how much its landing raised the consumption of each side; for a touch, the landing of the post that it prolongs. */
  raised: RaisedUnits;
  /** The book that it was cut from, kept only if a fill hit it. */
  snapshot: MarketSnapshot | null;
  /** A later curve of the same book, such as a touch of this one, can be executed, or may land and then be. */
  isProlonged: boolean;
  /** Highest seq of the market that landed, and the time of the last scanned block. */
  landedSeq: number;
  headSec: number;
}

export interface WithdrawalState {
  claims: ClaimRow[];
  balances: BalanceRow[];
  /** By `claimKey`. */
  settledMs: ReadonlyMap<string, number>;
  events: CustodyEvent[];
}

/** How fresh the quotes of a market are. */
export interface FeedStatus {
  /** A maker with open orders in the market has an open feed session. */
  isLive: boolean;
  /** When the newest action of a maker with open orders in the market was accepted; without one, when this process began. */
  heardMs: number;
}

/** Present state of the scan of the chain; block numbers are null before the first request to the chain. */
export interface ScanStatus {
  /** Last block that the scan in progress, or the next one, wants to include. */
  targetBlock: number | null;
  /** Newest block that the node reported. */
  head: number | null;
  /** First block that no durable generation includes. */
  nextBlock: number;
  /** When the chain was last scanned with success, whether or not there was a new block: what readiness is judged by. Null before. */
  lastScanMs: number | null;
}

/** Facts that do not change while the server runs. */
export interface DeploymentFacts {
  /** Those that this deployment has. */
  contracts: Partial<Record<ContractName, Address>>;
  wrappedNative: Address;
  /** Endpoint that the public may use, null when the operator names none. Never one of the operator's own. */
  publicRpcUrl: string | null;
  explorerUrl: string | null;
  /** Letters that actions may be signed with. */
  orderSources: readonly string[];
  /** A sandbox: its accounts and keys are public, and its tokens have no value. */
  isSandbox: boolean;
}

/** What the gateway knows of an account, as of its newest applied row. */
export interface AccountFacts {
  /** `none`: the operator has never approved it. */
  approval: 'approved' | 'suspended' | 'none';
  /** The maker that the address is a live agent of. */
  actsFor: Address | null;
  agents: { address: Address; name: string; validUntilMs: number }[];
  scheduledCancelMs: number | null;
  scheduledCancelsToday: number;
  openOrders: number;
}

export interface ReadDeps {
  version: string;
  chainId: number;
  deploymentId: string;
  /** First block of the counters that net_capital reports. */
  capitalFlowStartBlock: number;
  deployment: DeploymentFacts;
  account(account: Address): AccountFacts;
  /** Listed markets, in listing order. */
  markets(): readonly Market[];
  /** Indexes of markets that take no orders. */
  delisted(): ReadonlySet<number>;
  /** Acknowledged orders only. A function, because a gateway that takes over starts with a new book. */
  book(): Pick<Book, 'levels' | 'version'>;
  minOrderUnits: MinOrderUnits;
  feed(market: number): FeedStatus;
  readiness(): Readiness;
  /** The halt in effect, null for none. */
  halt(): { code: string; message: string; byOperator: boolean } | null;
  /** Findings about tokens. */
  findings(): readonly TokenFinding[];
  /** Every role, for the status page. */
  roles: readonly RoleFacts[];
  /** Logs that this process holds now. */
  ownLogs(): ReadonlySet<LogName>;
  /** Of a reader: how far its database may be behind the primary, null while that is unknown. Null in any other process. */
  replicaLagMs: (() => number | null) | null;
  nowMs(): number;
  watcher(): ScanStatus;
  /** Newest generation applied in memory, 0 before the first. */
  inventoryRevision(): number;
  /** Resolves when memory has this durable generation, too; after a second in any case. */
  untilApplied(generation: number): Promise<void>;
  store: ReadStore;
  /** The settler's pace, by which a claim is settled again. */
  settlePace: SettlePace;
  checkpoints: Pick<CheckpointView, 'latest' | 'proofsOf'>;
  limits: ReadLimits;
}
