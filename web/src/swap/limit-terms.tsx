import { formatUnits } from '../../../core/amounts.js';
import { shown } from '../numbers.js';
import { rate } from './terms.js';
import type { Token } from './terms.js';

const HOUR_SEC = 3_600;
const DAY_SEC = 24 * HOUR_SEC;

/** How long a limit order may wait, the longest that the server takes last. */
export const WAITS = [
  [HOUR_SEC, '1 hour'],
  [DAY_SEC, '1 day'],
  [7 * DAY_SEC, '7 days'],
  [30 * DAY_SEC, '30 days'],
] as const;

interface LimitTermsProps {
  sell: Token;
  buy: Token;
  /** What is sold, and the least that it is to bring; null while either is not an amount. */
  units: bigint | null;
  leastUnits: bigint | null;
  /** What the market brings now, after the fee; null where that is not known. */
  nowUnits: bigint | null;
}

/** The price of a limit order, and how far the market is from it. */
export function LimitTerms({ sell, buy, units, leastUnits, nowUnits }: LimitTermsProps) {
  if (units === null || leastUnits === null)
    return <p role="status">Enter what you sell, and the least that you take for it.</p>;
  const price = (buyUnits: bigint): string =>
    `1 ${sell.symbol} = ${shown(rate(units, buyUnits, sell, buy) ?? '')} ${buy.symbol}`;
  const facts: readonly (readonly [string, string])[] = [
    ['Your limit', price(leastUnits)],
    ['The market, after the fee', nowUnits === null ? '…' : price(nowUnits)],
    ['Away', nowUnits === null || nowUnits === 0n ? '…' : away(leastUnits, nowUnits)],
  ];
  return (
    <>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className="caption">
        It waits until the market brings that after the fee. What is signed stays valid until then: keep the tokens in
        the account, and cancel the order, for nothing, when you no longer want it.
      </p>
    </>
  );
}

/** How much more than now the market has to bring, cut off to a hundredth of a percent. */
function away(leastUnits: bigint, nowUnits: bigint): string {
  const bps = ((leastUnits - nowUnits) * 10_000n) / nowUnits;
  if (leastUnits <= nowUnits) return 'the market is there: it is filled at once';
  return `${shown(formatUnits(bps, 2))} %`;
}
