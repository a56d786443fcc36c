import { asAddress } from '../../../core/wire/shape.js';
import { orderRow } from './order-row.js';
import type { InfoHandler } from './types.js';

/** Open orders of a maker, newest first. */
export const openOrders: InfoHandler = (request, { gateway }) => {
  const orders = gateway.book().openOrders(asAddress(request.user, 'user'));
  return orders.toReversed().map((order) => orderRow(gateway.markets(), order));
};
