/**
 * The values that cross module borders. Amounts are bigint base units of a token ("units"), prices are integer ticks and sizes
 * integer lots, all bigint; sequence numbers, order ids, block numbers and times are JSON-safe integers.
 */

/** 0x-prefixed lower-case hex. */
export type Hex = `0x${string}`;
/** A 20-byte address, lower case. */
export type Address = Hex;

/** Side of the book that an order rests on, or that a fill consumes: a taker's buy consumes asks. */
export type Side = 'ask' | 'bid';

export interface Token {
  symbol: string;
  address: Address;
  decimals: number;
}

/** A listed pair. `index` follows the order of MarketListed events and never moves. */
export interface Market {
  index: number;
  /** keccak256 of the two token addresses, lower one first. */
  id: Hex;
  /** `<BASE>-<QUOTE>` */
  pair: string;
  base: Token;
  quote: Token;
  /** Base units in one lot. */
  lotUnits: bigint;
  /** Quote units in one tick of one lot, a whole number by the rule of listing. */
  tickLotUnits: bigint;
  maxTtlSec: number;
  /** Exact decimals in token units, for display. */
  tickSize: string;
  lotSize: string;
}

/** An order as it rests. `filledUnits` counts attributed fills; remaining = sizeLots x lotUnits - filledUnits. */
export interface OpenOrder {
  oid: number;
  maker: Address;
  market: number;
  side: Side;
  priceTicks: bigint;
  sizeLots: bigint;
  filledUnits: bigint;
  tif: 'Gtc' | 'Alo';
  cloid: string | null;
  placedMs: number;
}

/** Why an order left the book without being filled. */
export type CloseReason = 'canceled' | 'scheduledCancel' | 'inventory' | 'suspended' | 'delisted' | 'replaced';

/** What an accepted action did, after validation. Replaying the order log applies these and never judges them again. */
export type OrderEffect =
  | {
      type: 'open';
      oid: number;
      market: number;
      side: Side;
      priceTicks: bigint;
      sizeLots: bigint;
      tif: 'Gtc' | 'Alo';
      cloid: string | null;
    }
  | { type: 'close'; oid: number; reason: CloseReason }
  /** Takes whole lots off the size of an order that the maker's inventory backs only in part. */
  | { type: 'reduce'; oid: number; lots: bigint }
  /** Arms the maker's scheduled cancel, or disarms it with null. */
  | { type: 'schedule'; timeMs: number | null }
  /** The armed time came; the closes that it caused are effects of their own. */
  | { type: 'trigger'; timeMs: number }
  /** Approves an agent of the maker under a name, replacing the agent that has the name; null removes it. */
  | { type: 'agent'; name: string; agent: Address | null; sinceMs: number; validUntilMs: number };

/** One row of the order log: one admitted action, or one act of the gateway itself (then signer and nonce are null). */
export interface OrderLogRow {
  orderSeq: number;
  timeMs: number;
  maker: Address;
  signer: Address | null;
  nonce: number | null;
  /** The action's wire type, or for acts of the gateway 'close' or 'scheduledCancel'. */
  kind: string;
  effects: OrderEffect[];
}

/** Part of a fill that one order got. `baseUnits` in base units of the market. */
export interface OrderFill {
  oid: number;
  maker: Address;
  market: number;
  side: Side;
  priceTicks: bigint;
  baseUnits: bigint;
}

/** One order in a snapshot, its remaining size floored to whole lots, after trims. */
export interface SnapshotOrder {
  oid: number;
  maker: Address;
  priceTicks: bigint;
  sizeLots: bigint;
  /** Absent for an order without one. No part of the hash: it only names the order to its maker. */
  cloid?: string;
}

/**
 * The exact book behind a curve. Each side is best price first, then lower maker address, then lower oid.
 * `fillSeq` is the last fill of the market already removed from the sizes; the volumes are the cumulative base units taken per
 * side after that fill.
 */
export interface MarketSnapshot {
  market: number;
  fillSeq: number;
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
  asks: SnapshotOrder[];
  bids: SnapshotOrder[];
}

/** Whether inventory is safe to quote against; the reason is a stable code, null when ready. */
export interface Readiness<Reason extends string = string> {
  ready: boolean;
  reason: Reason | null;
}

/** A point in the logs: all order rows up to orderSeq and all generations up to generation, judged at timeMs. */
export interface Cut {
  orderSeq: number;
  generation: number;
  timeMs: number;
}

/** What the exposure limit took off an order before it was published. */
export interface Trim {
  oid: number;
  lots: bigint;
}

/** One piece of a curve: `lengthUnits` of base at a marginal price of `subticks` (1/256 tick). Best price first. */
export interface Segment {
  lengthUnits: bigint;
  subticks: bigint;
}

/** A fill as the chain reports it. `quoteUnits` is the full curve quote amount. */
export interface ChainFill {
  market: number;
  fillSeq: number;
  curveSeq: number;
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
  /** In the output token: base on a buy, quote on a sell. */
  feeUnits: bigint;
  inputFeeUnits: bigint;
  consumedBeforeUnits: bigint;
  taker: Address;
  recipient: Address;
  blockNumber: number;
  blockHash: Hex;
  txHash: Hex;
  logIndex: number;
  timestampMs: number;
}

/** One maker's part of a fill at one of its own prices; quoteUnits = floor(price x baseUnits). */
export interface Leg {
  maker: Address;
  priceTicks: bigint;
  baseUnits: bigint;
  quoteUnits: bigint;
  orders: { oid: number; baseUnits: bigint }[];
}

/** A fill explained: sum of legs' quote units + residual = the curve's quote amount, in both directions. */
export interface Decomposition {
  legs: Leg[];
  /** rounding + compressionResidual */
  residualUnits: bigint;
  /** floor(sum of exact legs) - sum of floored legs, never negative. */
  roundingUnits: bigint;
  /** curve quote amount - floor(sum of exact legs) */
  compressionResidualUnits: bigint;
  /** +residual on buys, -residual on sells. */
  operatorGainUnits: bigint;
  /** Depth that no order explains; booked to the operator and halts the ledger. Zero in a healthy system. */
  missingBaseUnits: bigint;
}
