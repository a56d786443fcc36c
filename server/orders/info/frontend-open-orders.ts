import { asAddress } from '../../../core/wire/shape.js';
import { frontendRow } from './order-row.js';
import type { InfoHandler } from './types.js';

/** Open orders of a maker with all their properties, newest first. */
export const frontendOpenOrders: InfoHandler = (request, { gateway }) => {
  const orders = gateway.book().openOrders(asAddress(request.user, 'user'));
  return orders.toReversed().map((order) => frontendRow(gateway.markets(), order));
};
