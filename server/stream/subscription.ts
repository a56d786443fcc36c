import { asAddress } from '../../core/wire/shape.js';
import { WireError } from '../../core/wire/errors.js';
import type { Address, Market } from '../../core/types.js';
import type { PlatformSubscription } from './platform.js';
import { coinOf } from '../orders/info/markets.js';
import { subscriptionSchema } from './schemas.js';

/** What a connection may subscribe to. `key` is equal for subscriptions that mean the same. */
export type Subscription =
  | { type: 'orderUpdates' | 'userFills'; user: Address; key: string }
  | { type: 'l2Book'; market: number; key: string }
  | { type: 'allMids'; dex: string | null; key: string }
  | PlatformSubscription;

/** A subscription as sent, an unknown one refused. Throws WireError. */
export function readSubscription(value: unknown, markets: readonly Market[]): Subscription {
  const { data: request } = subscriptionSchema.safeParse(value);
  if (request === undefined) throw new WireError('subscription', 'is not a known subscription');
  switch (request.type) {
    case 'orderUpdates':
    case 'userFills':
      return userSubscription(request.type, request.user);
    case 'l2Book': {
      const market = markets.find((one) => coinOf(one) === request.coin);
      if (market === undefined) throw new WireError('coin', 'is not listed');
      return { type: 'l2Book', market: market.index, key: `l2Book:${request.coin}` };
    }
    case 'fills':
    case 'curves': {
      const market = markets.find(({ pair }) => pair === request.pair);
      if (market === undefined) throw new WireError('pair', 'is not listed');
      return { type: request.type, market: market.index, pair: market.pair, key: `${request.type}:${market.pair}` };
    }
    case 'status':
      return { type: 'status', key: 'status' };
    case 'allMids': {
      // There are no perpetual dexes here; the default one is written as an empty name, or not at all.
      const dex = request.dex ?? null;
      return { type: 'allMids', dex, key: dex === null ? 'allMids' : 'allMids:' };
    }
  }
}

function userSubscription(type: 'orderUpdates' | 'userFills', value: string): Subscription {
  const user = asAddress(value, 'user');
  return { type, user, key: `${type}:${user}` };
}
