import { asAddress } from '../../../core/wire/shape.js';
import { userOrderFills } from '../../../ledger/views/reads.js';
import { MAX_CLOSED_ORDERS, MAX_USER_FILLS } from '../limits.js';
import { frontendRow } from './order-row.js';
import type { InfoHandler } from './types.js';

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
