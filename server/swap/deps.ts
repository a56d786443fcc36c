import type { GasModel } from '../../core/swap/pricing.js';
import type { Address, Market, Readiness } from '../../core/types.js';
import type { SwapOrder } from '../../ledger/swaps/swap-log.js';
import type { Db } from '../../ledger/types.js';
import type { EthReader } from '../../liquidity/eth.js';
import type { MarketData } from '../../liquidity/market-data.js';
import type { RateLimit } from '../rate-limit.js';

/** A row of the token list. The address is kept in lower case. */
export interface SwapToken {
  chainId: number;
  address: Address;
  symbol: string;
  name: string;
  decimals: number;
  logoURI: string;
}

export interface SwapDeps {
  db: Db;
  eth: EthReader;
  chainId: number;
  permit2: Address;
  /** Spender of every order. */
  settler: Address;
  /** Contracts that must not receive what an order buys, because the settler refuses them. */
  forbiddenReceivers: readonly Address[];
  wrappedNative: Address;
  /** Listed markets, by their index; may grow. */
  markets(): readonly Market[];
  /** Block explorer; absent when there is none. */
  explorerUrl?: string | null;
  /** Tokens that may be quoted; may grow. */
  readonly tokens: readonly SwapToken[];
  marketData: MarketData;
  gasModel: GasModel;
  /** Added to the cost of gas in the fee. */
  feeMarginBps: number;
  /** Added to the price of gas in the fee. Default: 0. */
  gasVolatilityBps?: number;
  /** Most gas that checking an owner's signature may take. Default: a million. */
  maxGas?: bigint;
  /** Limits of the risk for an owner: must equal those of ExecutorDeps. */
  maxReverts: number;
  newAccountGas: bigint;
  newContractGas: bigint;
  newPermitGas: bigint;
  /** Most gas that transactions for all accounts without a fill or swap may burn in an hour. Default: 12,000,000. */
  newcomersGasPerHour?: bigint;
  /** By how much our own route may be worse and still be chosen by `preferService`. */
  toleranceBps: number;
  /** The most that a quote's partner may ask for, in bps of what is bought. Default: 0, none. */
  partnerMaxBps?: number;
  /** How long an order for a quote is accepted, and how long it may be executed. */
  quoteTtlSec: number;
  orderTtlSec: number;
  limits: { tokens: RateLimit; quotes: RateLimit; submissions: RateLimit; orders: RateLimit };
  /** Most quotes of one owner per minute, over all clients. Default: no limit. */
  ownerQuotesPerMinute?: number;
  readiness(): Readiness;
  /** Tokens of which nothing is quoted and no order accepted for the time being. */
  quarantined(): ReadonlySet<Address>;
  nowMs(): number;
  /** Time of the chain's newest block as far as the ledger knows, 0 before the first. */
  headMs(): number;
  /** Called after an order is durable, so that the executor need not wait for its next poll. */
  onOrder(order: SwapOrder): void;
}
