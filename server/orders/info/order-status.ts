import type { Address } from '../../../core/types.js';
import { asAddress, asCloid, asUint } from '../../../core/wire/shape.js';
import type { KnownOrder } from '../history.js';
import { MAX_USER_FILLS } from '../limits.js';
import { userOrderFills } from '../../../ledger/views/reads.js';
import { frontendRow } from './order-row.js';
import type { InfoDeps, InfoHandler } from './types.js';

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
