import type { Source } from '../core/swap/source.js';
import type { SplitKind } from '../core/swap/split.js';
import type { Address, Hex } from '../core/types.js';
import type { RouterKind } from '../core/swap/router-kind.js';
import type { EthReader, Head } from './eth.js';

/** A swap at a venue: exactly `inUnits` are sold (kind sell), or exactly `outUnits` bought (kind buy). */
export interface VenueTrade {
  /** Of the source that the venue named. */
  id: string;
  kind: SplitKind;
  sellToken: Address;
  buyToken: Address;
  inUnits: bigint;
  outUnits: bigint;
}

/** A call of a contract that takes up to `amountIn` of the sell token from the caller. */
interface VenueCall {
  target: Address;
  amountIn: bigint;
  /** Where in `data` a sale names what it sells, in bytes: on a path the settler writes there what the leg before has brought. */
  amountAt: number;
  data: Hex;
}

/** A condition on what a view of a contract answers: its word number `word`, from 0, lies between both bounds, inclusive. */
export interface StateCheck {
  target: Address;
  word: number;
  minimum: bigint;
  /** Null for none. */
  maximum: bigint | null;
  data: Hex;
}

/** External liquidity. */
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
  /**
   * Conditions under which a sale brings at least `boundUnits`, or a purchase costs at most that: where all of them hold, it does, unless
   * somebody has put liquidity where there was none and taken away what lay behind it, which takes more gas than a transaction that reverts.
   * They are few, each takes little gas, and as long as prices move no further than the bound allows, and to the better no further than their
   * range of liquidity, they hold, but for changes of what stands behind the price. Where the bound leaves nothing for rounding, all must be as it was. What others can change for the least comes first. Null where the trade does not keep the bound at that block, and where that
   * would take too many.
   */
  checks(trade: VenueTrade, boundUnits: bigint, head: Head): Promise<StateCheck[] | null>;
}

/**
 * A kind of venue: one file that exports it, and a place in the list of `venues.ts`. Settings, the manifest, presets of chains, the checks at start and the
 * owner's configuration follow from what it says.
 */
export interface VenueKind<
  Name extends string = string,
  Setting extends string = string,
  Manifest extends string = string,
  Contract extends string = string,
> {
  /** Begins the ids of its sources. */
  readonly name: Name;
  /** For people. */
  readonly title: string;
  /** Begins the names of its settings: `UNISWAP_V3` of `UNISWAP_V3_ROUTER`. */
  readonly setting: Setting;
  /** Begins the names of its contracts in the manifest and the record: `uniswapV3` of `uniswapV3Router`. */
  readonly manifest: Manifest;
  /** Its contracts, all of which it needs, with what there is to say of their settings. `router` is what the settler calls. */
  readonly contracts: Readonly<Record<Contract | 'router', string>>;
  /** What its router may be. */
  readonly routers: readonly RouterKind[];
  /** The one of its contracts that the others belong to. */
  readonly parent: NoInfer<Contract>;
  /** Those that name the parent, by a function that is called like it: it must be the one that is named beside them. */
  readonly ofParent: readonly NoInfer<Contract | 'router'>[];
  /** In words what is wrong with the parent, which has code; null for nothing. Default: nothing is. */
  inspectParent?(eth: EthReader, parent: Address): Promise<string | null>;
  /** Its router is a contract of the platform, one of each deployment, where there is none that anybody may call. */
  readonly hasOwnRouter?: true;
  create(
    eth: EthReader,
    contracts: Readonly<Record<Contract, Address>> & { readonly router: Address },
    monotonicMs?: () => number,
  ): Venue;
}

/** The kind as it is, with its names as types. */
export const venueKind = <
  const Name extends string,
  const Setting extends string,
  const Manifest extends string,
  const Contract extends string,
>(
  kind: VenueKind<Name, Setting, Manifest, Contract>,
): VenueKind<Name, Setting, Manifest, Contract> => kind;
