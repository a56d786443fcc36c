/** What fills add to the sums of makers, takers and markets. */
import { markoutUnits, slippageUnits, type HorizonSec } from '../../core/market-data/markouts.js';
import type { Address, ChainFill, Market, MarketSnapshot, Side, SnapshotOrder } from '../../core/types.js';
import { addTo, createSums, type Sums } from './sums.js';
import { MAKER_HOURS, MARKET_HOURS, TAKER_DAYS, periodOf, type MakerSum } from './tables.js';

/** One order's part of a fill, as its maker sees it: on the bid side it buys. Amounts are units of base and quote. */
export interface ActivityPart {
  maker: Address;
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
  closedUnits: bigint;
}

/** The parts of a fill that the sums need. */
export interface ActivityFill {
  fill: Pick<
    ChainFill,
    'market' | 'fillSeq' | 'side' | 'baseUnits' | 'quoteUnits' | 'feeUnits' | 'inputFeeUnits' | 'timestampMs'
  >;
  /** The taker: the owner of the signed order that was filled, else the sender of the swap. */
  owner: Address;
  /** The operator's gain; zero while the fill is in suspense. */
  gainUnits: bigint;
  parts: readonly ActivityPart[];
  /** Middle of the curve that was hit, in half subticks. */
  middle: bigint | null;
  /** The book behind the curve, when the fill before hit another one; null when it was the same one, or when there is no book. */
  book: MarketSnapshot | null;
}

/** Sums of all three tables. */
export interface Activity {
  makers: Sums<typeof MAKER_HOURS>;
  takers: Sums<typeof TAKER_DAYS>;
  markets: Sums<typeof MARKET_HOURS>;
}

export const createActivity = (): Activity => ({
  makers: createSums(MAKER_HOURS),
  takers: createSums(TAKER_DAYS),
  markets: createSums(MARKET_HOURS),
});

/** Amounts as columns of a buyer or of a seller. */
const flowOf = (buys: boolean, baseUnits: bigint, quoteUnits: bigint) =>
  buys ? { bought_base: baseUnits, bought_quote: quoteUnits } : { sold_base: baseUnits, sold_quote: quoteUnits };

/** Adds or subtracts everything of a fill except its markouts. */
export function addFill(to: Activity, market: Market, one: ActivityFill, sign: 1n | -1n = 1n): void {
  const { fill, parts, middle } = one;
  const takerBuys = fill.side === 'ask';
  // Taker fees are in the token that is paid out, input fees in the one that is paid in.
  const fees = takerBuys
    ? { fee_base: fill.feeUnits, input_quote: fill.inputFeeUnits }
    : { fee_quote: fill.feeUnits, input_base: fill.inputFeeUnits };
  const hourMs = periodOf(MARKET_HOURS, fill.timestampMs);
  const curveFlow = (buys: boolean) => flowOf(buys, fill.baseUnits, fill.quoteUnits);
  addTo(
    to.markets,
    [market.index, hourMs],
    { fills: 1n, gain_quote: one.gainUnits, ...curveFlow(!takerBuys), ...fees },
    sign,
  );
  const slippage =
    middle === null ? {} : { slippage_quote: slippageUnits(market, fill, middle), priced_quote: fill.quoteUnits };
  const dayMs = periodOf(TAKER_DAYS, fill.timestampMs);
  addTo(
    to.takers,
    [one.owner, market.index, dayMs],
    { fills: 1n, ...curveFlow(takerBuys), ...fees, ...slippage },
    sign,
  );
  for (const maker of new Set(parts.map((part) => part.maker)))
    addTo(to.makers, [maker, market.index, hourMs], { fills: 1n }, sign);
  for (const part of parts) {
    const flow = flowOf(part.side === 'bid', part.baseUnits, part.quoteUnits);
    addTo(to.makers, [part.maker, market.index, hourMs], { parts: 1n, closed_quote: part.closedUnits, ...flow }, sign);
  }
  if (one.book !== null) addBook(to, market, { book: one.book, hourMs }, sign);
}

function addBook(
  to: Activity,
  market: Market,
  { book, hourMs }: { book: MarketSnapshot; hourMs: number },
  sign: 1n | -1n,
): void {
  const [asks, bids] = [offeredBy(market, book.asks), offeredBy(market, book.bids)];
  for (const maker of new Set([...asks.keys(), ...bids.keys()])) {
    const offered = { curves: 1n, offered_ask: asks.get(maker) ?? 0n, offered_bid: bids.get(maker) ?? 0n };
    addTo(to.makers, [maker, market.index, hourMs], offered, sign);
  }
  const all = (offers: ReadonlyMap<Address, bigint>) => [...offers.values()].reduce((sum, units) => sum + units, 0n);
  addTo(to.markets, [market.index, hourMs], { curves: 1n, offered_ask: all(asks), offered_bid: all(bids) }, sign);
}

function offeredBy(market: Market, orders: readonly SnapshotOrder[]): Map<Address, bigint> {
  const units = new Map<Address, bigint>();
  for (const { maker, sizeLots } of orders) units.set(maker, (units.get(maker) ?? 0n) + sizeLots * market.lotUnits);
  return units;
}

/** Adds or subtracts the markouts of a fill's parts at one horizon. `middle` is the middle of the curve that was live at that time. */
export function addMarkouts(
  to: Activity,
  market: Market,
  fill: { timestampMs: number; parts: readonly Omit<ActivityPart, 'closedUnits'>[] },
  { horizonSec, middle }: { horizonSec: HorizonSec; middle: bigint | null },
  sign: 1n | -1n = 1n,
): void {
  const hourMs = periodOf(MAKER_HOURS, fill.timestampMs);
  for (const part of fill.parts) {
    const deltas: Partial<Record<MakerSum, bigint>> =
      middle === null
        ? { [`unmarked_${horizonSec}`]: part.quoteUnits }
        : { [`marked_${horizonSec}`]: part.quoteUnits, [`markout_${horizonSec}`]: markoutUnits(market, part, middle) };
    addTo(to.makers, [part.maker, market.index, hourMs], deltas, sign);
  }
}

/** Whether the middle of a horizon is final: a later block is known, so no curve can be posted before that time any more. */
export const isMarked = (timestampMs: number, horizonSec: HorizonSec, headMs: number): boolean =>
  timestampMs + horizonSec * 1_000 < headMs;
