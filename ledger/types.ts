import type { Knex } from 'knex';
import type { ClaimState } from '../core/claim-state.js';
import type {
  Address,
  ChainFill,
  Cut,
  Decomposition,
  Hex,
  Market,
  MarketSnapshot,
  OrderFill,
  Trim,
} from '../core/types.js';
import type { LogName } from './roles.js';

export type { LogName } from './roles.js';

export interface Db {
  readonly kind: 'sqlite' | 'pg';
  readonly knex: Knex;
  /**
   * For reads that must not wait for writes. On SQLite it is a separate connection that sees committed data; the other connection is busy
   * while a write transaction waits for its turn.
   */
  readonly reads: Knex;
  close(): Promise<void>;
}

/** A query runner: the root connection, or the transaction that a function must stay inside. */
export type Queryable = Knex | Knex.Transaction;

/** A transaction of a writer; whoever gets one stays inside it. */
export type Transaction = Knex.Transaction;

/**
 * The right to append to one log. `tx` runs one transaction at a time; it fails with `WriterLostError` and writes nothing once
 * another process has taken the log over.
 */
export interface Writer {
  readonly log: LogName;
  readonly epoch: number;
  /** `read` is sent together with the statement that takes the log's lock, and has ended when `write` begins; it must change nothing. */
  tx<T>(write: (tx: Knex.Transaction) => Promise<T>, read?: (tx: Knex.Transaction) => Promise<void>): Promise<T>;
  release(): Promise<void>;
}

/** Accounts of the double-entry ledger that are not addresses. `vault` mirrors the custodian's holdings with a negative sign. */
export const VAULT = 'vault';
export const UNATTRIBUTED = 'unattributed';
/** Account of what no stored book or settlement explains, until the operator assigns it. */
export const SUSPENSE = 'suspense';
export type Account = Address | typeof VAULT | typeof UNATTRIBUTED | typeof SUSPENSE;

/** Whether a row of the ledger is a maker's, a taker's or the operator's. */
export const isAddress = (account: Account): account is Address => account.startsWith('0x');

export type EntryKind =
  'deposit' | 'fill' | 'residual' | 'takerFee' | 'inputFee' | 'execution' | 'unattributed' | 'suspense' | 'assignment';

/** One side of a posting. The entries of one `ref` sum to zero per token, the vault's included. */
export interface LedgerEntry {
  /** Unique per posting, so that a replay is a no-op: `deposit:<tx>:<logIndex>`, `fill:<marketId>:<fillSeq>`, ... */
  ref: string;
  kind: EntryKind;
  account: Account;
  token: Address;
  amountUnits: bigint;
}

export type CustodyKind = 'deposited' | 'requested' | 'settled' | 'executed';

export interface CustodyEvent {
  kind: CustodyKind;
  maker: Address;
  token: Address;
  /** Saturated at 2^128 - 1. */
  amountUnits: bigint;
  /** `settled` only. */
  basis: bigint | null;
  readyAtSec: number | null;
  /** `settled` only: the prepared settlement that explains it; null when none does. */
  settlementNo: number | null;
  /** What it counts towards a settlement, in gas; null for one that was booked before this was decided, whose claim counts as paid for. */
  paidGas: bigint | null;
  blockNumber: number;
  txHash: Hex;
  logIndex: number;
}

/** A withdrawal as it stands after a generation. `outstandingUnits` is also the `reservedUnits` of the maker's balance row. */
export interface ClaimRow extends ClaimState {
  maker: Address;
  token: Address;
}

/** A curve or a touch seen on-chain. */
export interface PostSeen {
  market: number;
  seq: number;
  /** How often the owner had given numbers of the market back before; with it the number names one curve. */
  era: number;
  /** Of a touch the curve that it prolongs, which may be a touch itself; else equal to seq. */
  baseSeq: number;
  /** The full or partial post whose words and volumes these are; equal to seq but for a touch. */
  postedSeq: number;
  deadlineSec: number;
  /** Volumes that consumption counts from, as the chain stores them: those of the publication less what was raised. Zero for a touch. */
  snapAskUnits: bigint;
  snapBidUnits: bigint;
  wordsHash: Hex;
  blockNumber: number;
  blockTimestampSec: number;
  txHash: Hex;
}

/** The owner gave numbers of a market back: the live curve ended, and numbers go on above `seq`. */
export interface SeqReset {
  market: number;
  /** The era that begins with it, from 1 on. */
  era: number;
  seq: number;
  /** Last fill before it, 0 without any. */
  fillSeq: number;
  blockNumber: number;
  logIndex: number;
  txHash: Hex;
}

/** A signed order that the settler filled, by whatever route. Amounts as its event states them. */
export interface SettledOrder {
  owner: Address;
  /** Permit2's, of any 256 bits; once per owner. */
  nonce: bigint;
  recipient: Address;
  tokenIn: Address;
  tokenOut: Address;
  /** Fee included, net of what was returned. */
  amountInUnits: bigint;
  amountOutUnits: bigint;
  feeUnits: bigint;
  /** The fee is booked with the fill of the same transaction; otherwise it reached the vault by itself. */
  feeInSwap: boolean;
  /** What a partner was sent of the bought token, beside `amountOutUnits`; null for an order without a partner. */
  partner: { partner: Address; amountUnits: bigint } | null;
  /** The signed hash; null for none. */
  appData: Hex | null;
  blockNumber: number;
  txHash: Hex;
  logIndex: number;
}

export interface ScannedBlock {
  number: number;
  hash: Hex;
  parentHash: Hex;
  timestampSec: number;
}

export interface AttributedFill {
  fill: ChainFill;
  decomposition: Decomposition;
  orderFills: AttributedPart[];
  /** Why its residual and missing depth are in suspense instead of going to the operator; absent when the books explain the fill. */
  suspended?: { code: string; message: string };
  /** Makers whose sides of it are in suspense, because their rows lack what it took from them; absent for none. */
  uncovered?: readonly Address[];
}

/**
 * `curve`: a post that this database did not prepare; nothing is booked for it. `fill`: the part of a fill that no book explains, or, with a
 * maker, that maker's side of a fill, of which its row lacks what it gave.
 * `settlement`: a settlement that this database did not prepare; nothing is booked. `execution`: what a payout took beyond its maker's row.
 */
export type SuspenseKind = 'curve' | 'fill' | 'settlement' | 'execution';

/** Something that the chain did and that nothing stored explains. Amounts are as booked to the suspense account, signed. */
export interface SuspenseItem {
  /** Name derived from its contents (`nameItem`), so that a reorganisation that changes none of them keeps the name. */
  item: string;
  kind: SuspenseKind;
  code: string;
  message: string;
  /** Ref of the posting that booked it, or would have. */
  ref: string;
  /** Of a curve or fill: the market's index, and the number of the curve or fill. */
  market: number | null;
  seq: number | null;
  /** Of a settlement or execution, and of a fill whose maker's row does not cover it. */
  maker: Address | null;
  /** Of a fill the base token, with the quote token beside it. */
  token: Address | null;
  units: bigint;
  otherToken: Address | null;
  otherUnits: bigint;
  blockNumber: number;
  txHash: Hex;
}

/** The operator's decision on an item in suspense, as a generation books it. */
export interface SuspenseAssignment {
  item: string;
  /** Number of the operator-log row, which has the reason. */
  operatorSeq: number;
  account: Address;
}

/** One order's part of a fill, with the trade id that makers deduplicate by, and the client order id, null without one. */
export interface AttributedPart extends OrderFill {
  tid: number;
  cloid: string | null;
}

/** Subject of a finding: the vault's balance of the token, the token's metadata, or whether the vault can pay it out. */
export type TokenCause = 'holdings' | 'metadata' | 'transfers';
/** `doubt`: nothing stops, but the token is checked. `quarantined`: the token's markets stop. `clear`: the finding has ended. */
export type TokenState = 'clear' | 'doubt' | 'quarantined';

/** A change of a finding about a token. The newest one of a token and cause is in effect. */
export interface TokenFinding {
  token: Address;
  cause: TokenCause;
  state: TokenState;
  /** Stable; empty when it is over. */
  code: string;
  message: string;
  /** The block that it was found at. */
  blockNumber: number;
  /** The last block at which the vault held what the ledger explained, and how much; null when unknown, or for another cause. */
  agreed: { blockNumber: number; units: bigint } | null;
  /**
   * The vault's reported balance less what the ledger explains; a negative difference is missing. Null for another cause, or without a
   * report.
   */
  differenceUnits: bigint | null;
  timeMs: number;
}

/** A token's metadata as its contract returns it: decoded, empty without a symbol; null without decimals. */
export interface SaidOfToken {
  symbol: string;
  decimals: number | null;
}

/** What the tokens of a market said when it was listed. */
export interface ListingRead {
  market: number;
  base: SaidOfToken;
  quote: SaidOfToken;
  /** The block at which they were read: that of the listing, or a later one when no endpoint has the state of that block any more. */
  readBlock: number;
}

/** One scan of the chain, committed whole or not at all. Generations count from 1. */
export interface GenerationWrite {
  generation: number;
  fromBlock: number;
  toBlock: number;
  blocks: ScannedBlock[];
  scannedMs: number;
  observedHead: number;
  observedHeadTimestampMs: number;
  listed: Market[];
  /** What the tokens of the listed markets say of themselves; unknown when left out. */
  listings?: ListingRead[];
  custody: CustodyEvent[];
  posts: PostSeen[];
  /** Where numbers were given back; nowhere when left out. */
  seqResets?: SeqReset[];
  fills: AttributedFill[];
  /** Signed orders filled in these blocks; none when left out. */
  settledOrders?: SettledOrder[];
  entries: LedgerEntry[];
  /** Changes of withdrawal reservations, signed. */
  reservations: { account: Address; token: Address; deltaUnits: bigint }[];
  /** The withdrawals that the scan's events changed, as they are after it. */
  claims: ClaimRow[];
  /** What the vault held of each served token at the end of the last block; the ledger must say the same. Tokens with a finding may be missing. */
  holdings: { token: Address; units: bigint }[];
  /** Changes of what is wrong with tokens; none when left out. */
  findings?: TokenFinding[];
  /** Deposits minus executed withdrawals, signed. */
  netCapital: { account: Address; token: Address; deltaUnits: bigint }[];
  /** Snapshots of curves that a fill of this generation hit for the first time. */
  snapshots: { seq: number; snapshot: MarketSnapshot }[];
  /** Items that nothing stored explains; none when left out. */
  suspense?: SuspenseItem[];
  /** Items of this or earlier generations that are booked to an account; none when left out. */
  assignments?: SuspenseAssignment[];
  /** A halt that this scan found; it is durable with the generation. */
  halt: { code: string; message: string } | null;
}

export interface GenerationRow {
  generation: number;
  fromBlock: number;
  toBlock: number;
  blockHash: Hex;
  blockTimestampMs: number;
  scannedMs: number;
  observedHead: number;
  observedHeadTimestampMs: number;
}

/** Counters of one market after a generation. Volumes are cumulative base units taken since genesis, per side. */
export interface MarketProgress {
  market: number;
  fillSeq: number;
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
}

/** What followers of the ledger log (gateway, poster, cut) need of one generation. */
export interface GenerationEffects {
  generation: number;
  toBlock: number;
  orderFills: OrderFill[];
  /** Only the markets that had a fill in this generation. */
  progress: MarketProgress[];
}

export interface BalanceRow {
  account: Account;
  token: Address;
  balanceUnits: bigint;
  reservedUnits: bigint;
  netCapitalUnits: bigint;
}

export type PublicationKind = 'full' | 'touch' | 'partial';

/** A prepared publication, durable before it is signed. One transaction may carry several (same txKey). */
export interface Publication {
  market: number;
  seq: number;
  /** Equal to seq for a full post; else the curve that a touch prolongs or a partial post amends. */
  baseSeq: number;
  kind: PublicationKind;
  cut: Cut;
  /** The block that the post names: the last one of the cut's generation. */
  blockNumber: number;
  blockHash: Hex;
  /** Last fill removed from the snapshot, and the volumes after it. */
  fillSeq: number;
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
  trims: Trim[];
  /** Makers with open orders that the cut left out, by address. */
  excluded: Address[];
  snapshotHash: Hex;
  /** All words of the curve, those that a partial post did not send included. */
  askWords: bigint[];
  bidWords: bigint[];
  wordsHash: Hex;
  /** Most knots that each side was compressed to, and the version of the compression; zero when unknown. */
  askKnots: number;
  bidKnots: number;
  compression: number;
  /** Maximum error of the curve at any size; depth with a larger error was left out. Zero: no maximum. */
  maxErrorMilliBps: number;
  /** Leading segments of each side that equal the book, as the post named them. */
  exactAskKnots: number;
  exactBidKnots: number;
  /** Worst error of each side at any amount, against the book it was cut from; null where an older version prepared it. */
  askErrorPpb: number | null;
  bidErrorPpb: number | null;
  deadlineSec: number;
  preparedMs: number;
  txKey: string;
}

export interface OutboxRow {
  txKey: string;
  signer: Address;
  nonce: number;
  to: Address;
  /** Signed bytes, as broadcast. */
  raw: Hex;
  hash: Hex;
  sentMs: number;
  /** Last second in which mining it is of any use; null when it never expires. */
  validUntilSec: number | null;
  /** Most wei per gas that it and its replacements may bid. Null or left out: the sender's general limit applies. */
  maxFeeWei?: bigint | null;
}

/** One act of the operator. */
export interface OperatorRow {
  operatorSeq: number;
  timeMs: number;
  kind:
    | 'approve'
    | 'suspend'
    | 'delist'
    | 'relist'
    | 'halt'
    | 'resume'
    | 'lowerClaim'
    | 'reconcile'
    | 'reread'
    | 'assign'
    | 'detachPartition'
    | 'attachPartition';
  /** Of `assign` the account that an item in suspense is booked to. */
  maker: Address | null;
  /** What the operator wrote; of `reconcile`, what it asked for; of `assign` the reason; of partitions what left or came back. */
  note: string;
  /** `delist` and `relist` only: the index of the market. */
  market?: number | undefined;
  /** `lowerClaim` only: the claim of `maker` in `token` is to be at most this. */
  lower?: { token: Address; amountUnits: bigint } | undefined;
  /** `reread` only: what this token says of itself now is right. */
  reread?: (SaidOfToken & { token: Address }) | undefined;
  /** Of `assign` the item in suspense, of `detachPartition` and `attachPartition` the partition. */
  item?: string | undefined;
}

/** The head of a published checkpoint; its rows are stored as changes. Numbers count from 1. */
export interface CheckpointHead {
  checkpointSeq: number;
  generation: number;
  blockNumber: number;
  blockHash: Hex;
  timestampMs: number;
  /** Merkle root over the leaves; 32 zero bytes while there is none. */
  root: Hex;
  leafCount: number;
  /** Highest fill that the balances include, by market index; markets without one are missing. */
  ackFillSeqs: Record<string, number>;
}

/** A row that a checkpoint changed; zeros for one that is gone. */
export interface CheckpointRow {
  account: Address;
  token: Address;
  balanceUnits: bigint;
  reservedUnits: bigint;
}

/** A settlement, durable before it is signed. Numbers count from 1; settlements of one transaction share its key. */
export interface Settlement {
  settlementNo: number;
  maker: Address;
  token: Address;
  amountUnits: bigint;
  /** Version of the claim that it was computed on. */
  basis: bigint;
  /** The claim that it replaces, as the cut knew it. */
  previousUnits: bigint;
  /** It covers everything up to this generation, and no block after `cutBlock`. */
  cutGeneration: number;
  cutBlock: number;
  checkpointSeq: number;
  preparedMs: number;
  /** `archive`: imported from a lost database; its cut, checkpoint and generation are 0, because they referred to that database. */
  preparedBy: 'settler' | 'operator' | 'archive';
  /** The operator's act behind it, null for the settler's own. */
  operatorSeq: number | null;
  txKey: string;
}

/**
 * How a prepared settlement ended. `landed`: its event is in the ledger. `refused`: its transaction was mined without the event, or its
 * nonce was used otherwise. `abandoned`: this database never signed it.
 */
export type SettlementOutcome = 'landed' | 'refused' | 'abandoned';

export type SwapKind = 'sell' | 'buy';
/** Which executions of a swap are compared: all, all with our own preferred, or our own alone. */
export type RoutingPreference = 'auto' | 'preferService' | 'onlyService';
