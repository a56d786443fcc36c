import type { Fill } from './market-context.js';
import { shown, text } from './numbers.js';
import type { Sums } from './sums.js';

/** The sum as a sentence: who paid and who got, and whether the operator was left with something or added it. */
export function inWords(
  { legs, residual, total, adds }: Sums,
  direction: Fill['direction'],
  quoteToken: string,
): string {
  const isBuy = direction === 'buy';
  const isLess = residual.digits < 0n;
  const isGain = isBuy ? !isLess : residual.digits <= 0n;
  const left = shown(text({ ...residual, digits: isLess ? -residual.digits : residual.digits }));
  return [
    `makers ${isBuy ? 'got' : 'paid'} ${shown(text(legs))} ${isLess ? '−' : '+'} ${left}`,
    `${isGain ? 'left for the operator' : 'from the operator'} ${adds ? '=' : '≠'} ${shown(text(total))} ${quoteToken}`,
    `that the taker ${isBuy ? 'paid' : 'got'} ${adds ? '✓ computed in this browser' : '✗'}`,
  ].join(' ');
}
