import { maxBig } from '../../../core/amounts.js';
import { lotsToSize, ticksToPrice, unitsToSize } from '../../../core/market.js';
import type { Market, OpenOrder, Side } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { coinOf } from './spot-meta.js';

export const sideLetter = (side: Side): 'B' | 'A' => (side === 'bid' ? 'B' : 'A');

function marketOfOrder(markets: readonly Market[], order: OpenOrder): Market {
  const market = markets[order.market];
  if (market === undefined)
    throw new RangeError(`order ${order.oid} names market ${order.market}, which is not listed`);
  return market;
}

/** An order as openOrders lists it. `sz` is what remains, with the decimals of the base token. */
export function orderRow(markets: readonly Market[], order: OpenOrder) {
  const market = marketOfOrder(markets, order);
  const remaining = maxBig(order.sizeLots * market.lotUnits - order.filledUnits, 0n);
  return {
    coin: coinOf(market),
    side: sideLetter(order.side),
    limitPx: withPoint(ticksToPrice(market, order.priceTicks)),
    sz: withPoint(unitsToSize(market, remaining)),
    oid: order.oid,
    timestamp: order.placedMs,
    origSz: withPoint(lotsToSize(market, order.sizeLots)),
    ...(order.cloid === null ? {} : { cloid: order.cloid }),
  };
}

/** An order as frontendOpenOrders and orderStatus show it: `cloid` is always there. */
export function frontendRow(markets: readonly Market[], order: OpenOrder) {
  return {
    ...orderRow(markets, order),
    triggerCondition: 'N/A',
    isTrigger: false,
    triggerPx: '0.0',
    children: [],
    isPositionTpsl: false,
    reduceOnly: false,
    orderType: 'Limit',
    tif: order.tif,
    cloid: order.cloid,
  };
}
