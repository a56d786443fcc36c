import type { Decomposition, Fill } from './market-context.js';
import { formatUnits } from '../../core/amounts.js';
import { at, exact, isEqual, sum } from './numbers.js';
import type { Exact } from './numbers.js';

/** The sum of a fill's legs and what is left, beside the quote units that the taker paid or the curve gave. Computed in the browser. */
export interface Sums {
  legs: Exact;
  residual: Exact;
  /** What the sum has to be: quote units paid by a buyer; got by a seller, with the fee that was taken from them. */
  total: Exact;
  adds: boolean;
}

export function sumsOf(fill: Fill, decomposition: Decomposition, quoteToken: string): Sums {
  const legs = sum(decomposition.legs.map((leg) => exact(leg.quote_amount)));
  const residual = exact(decomposition.residual);
  const fee = fill.fee.token === quoteToken ? exact(fill.fee.amount) : exact('0');
  const total = fill.direction === 'buy' ? exact(fill.amount_in) : sum([exact(fill.amount_out), fee]);
  return { legs, residual, total, adds: isEqual(sum([legs, residual]), total) };
}

interface Piece {
  price: string;
  size: string;
}

const SCALE = 18;
const units = (text: string): bigint => at(exact(text), SCALE);

/** What the first `size` of a side cost, best price first. */
function costOf(side: readonly Piece[], size: bigint): bigint {
  let left = size;
  return side.reduce((cost, piece) => {
    const part = units(piece.size) < left ? units(piece.size) : left;
    left -= part;
    return cost + part * units(piece.price);
  }, 0n);
}

/**
 * How much worse a taker of all that both have is served by the curve than by the book, in basis points of the book's price to two places, cut off;
 * negative where the curve is better. Null where one of them is empty.
 */
export function offBook(curve: readonly Piece[], book: readonly Piece[], side: 'bids' | 'asks'): string | null {
  const total = (pieces: readonly Piece[]): bigint => pieces.reduce((all, { size }) => all + units(size), 0n);
  const [ofCurve, ofBook] = [total(curve), total(book)];
  const size = ofCurve < ofBook ? ofCurve : ofBook;
  const fair = costOf(book, size);
  if (fair === 0n) return null;
  const more = costOf(curve, size) - fair;
  return formatUnits(((side === 'asks' ? more : -more) * 1_000_000n) / fair, 2);
}
