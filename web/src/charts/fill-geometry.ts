import type { Decomposition, PostedCurve } from '../market-context.js';
import { at, exact } from '../numbers.js';

/** A piece of a line over cumulative size: flat at `price` from `from` to `to`, all at the scale of the drawing. */
export interface Bar {
  from: bigint;
  to: bigint;
  price: bigint;
}

/** A maker's part of a fill, under the price that it quoted. */
interface LegBar extends Bar {
  maker: string;
  base: string;
  quote: string;
  priceText: string;
  /** Which maker it is, in the order of their addresses: colours and patterns go by it. */
  index: number;
}

/** Where the curve is drawn above or below a leg: the area between is left for the operator, or comes from it. */
interface Gap extends Bar {
  curve: bigint;
  isGain: boolean;
}

/** What the picture of a fill shows: marginal price over size, counted from the touch of the curve. */
export interface FillGeometry {
  /** Where the fill begins and ends on the curve. */
  from: bigint;
  to: bigint;
  legs: LegBar[];
  curve: Bar[];
  /** The book behind the curve as steps, empty where it is not shown or is another one than the legs were taken from. */
  book: Bar[];
  gaps: Gap[];
  prices: { low: bigint; high: bigint };
}

/** Digits after the point in which the picture counts; finer ones are cut off in the drawing, never in a sum. */
export const SCALE = 18;

const units = (text: string): bigint => at(exact(text), SCALE);

/** What a tick and a lot of a market are worth, as exact decimals. */
interface Grid {
  tick_size: string;
  lot_size: string;
}

/** The orders behind a curve, added up by price from the touch on; empty while the book is not shown. */
function bookSteps(curve: PostedCurve | null, direction: 'buy' | 'sell', grid: Grid): Bar[] {
  const orders = (direction === 'buy' ? curve?.snapshot?.asks : curve?.snapshot?.bids) ?? [];
  const [tick, lot] = [exact(grid.tick_size), exact(grid.lot_size)];
  const lotsAt = new Map<bigint, bigint>();
  for (const { ticks, lots } of orders) lotsAt.set(BigInt(ticks), (lotsAt.get(BigInt(ticks)) ?? 0n) + BigInt(lots));
  const ascending = [...lotsAt].sort(([a], [b]) => (a < b ? -1 : 1));
  let end = 0n;
  return (direction === 'buy' ? ascending : ascending.reverse()).map(([ticks, lots]) => {
    const from = end;
    end += at({ digits: lots * lot.digits, scale: lot.scale }, SCALE);
    return { from, to: end, price: at({ digits: ticks * tick.digits, scale: tick.scale }, SCALE) };
  });
}

/**
 * Whether each leg lies on the step of its own price. It does not where fills of older curves had taken from this book before: the curve was cut
 * without them, and drawing these steps would show a book that nobody traded against.
 */
function isUnder(steps: readonly Bar[], legs: readonly Bar[]): boolean {
  return legs.every((leg) =>
    steps.some(({ from, to, price }) => price === leg.price && from <= leg.from && leg.to <= to),
  );
}

/** The parts of legs that the curve served at another price than theirs. */
function gapsOf(legs: readonly Bar[], curve: readonly Bar[], direction: 'buy' | 'sell'): Gap[] {
  return legs.flatMap((leg) =>
    curve.flatMap((piece) => {
      const from = leg.from > piece.from ? leg.from : piece.from;
      const to = leg.to < piece.to ? leg.to : piece.to;
      if (from >= to || piece.price === leg.price) return [];
      const isGain = direction === 'buy' ? piece.price > leg.price : leg.price > piece.price;
      return [{ from, to, price: leg.price, curve: piece.price, isGain }];
    }),
  );
}

/**
 * The legs of a fill side by side in the order in which they were taken, under the pieces of the curve that they were sold through. Null without
 * legs.
 */
export function fillGeometry(
  decomposition: Decomposition,
  curve: PostedCurve | null,
  grid: Grid | null = null,
): FillGeometry | null {
  const { legs, consumed_before: before, direction } = decomposition;
  if (legs.length === 0 || direction === null) return null;
  const makers = [...new Set(legs.map(({ maker }) => maker))].sort();
  const from = units(before ?? '0');
  let end = from;
  const legBars = legs.map((leg) => {
    const start = end;
    end += units(leg.base_amount);
    return {
      from: start,
      to: end,
      price: units(leg.price),
      maker: leg.maker,
      base: leg.base_amount,
      quote: leg.quote_amount,
      priceText: leg.price,
      index: makers.indexOf(leg.maker),
    };
  });
  let knot = 0n;
  const pieces = (direction === 'buy' ? curve?.prepared?.asks : curve?.prepared?.bids) ?? [];
  const bars = pieces.map(({ size, price }) => {
    const start = knot;
    knot += units(size);
    return { from: start, to: knot, price: units(price) };
  });
  const steps = grid === null ? [] : bookSteps(curve, direction, grid);
  const book = isUnder(steps, legBars) ? steps : [];
  const near = [...bars, ...book].filter((bar) => bar.to > from && bar.from < end);
  const prices = [...legBars, ...near].map(({ price }) => price);
  const low = prices.reduce((a, b) => (b < a ? b : a));
  const high = prices.reduce((a, b) => (b > a ? b : a));
  const margin = (high - low) / 6n + high / 50_000n + 1n;
  const gaps = gapsOf(legBars, bars, direction);
  return { from, to: end, legs: legBars, curve: bars, book, gaps, prices: { low: low - margin, high: high + margin } };
}
