import { maxBig } from '../../../core/amounts.js';
import { lotsToSize, ticksToPrice, unitsToSize } from '../../../core/market.js';
import type { Market, OpenOrder, Side, Address } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { coinOf } from './markets.js';
import { asAddress, asCloid, asUint } from '../../../core/wire/shape.js';
import type { InfoHandler, InfoDeps } from './types.js';
import { userOrderFills } from '../../../ledger/views/reads.js';
import { MAX_CLOSED_ORDERS, MAX_USER_FILLS } from '../limits.js';
import type { KnownOrder } from '../history.js';

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
function frontendRow(markets: readonly Market[], order: OpenOrder) {
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

/** Open orders of a maker, newest first. */
export const openOrders: InfoHandler = (request, { gateway }) => {
  const orders = gateway.book().openOrders(asAddress(request.user, 'user'));
  return orders.toReversed().map((order) => orderRow(gateway.markets(), order));
};

/** Open orders of a maker with all their properties, newest first. */
export const frontendOpenOrders: InfoHandler = (request, { gateway }) => {
  const orders = gateway.book().openOrders(asAddress(request.user, 'user'));
  return orders.toReversed().map((order) => frontendRow(gateway.markets(), order));
};

/** The latest 2,000 orders of a maker by what became of them last, newest first, each once with its present status. */
export const historicalOrders: InfoHandler = async (request, { gateway, db }) => {
  const user = asAddress(request.user, 'user');
  const fills = await userOrderFills(db.reads, user, MAX_USER_FILLS);
  const lastFillMs = new Map(fills.toReversed().map((fill) => [fill.oid, fill.timestampMs]));
  return gateway
    .ordersOf(user)
    .map(({ order, state, stateMs }) => ({
      order: frontendRow(gateway.markets(), order),
      status: state,
      statusTimestamp: stateMs ?? lastFillMs.get(order.oid) ?? order.placedMs,
    }))
    .sort((a, b) => b.statusTimestamp - a.statusTimestamp || b.order.oid - a.order.oid)
    .slice(0, MAX_CLOSED_ORDERS);
};

/** One order of a maker by id or client order id, open or among its latest closed ones. */
export const orderStatus: InfoHandler = async (request, deps) => {
  const user = asAddress(request.user, 'user');
  const known = find(request.oid, user, deps);
  if (known === undefined || known.order.maker !== user) return { status: 'unknownOid' };
  const order = frontendRow(deps.gateway.markets(), known.order);
  const statusTimestamp = known.stateMs ?? (await lastFillMs(known, deps));
  return { status: 'order', order: { order, status: known.state, statusTimestamp } };
};

function find(oid: unknown, user: Address, { gateway }: InfoDeps): KnownOrder | undefined {
  if (typeof oid === 'string') return gateway.orderByCloid(user, asCloid(oid, 'oid').toLowerCase());
  return gateway.order(asUint(oid, 'oid'));
}

/** When a filled order was filled, else when it was placed: fills older than the newest 2,000 of a maker are not looked up. */
async function lastFillMs({ order }: KnownOrder, { db }: InfoDeps): Promise<number> {
  const fills = await userOrderFills(db.reads, order.maker, MAX_USER_FILLS);
  return fills.find((fill) => fill.oid === order.oid)?.timestampMs ?? order.placedMs;
}
