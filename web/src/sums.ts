import type { Decomposition, Fill } from './market-context.js';
import { exact, isEqual, sum } from './numbers.js';
import type { Exact } from './numbers.js';

/** The sum of a fill's legs and what is left, beside the quote units that the taker paid or the curve gave. Computed in the browser. */
interface Sums {
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
