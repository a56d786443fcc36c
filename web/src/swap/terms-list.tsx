import { formatUnits } from '../../../core/amounts.js';
import type { Loadable } from '../loadable.js';
import { shown } from '../numbers.js';
import { Age } from '../states.js';
import { rate, routeShares } from './terms.js';
import type { Mode, Price, Token } from './terms.js';

interface TermsProps {
  mode: Mode;
  sell: Token;
  buy: Token;
  /** What is sold, and what it brings; null where that is not known. */
  units: bigint | null;
  buyUnits: bigint | null;
  least: bigint | null;
  price: Loadable<Price>;
  direct: Loadable<bigint>;
  hasReader: boolean;
  /** Why nothing is traded now is said elsewhere. */
  isOff: boolean;
}

/** What a swap would bring now: the price, its impact, the least, the fee and the route. */
export function TermsList({ mode, sell, buy, units, buyUnits, least, price, direct, hasReader, isOff }: TermsProps) {
  const asked = mode === 'gasless' ? price : direct;
  if (units === null) return <p role="status">Enter an amount to see its price.</p>;
  if (mode === 'direct' && !hasReader)
    return <p role="status">The price of a direct swap is asked of the chain: connect a wallet to see it.</p>;
  const perToken = buyUnits === null ? null : rate(units, buyUnits, sell, buy);
  return (
    <>
      {asked.error !== null && !isOff && (
        <p role="alert" className="bad">
          {asked.error}
        </p>
      )}
      {mode === 'direct' && direct.data === 0n && !isOff && (
        <p role="alert" className="bad">
          The curve quotes nothing for this amount now. What to do: take a smaller amount, wait for the next curve, or
          swap gasless, which has pools too.
        </p>
      )}
      <dl className={asked.error === null ? 'facts' : 'facts old'}>
        <Term name="Price">{perToken === null ? '…' : `1 ${sell.symbol} = ${shown(perToken)} ${buy.symbol}`}</Term>
        <Term name="At this price at least">
          {least === null ? '…' : `${shown(formatUnits(least, buy.decimals))} ${buy.symbol}`}
        </Term>
        <Term name="Impact">
          {mode === 'direct' ? 'in the price' : price.data === null ? '…' : impactText(price.data.priceImpactBps)}
        </Term>
        <Term name="Gas">
          {mode === 'direct'
            ? 'ETH, by your wallet'
            : price.data === null
              ? '…'
              : `${shown(formatUnits(BigInt(price.data.feeAmount), sell.decimals), 8)} ${sell.symbol}, in the price`}
        </Term>
        <Term name="Route">
          {mode === 'direct'
            ? 'makers 100 %'
            : price.data === null
              ? '…'
              : routeShares(price.data.route)
                  .map(({ source, percent }) => `${source === 'own' ? 'makers' : source} ${percent} %`)
                  .join(' + ')}
        </Term>
        <Term name="Asked">{asked.atMs === null ? '…' : <>{<Age sinceMs={asked.atMs} />} ago</>}</Term>
      </dl>
    </>
  );
}

const impactText = (bps: number | null): string => (bps === null ? 'not known' : `${bps} bps`);

function Term({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
