import { maxBig } from '../core/amounts.js';
import { curveSource } from '../core/swap/curve-source.js';
import type { GasPrice } from '../core/swap/pricing.js';
import type { Source } from '../core/swap/source.js';
import { split } from '../core/swap/split.js';
import type { Address, Market } from '../core/types.js';
import { readCurve } from './curve.js';
import { createDataFees, type Unsigned } from './data-fee.js';
import { createHeadReader, type EthReader, type Head } from './eth.js';
import type { Venue } from './venue.js';

interface MarketDataDeps {
  eth: EthReader;
  contracts: { curveBook: Address; custodian: Address };
  /** Listed markets; may grow. */
  markets(): readonly Market[];
  venues: readonly Venue[];
  wrappedNative: Address;
  /** Of a rollup, which charges for data, too. Left out: the chain charges for gas alone. */
  gasPriceOracle?: Address | null;
}

/** What can be traded where, at one block. */
export interface MarketData {
  head(): Promise<Head>;
  /**
   * Our own curve, if it is alive at `atSec`, and every external pool of the pair. A venue that can't be read is left out and reported.
   */
  sources(sellToken: Address, buyToken: Address, head: Head, atSec: number): Promise<Source[]>;
  /** What gas costs in the sell token, null when there is not enough ether for sale to price it. */
  gasPrice(sellToken: Address, head: Head, atSec: number): Promise<GasPrice | null>;
  /** What a rollup charges for this very transaction, beside the price of gas, at its whole limit of gas; in wei. */
  chargeWei(transaction: Unsigned, head: Head): Promise<bigint>;
  /** What a rollup charges, beside the price of gas, for an order of so much gas and so many external calls, as quotes reckon with; in wei. */
  dataWei(gas: bigint, calls: number, head: Head): Promise<bigint>;
  /** The venue of an external source. Throws RangeError for an id that no venue knows. */
  venueOf(id: string): Venue;
}

/** Tip per gas that our transactions offer. */
const PRIORITY_FEE_WEI = 1_000_000n;
/**
 * Gas is priced by what the ether of so many dear orders costs over all sources together. A source that offers it too cheap lowers the price by its
 * part of that amount alone, so that whoever lowers it gives away more than as many orders as can be under way would save.
 */
export const GAS_PRICE_ORDERS = 100n;
const DEAR_ORDER_GAS = 400_000n;
/** The least amount: enough that rounding does not matter. */
const LEAST_REFERENCE_WEI = 10n ** 15n;

export function createMarketData(
  deps: MarketDataDeps,
  onVenueError: (venue: string, error: unknown) => void,
): MarketData {
  const { eth, contracts, venues, wrappedNative } = deps;
  const heads = createHeadReader(eth);
  const dataFees = createDataFees(eth, deps.gasPriceOracle ?? null);

  function marketOf(a: Address, b: Address): Market | undefined {
    return deps
      .markets()
      .find(
        ({ base, quote }) => (base.address === a && quote.address === b) || (base.address === b && quote.address === a),
      );
  }

  async function ownSource(sellToken: Address, buyToken: Address, head: Head, atSec: number): Promise<Source[]> {
    const market = marketOf(sellToken, buyToken);
    if (market === undefined) return [];
    const curve = await heads.at(head, `curve:${market.id}`, () => readCurve(eth, contracts, market, head));
    if (curve.deadlineSec <= Math.max(head.timestampSec, atSec)) return [];
    const { base, quote } = curve.availableUnits;
    return [curveSource(curve.state, buyToken, market.base.address === buyToken ? base : quote)];
  }

  async function venueSources(venue: Venue, sellToken: Address, buyToken: Address, head: Head): Promise<Source[]> {
    try {
      const key = `${venue.name}:${sellToken}:${buyToken}`;
      return await heads.at(head, key, () => venue.sources(sellToken, buyToken, head));
    } catch (error) {
      onVenueError(venue.name, error);
      return [];
    }
  }

  async function sources(sellToken: Address, buyToken: Address, head: Head, atSec: number): Promise<Source[]> {
    const found = await Promise.all([
      ownSource(sellToken, buyToken, head, atSec),
      ...venues.map((venue) => venueSources(venue, sellToken, buyToken, head)),
    ]);
    return found.flat();
  }

  const expectedFees = (head: Head) => heads.at(head, 'data-fees', () => dataFees.expected(head));

  return {
    head: heads.head,
    sources,
    async gasPrice(sellToken, head, atSec) {
      const beside = await expectedFees(head);
      const cost = { weiPerGas: head.baseFeeWei + PRIORITY_FEE_WEI + beside.weiPerGas, data: beside.data };
      if (sellToken === wrappedNative) return { ...cost, units: 1n, wei: 1n };
      const { orderWei, callWei } = beside.data;
      const dearWei = DEAR_ORDER_GAS * cost.weiPerGas + orderWei + 2n * callWei;
      const wei = maxBig(LEAST_REFERENCE_WEI, GAS_PRICE_ORDERS * dearWei);
      const parts = split('buy', await sources(sellToken, wrappedNative, head, atSec), wei);
      return parts === null ? null : { ...cost, units: parts.reduce((sum, { inUnits }) => sum + inUnits, 0n), wei };
    },
    chargeWei: (transaction, head) => dataFees.of(transaction, head),
    async dataWei(gas, calls, head) {
      const { data, weiPerGas } = await expectedFees(head);
      return data.orderWei + BigInt(calls) * data.callWei + gas * weiPerGas;
    },
    venueOf(id) {
      const venue = venues.find(({ name }) => id.startsWith(`${name}:`));
      if (venue === undefined) throw new RangeError(`no venue knows ${id}`);
      return venue;
    },
  };
}
