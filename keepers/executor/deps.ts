import type { Logger } from 'pino';
import type { GasModel } from '../../core/swap/pricing.js';
import type { Address } from '../../core/types.js';
import type { Db, Writer } from '../../ledger/types.js';
import type { MarketData } from '../../liquidity/market-data.js';
import type { Outbox } from '../chain/outbox.js';
import type { Rpc } from '../chain/rpc.js';

/** What an executor works with, and the limits that it keeps. */
export interface ExecutorDeps {
  db: Db;
  /** Writer of the swap log. */
  writer: Writer;
  /** Queues: an order's transaction never takes the place of another's. */
  outbox: Outbox;
  rpc: Rpc;
  settler: Address;
  marketData: MarketData;
  /** Nothing is sent while the ledger is not ready, because a fill could not be seen. */
  readiness(): { ready: boolean };
  /** Orders that buy or sell one of these tokens wait, until they expire. */
  quarantined?(): ReadonlySet<Address>;
  toleranceBps: number;
  /** Most transactions for one order; one that was mined and reverted counts, one that was never signed does not. */
  maxSends: number;
  /**
   * Most gas that an order may take in its simulation: its owner's contract may burn any amount, and the fee is fixed. The transaction's
   * limit is somewhat above the simulated gas.
   */
  maxGas: bigint;
  /** Orders looked at in one round. Default: 128, so that a round does not take much longer than a block. */
  ordersPerRound?: number;
  /** What fees are computed from: the check of a signature by an account's code may take no more gas than the fee leaves for it. */
  gasModel: GasModel;
  feeMarginBps: number;
  /** Added to the price of gas in the fee of a limit order, as quotes add it. Default: 0. */
  gasVolatilityBps?: number;
  /** Most of an order's cost that its fee, at its present value, may leave uncovered, in basis points. Default: all of it. */
  maxLossBps?: number;
  /** Most transactions of one owner that may have reverted since the newest fill of an order, those under way counted. */
  maxReverts: number;
  /** Gas that may be burnt for an owner that has swapped nothing yet: about what setting up such an account costs its owner. */
  newAccountGas: bigint;
  /** The same for an owner with code. */
  newContractGas: bigint;
  /**
   * Added to `newAccountGas` for an order that includes its approval by signature, whose gas is burnt, too, if the order reverts. Default:
   * 0.
   */
  newPermitGas?: bigint;
  /** Most gas that transactions for all accounts without a fill or swap may burn in an hour. Default: 12,000,000. */
  newcomersGasPerHour?: bigint;
  pollIntervalMs: number;
  /** Wall clock, for what is stored and what expires. */
  nowMs(): number;
  /** For intervals; a step of the wall clock must not change them. Default: `nowMs`. */
  monotonicMs?(): number;
  logger: Logger;
}
