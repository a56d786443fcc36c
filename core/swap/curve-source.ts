import { costOf, quoteCeil, quoteFloor, remaining, trade, type Consumed, type CurveSides } from '../curve/walk.js';
import { SUBTICKS_PER_TICK } from '../market.js';
import type { Address, Market, Segment } from '../types.js';
import { OWN, type Rate, type Source, type Traded } from './source.js';

/** A live curve, and what its vault can pay. */
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

  /** Base of the segments that bring at least `rate`. */
  function baseAt({ out, in: input }: Rate): bigint {
    let base = 0n;
    for (const segment of left) {
      if (!bringsAtLeast(segment, out, input)) break;
      base += segment.lengthUnits;
    }
    return base;
  }

  /** One base unit is worth subticks x tickLotUnits / (lotUnits x 256) quote units. */
  function bringsAtLeast({ subticks }: Segment, out: bigint, input: bigint): boolean {
    const quote = subticks * market.tickLotUnits;
    const base = market.lotUnits * SUBTICKS_PER_TICK;
    return isBuy ? base * input >= quote * out : quote * input >= base * out;
  }

  function tradedAt(rate: Rate): Traded {
    const base = baseAt(rate);
    const whole = tradedBase(base);
    if (whole.outUnits <= availableUnits) return whole;
    // The vault ends before the segments do. What just pays for the last unit may be worth more than that, and is then refused.
    const cost = inputFor(availableUnits);
    if (cost === null) return { inUnits: 0n, outUnits: 0n };
    return { inUnits: outputFor(cost) === null ? cost - 1n : cost, outUnits: availableUnits };
  }

  function tradedBase(base: bigint): Traded {
    const cost = costOf(left, base) ?? 0n;
    return isBuy
      ? { inUnits: quoteCeil(market, cost), outUnits: base }
      : { inUnits: base, outUnits: quoteFloor(market, cost) };
  }

  return { id: OWN, outputFor, inputFor, tradedAt };
}
