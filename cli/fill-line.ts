import { formatUnits } from '../core/amounts.js';
import { ticksToPrice, unitsToSize } from '../core/market.js';
import type { Market } from '../core/types.js';
import type { AttributedFill } from '../ledger/types.js';

/** One line per fill with its arithmetic: every maker's leg at its own price, the residual, and the curve amount that they add up to. */
export function fillLine(market: Market, { fill, decomposition }: AttributedFill): string {
  const quote = (units: bigint) => formatUnits(units, market.quote.decimals);
  const legsUnits = decomposition.legs.reduce((sum, leg) => sum + leg.quoteUnits, 0n);
  const reconciles = legsUnits + decomposition.residualUnits === fill.quoteUnits;
  const legs = decomposition.legs
    .map(
      (leg) =>
        `${leg.maker.slice(0, 8)} ${unitsToSize(market, leg.baseUnits)} @ ${ticksToPrice(market, leg.priceTicks)}`,
    )
    .join(', ');
  return (
    `fill ${market.pair} #${fill.fillSeq} ${fill.side === 'ask' ? 'buy' : 'sell'} ${unitsToSize(market, fill.baseUnits)} ` +
    `${market.base.symbol} on curve ${fill.curveSeq}: [${legs}] legs ${quote(legsUnits)} + residual ` +
    `${quote(decomposition.residualUnits)} = ${quote(fill.quoteUnits)} ${market.quote.symbol} ` +
    `${reconciles ? '(reconciles)' : '(DOES NOT RECONCILE)'}`
  );
}
