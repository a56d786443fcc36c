import type { Source } from '../core/swap/source.js';
import type { SplitKind } from '../core/swap/split.js';
import type { Address, Hex } from '../core/types.js';
import type { Head } from './eth.js';

/** A swap at a venue: exactly `inUnits` are sold (kind sell), or exactly `outUnits` bought (kind buy). */
interface VenueTrade {
  /** Of the source that the venue named. */
  id: string;
  kind: SplitKind;
  sellToken: Address;
  buyToken: Address;
  inUnits: bigint;
  outUnits: bigint;
}

/** A call of an external contract that takes up to `amountIn` of the sell token from the caller. */
interface VenueCall {
  target: Address;
  amountIn: bigint;
  data: Hex;
}

/** External liquidity. To add one: implement this, name it in the configuration, and let the settler call its target. */
export interface Venue {
  /** Begins the ids of its sources. */
  readonly name: string;
  /** What the settler must have on its list. */
  readonly target: Address;
  /** Everything that trades the pair at that block. */
  sources(sellToken: Address, buyToken: Address, head: Head): Promise<Source[]>;
  /** The amount on the other side as the venue itself quotes it at that block; null when it would not trade. */
  quote(trade: VenueTrade, head: Head): Promise<bigint | null>;
  /**
   * The call that trades and leaves what it buys with `recipient`, which is also the caller. A sale sets no limit of its own, since the
   * whole order has one; a purchase pays at most `maxIn`.
   */
  call(trade: VenueTrade, terms: { recipient: Address; deadlineSec: number; maxIn: bigint }): Promise<VenueCall>;
}
