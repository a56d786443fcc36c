import { Interface } from 'ethers';
import { maxBig } from '../core/amounts.js';
import { curveSource } from '../core/swap/curve-source.js';
import type { GasPrice } from '../core/swap/pricing.js';
import { disjoint } from '../core/swap/paths.js';
import { OWN, type Source } from '../core/swap/source.js';
import { split, type Part } from '../core/swap/split.js';
import type { Address, Market } from '../core/types.js';
import { createOwnVenue, readCurve, type TradedVenue } from './curve.js';
import { createDataFees, type Unsigned } from './data-fee.js';
import { callsAt, createHeadReader, onOne, type EthReader, type Head } from './eth.js';
import { createSettlerCode } from './settler-code.js';
import { pathsFor, type PathQuestion } from './paths.js';
import type { Venue, VenueTrade } from './venue.js';

const SETTLER = new Interface(['function isTarget(address) view returns (bool)']);

interface MarketDataDeps {
  eth: EthReader;
  contracts: { curveBook: Address; custodian: Address; entrypoint: Address; settler: Address };
  /** Listed markets; may grow. */
  markets(): readonly Market[];
  /** No path goes through these tokens: a leg of it may fail, or bring less than its venue says. Default: none. */
  quarantined?(): ReadonlySet<Address>;
  /** Nor through these, whose transfers move another amount than asked for. Default: none. */
  uneven?(): ReadonlySet<Address>;
  venues: readonly Venue[];
  wrappedNative: Address;
  /** Of a rollup, which charges for data, too. Left out: the chain charges for gas alone. */
  gasPriceOracle?: Address | null;
}

/** Liquidity at one block. */
export interface MarketData {
  head(): Promise<Head>;
  /**
   * Our own curve, if it is alive at `atSec`, and every external pool of the pair. A venue that can't be read is left out and reported; one that
   * the settler may not call is left out.
   */
  sources(sellToken: Address, buyToken: Address, head: Head, atSec: number): Promise<Source[]>;
  /** Price of gas in the sell token, null when too little ether is for sale to price it. */
  gasPrice(sellToken: Address, head: Head, atSec: number): Promise<GasPrice | null>;
  /** What a rollup charges for this very transaction, beside the price of gas, at its whole limit of gas; in wei. */
  chargeWei(transaction: Unsigned, head: Head): Promise<bigint>;
  /** What a rollup charges, beside the price of gas, for an order of so much gas and so many external calls, as quotes reckon with; in wei. */
  dataWei(gas: bigint, calls: number, head: Head): Promise<bigint>;
  /** The best paths through other tokens, over our own curves and the pools. */
  paths(question: PathQuestion, head: Head, atSec: number): Promise<Source[]>;
  /** Whether the settler looks at conditions before it fills an order; one that was deployed before it could does not. */
  canCheck(): Promise<boolean>;
  /** Whether the settler fills orders with a partner or a hash. */
  canPayPartners(): Promise<boolean>;
  /** Where a single place is called, our own curve as a leg of a path among them. Throws RangeError for an id that no venue knows. */
  venueOf(id: string): TradedVenue;
  /** The amount on the other side as the venue of an external source quotes it; null when it would not trade. Throws RangeError likewise. */
  quote(trade: VenueTrade, head: Head): Promise<bigint | null>;
}

/** Tip per gas that our transactions offer. */
const PRIORITY_FEE_WEI = 1_000_000n;
/**
 * Gas is priced by the cost of the ether for so many expensive orders, over all sources together. A source that offers ether too cheaply
 * lowers the price only by its share of that amount, so its owner loses more than all orders that can be in progress would save.
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
  const ownVenue = createOwnVenue(contracts);
  const settlerCode = createSettlerCode(eth, contracts.settler);
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

  /** A venue that the settler may not call would only make orders fail. */
  async function isCallable(target: Address, head: Head): Promise<boolean> {
    const data = SETTLER.encodeFunctionData('isTarget', [target]);
    return onOne(eth, async (one) => {
      const [answer] = await callsAt(one, head, [{ to: contracts.settler, data }]);
      const [allowed] = SETTLER.decodeFunctionResult('isTarget', answer ?? '0x') as unknown as [boolean];
      return allowed;
    });
  }

  async function venueSources(venue: Venue, sellToken: Address, buyToken: Address, head: Head): Promise<Source[]> {
    try {
      if (!(await heads.at(head, `target:${venue.target}`, () => isCallable(venue.target, head)))) return [];
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

  /**
   * Tokens that paths may go through, in quotes and in execution: the wrapped native token, and then those with most markets; none in quarantine or uneven.
   */
  function viaTokens(): Address[] {
    const counts = new Map<Address, number>([[wrappedNative, Number.MAX_SAFE_INTEGER]]);
    for (const { base, quote } of deps.markets()) {
      for (const { address } of [base, quote]) counts.set(address, (counts.get(address) ?? 0) + 1);
    }
    for (const tokens of [deps.quarantined?.(), deps.uneven?.()])
      for (const token of tokens ?? []) counts.delete(token);
    return [...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1)).map(([token]) => token);
  }

  const paths = (question: PathQuestion, head: Head, atSec: number): Promise<Source[]> =>
    pathsFor(question, viaTokens(), (sellToken, buyToken) => sources(sellToken, buyToken, head, atSec));

  /**
   * How so much ether is bought: at the places that trade it for the token, and by ways over other tokens, whichever are better. With either alone, whoever
   * owns the one place that there is would set the price.
   */
  async function etherFor(sellToken: Address, wei: bigint, head: Head, atSec: number): Promise<Part[] | null> {
    const [direct, ways] = await Promise.all([
      sources(sellToken, wrappedNative, head, atSec),
      paths({ kind: 'buy', sellToken, buyToken: wrappedNative, amountUnits: wei }, head, atSec),
    ]);
    const places = disjoint([...direct, ...ways]);
    return places.length === 0 ? null : split('buy', places, wei);
  }

  function venueOf(id: string): Venue {
    const venue = venues.find(({ name }) => id.startsWith(`${name}:`));
    if (venue === undefined) throw new RangeError(`no venue knows ${id}`);
    return venue;
  }

  const expectedFees = (head: Head) => heads.at(head, 'data-fees', () => dataFees.expected(head));

  return {
    head: heads.head,
    sources,
    paths,
    async gasPrice(sellToken, head, atSec) {
      const beside = await expectedFees(head);
      const cost = { weiPerGas: head.baseFeeWei + PRIORITY_FEE_WEI + beside.weiPerGas, data: beside.data };
      if (sellToken === wrappedNative) return { ...cost, units: 1n, wei: 1n };
      const { orderWei, callWei } = beside.data;
      const dearWei = DEAR_ORDER_GAS * cost.weiPerGas + orderWei + 2n * callWei;
      const wei = maxBig(LEAST_REFERENCE_WEI, GAS_PRICE_ORDERS * dearWei);
      const parts = await heads.at(head, `ether:${sellToken}:${atSec}`, () => etherFor(sellToken, wei, head, atSec));
      return parts === null ? null : { ...cost, units: parts.reduce((sum, { inUnits }) => sum + inUnits, 0n), wei };
    },
    chargeWei: (transaction, head) => dataFees.of(transaction, head),
    async dataWei(gas, calls, head) {
      const { data, weiPerGas } = await expectedFees(head);
      return data.orderWei + BigInt(calls) * data.callWei + gas * weiPerGas;
    },
    canCheck: () => settlerCode.has('fillChecked'),
    canPayPartners: () => settlerCode.has('fillPartnerRoute'),
    venueOf: (id) => (id === OWN ? ownVenue : venueOf(id)),
    quote: (trade, head) => venueOf(trade.id).quote(trade, head),
  };
}
