export { createStream } from './stream/client.js';
export type {
  DataOf,
  Frame,
  Stream,
  StreamOptions,
  StreamSchemas,
  StreamState,
  Subscription,
} from './stream/client.js';
export { followOrders } from './stream/orders.js';
export type { OrderListeners, OrderRow, OrderState, UserFill } from './stream/orders.js';
