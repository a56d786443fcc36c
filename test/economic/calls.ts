/** What goes to the contracts of the world, and what comes from them. */
import type { TradeMode } from '../../core/curve/walk.js';
import type { Address, ChainFill, Segment } from '../../core/types.js';
import type { CustodyEvent } from '../../ledger/types.js';

/** What the watcher reads of a block. */
export type WorldEvent =
  | { type: 'posted'; market: number; seq: number; snapAskUnits: bigint; snapBidUnits: bigint }
  | { type: 'touched'; market: number; seq: number; baseSeq: number }
  | { type: 'swap'; fill: ChainFill }
  | {
      type: 'custody';
      event: Pick<CustodyEvent, 'kind' | 'maker' | 'token' | 'amountUnits' | 'readyAtSec' | 'blockNumber'>;
      /** Of a settlement: the last block that it looked at. */
      cutBlock: number;
    };

export interface ChainMarket {
  askWords: readonly bigint[];
  bidWords: readonly bigint[];
  asks: readonly Segment[];
  bids: readonly Segment[];
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
  fillSeq: number;
  snapAskUnits: bigint;
  snapBidUnits: bigint;
  deadlineSec: number;
  seq: number;
}

export interface SettlementCall {
  maker: Address;
  token: Address;
  amountUnits: bigint;
  basis: bigint;
  cutBlock: number;
}

export interface SwapCall {
  /** Who pays and receives. */
  taker: Address;
  market: number;
  mode: TradeMode;
  amountUnits: bigint;
  /** Set when the settler makes the swap, for an order that the taker signed. */
  order?: OrderTerms;
}

/** What a signed order says; its fee goes to the operator's row, in the token that is sold. */
interface OrderTerms {
  mostInUnits: bigint;
  leastOutUnits: bigint;
  feeUnits: bigint;
  operator: Address;
}

/** A swap as far as it is computed. */
export interface Swapped {
  inUnits: bigint;
  outUnits: bigint;
  /** Part of `outUnits` that the taker does not get. */
  feeUnits: bigint;
  baseUnits: bigint;
  quoteUnits: bigint;
  tokenIn: Address;
  tokenOut: Address;
}
