import { costOf, quoteCeil, quoteFloor, remaining, trade, type Consumed, type CurveSides } from '../curve/walk.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Address, Market } from '../types.js';
import { OWN, type Source, type Stretch, type Traded } from './source.js';
import { stretchesOf } from './stretches.js';

/** The live curve of a market. */
export interface CurveState {
  market: Market;
  sides: CurveSides;
  consumed: Consumed;
}

/**
 * Our own curve as a source of `buyToken`, with the contract's results to the unit. `availableUnits` is the free liquidity of the buy token:
 * beyond it the vault does not pay. Throws RangeError when the market does not trade the token.
 */
export function curveSource(state: CurveState, buyToken: Address, availableUnits: bigint): Source {
  const { market, sides, consumed } = state;
  const isBuy = market.base.address === buyToken;
  if (!isBuy && market.quote.address !== buyToken) throw new RangeError(`${market.pair} does not trade ${buyToken}`);
  const left = isBuy ? remaining(sides.asks, consumed.askUnits) : remaining(sides.bids, consumed.bidUnits);

  function outputFor(inUnits: bigint): bigint | null {
    const result = trade(market, sides, consumed, isBuy ? 'buyExactIn' : 'sellExactIn', inUnits);
    if (result === null) return null;
    const outUnits = isBuy ? result.baseUnits : result.quoteUnits;
    return outUnits > availableUnits ? null : outUnits;
  }

  function inputFor(outUnits: bigint): bigint | null {
    if (outUnits > availableUnits) return null;
    const result = trade(market, sides, consumed, isBuy ? 'buyExactOut' : 'sellExactOut', outUnits);
    return result === null ? null : isBuy ? result.quoteUnits : result.baseUnits;
  }

  function tradedBase(base: bigint): Traded {
    const cost = costOf(left, base) ?? 0n;
    return isBuy
      ? { inUnits: quoteCeil(market, cost), outUnits: base }
      : { inUnits: base, outUnits: quoteFloor(market, cost) };
  }

  /** One base unit is worth subticks x tickLotUnits / (lotUnits x 256) quote units. */
  function segmentsAsStretches(): Stretch[] {
    const list: Stretch[] = [];
    let [base, before]: [bigint, Traded] = [0n, { inUnits: 0n, outUnits: 0n }];
    for (const { lengthUnits, subticks } of left) {
      base += lengthUnits;
      const whole = tradedBase(base);
      const isLast = whole.outUnits > availableUnits;
      const end = isLast ? vaultEnd() : whole;
      const [quote, one] = [subticks * market.tickLotUnits, market.lotUnits * SUBTICKS_PER_TICK];
      const [gain, per] = isBuy ? [one, quote] : [quote, one];
      const [inUnits, outUnits] = [end.inUnits - before.inUnits, end.outUnits - before.outUnits];
      if (inUnits > 0n && outUnits >= 0n) list.push({ gain, base: per, slope: 0n, inUnits, outUnits });
      if (isLast) break;
      before = whole;
    }
    return list;
  }

  /**
   * The vault's liquidity ends before the segments do. The input that just pays for the last available unit may buy more than that, and is
   * then refused.
   */
  function vaultEnd(): Traded {
    const cost = inputFor(availableUnits);
    if (cost === null) return { inUnits: 0n, outUnits: 0n };
    return { inUnits: outputFor(cost) === null ? cost - 1n : cost, outUnits: availableUnits };
  }

  const stretches = stretchesOf(segmentsAsStretches());
  return { id: OWN, outputFor, inputFor, tradedAt: stretches.tradedAt, stretches: stretches.list };
}
