import { maxBig } from '../../../core/amounts.js';
import { lotsToSize, ticksToPrice, unitsToSize } from '../../../core/market.js';
import type { Market, OpenOrder, Side, Address } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { coinOf } from './markets.js';
import { asAddress, asCloid, asUint } from '../../../core/wire/shape.js';
import type { InfoHandler, InfoDeps } from './types.js';
import { afterSearch } from './weights.js';
import { readTx } from '../../../ledger/db/db.js';
import { lastFillsOf, readPastOid, readPastOrder } from '../../../ledger/orders/past-orders.js';
import { MAX_CLOSED_ORDERS } from '../limits.js';
import { pastOrder, type KnownOrder } from '../history.js';

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

/** Open orders of a maker, newest first. */
export const openOrders: InfoHandler = (request, { gateway }) => {
  const orders = gateway.book().openOrders(asAddress(request.user, 'user'));
  return orders.toReversed().map((order) => orderRow(gateway.markets(), order));
};

/** Open orders of a maker with all their properties, newest first. */
export const frontendOpenOrders: InfoHandler = (request, { gateway }) =>
  frontendOrdersOf(asAddress(request.user, 'user'), gateway);

/** The same of a maker. */
export function frontendOrdersOf(user: Address, gateway: Pick<InfoDeps['gateway'], 'book' | 'markets'>): object[] {
  const orders = gateway.book().openOrders(user);
  return orders.toReversed().map((order) => frontendRow(gateway.markets(), order));
}

/** The 2,000 orders of a maker with the latest changes of status, newest first, each once with its present status. */
export const historicalOrders: InfoHandler = (request, deps) => orderHistoryOf(asAddress(request.user, 'user'), deps);

/** The same of a maker. */
export async function orderHistoryOf(
  user: Address,
  { gateway, db }: { gateway: Pick<InfoDeps['gateway'], 'ordersOf' | 'markets'>; db: InfoDeps['db'] },
): Promise<object[]> {
  const known = gateway.ordersOf(user);
  const filled = known.filter(({ stateMs }) => stateMs === null).map(({ order }) => order.oid);
  const lastFillMs = await lastFillsOf(db.reads, filled);
  return known
    .map(({ order, state, stateMs }) => ({
      order: frontendRow(gateway.markets(), order),
      status: state,
      statusTimestamp: stateMs ?? lastFillMs.get(order.oid) ?? order.placedMs,
    }))
    .sort((a, b) => b.statusTimestamp - a.statusTimestamp || b.order.oid - a.order.oid)
    .slice(0, MAX_CLOSED_ORDERS);
}

/**
 * One order of a maker by id or client order id, however long ago it was closed: every one that had a fill, others for as long as their rows of the
 * order log are kept. A client order id names the newest order that had it, of those that are open, among the latest closed ones, compacted, or in
 * the newest 2,000 parts of fills.
 */
export const orderStatus: InfoHandler = async (request, deps) => {
  const user = asAddress(request.user, 'user');
  const known = find(request.oid, user, deps);
  if (known !== undefined) return statusOf(known, user, deps);
  return afterSearch(await statusOf(await findPast(request.oid, user, deps), user, deps));
};

async function statusOf(known: KnownOrder | undefined, user: Address, { gateway, db }: InfoDeps): Promise<object> {
  if (known === undefined || known.order.maker !== user) return { status: 'unknownOid' };
  const order = frontendRow(gateway.markets(), known.order);
  const filledMs = known.stateMs ?? (await lastFillsOf(db.reads, [known.order.oid])).get(known.order.oid);
  const statusTimestamp = filledMs ?? known.order.placedMs;
  return { status: 'order', order: { order, status: known.state, statusTimestamp } };
}

function find(oid: unknown, user: Address, { gateway }: InfoDeps): KnownOrder | undefined {
  if (typeof oid === 'string') return gateway.orderByCloid(user, asCloid(oid, 'oid').toLowerCase());
  return gateway.order(asUint(oid, 'oid'));
}

/** Looks up an order that the gateway no longer has in memory. */
function findPast(named: unknown, user: Address, { gateway, db }: InfoDeps): Promise<KnownOrder | undefined> {
  return readTx(db, async (q) => {
    const oid = typeof named === 'string' ? await readPastOid(q, user, named.toLowerCase()) : asUint(named, 'oid');
    const past = oid === null ? null : await readPastOrder(q, gateway.markets(), oid, gateway.places(oid));
    return past === null ? undefined : pastOrder(past);
  });
}
