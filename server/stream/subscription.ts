import { asAddress, asObject, asText } from '../../core/wire/shape.js';
import { WireError } from '../../core/wire/errors.js';
import type { Address, Market } from '../../core/types.js';
import { coinOf } from '../orders/info/spot-meta.js';

/** What a connection may subscribe to. `key` is equal for subscriptions that mean the same. */
export type Subscription =
  | { type: 'orderUpdates' | 'userFills'; user: Address; key: string }
  | { type: 'l2Book'; market: number; key: string }
  | { type: 'allMids'; dex: string | null; key: string };

/** A subscription as sent, an unknown one refused. Null means absent. Throws WireError. */
export function readSubscription(value: unknown, markets: readonly Market[]): Subscription {
  const request = asObject(value, 'subscription');
  const type = asText(request.type, 'type', 64);
  switch (type) {
    case 'orderUpdates':
      return userSubscription(type, request.user);
    case 'userFills':
      if ((request.aggregateByTime ?? false) !== false) throw new WireError('aggregateByTime', 'is not supported');
      return userSubscription(type, request.user);
    case 'l2Book': {
      for (const field of ['nSigFigs', 'mantissa'])
        if ((request[field] ?? null) !== null) throw new WireError(field, 'is not supported');
      const coin = asText(request.coin, 'coin', 64);
      const market = markets.find((one) => coinOf(one) === coin);
      if (market === undefined) throw new WireError('coin', 'is not listed');
      return { type, market: market.index, key: `l2Book:${coin}` };
    }
    case 'allMids': {
      // There are no perpetual dexes here; the default one is written as an empty name, or not at all.
      const dex = request.dex ?? null;
      if (dex !== null && dex !== '') throw new WireError('dex', 'is not known');
      return { type, dex, key: dex === null ? 'allMids' : 'allMids:' };
    }
    default:
      throw new WireError('type', 'is not a known subscription');
  }
}

function userSubscription(type: 'orderUpdates' | 'userFills', value: unknown): Subscription {
  const user = asAddress(value, 'user');
  return { type, user, key: `${type}:${user}` };
}
