import type { Aggregation } from '../../core/market-data/aggregate.js';
import { asAddress } from '../../core/wire/shape.js';
import { WireError } from '../../core/wire/errors.js';
import type { Address, Market } from '../../core/types.js';
import type { PlatformSubscription } from './platform.js';
import { readAggregation } from '../orders/info/books.js';
import { coinOf } from '../orders/info/markets.js';
import type { AccountSource } from './account-feed.js';
import type { MarketSource } from './market-source.js';
import { subscriptionSchema } from './schemas.js';

/** Updates of one user. */
type UserStream =
  | 'orderUpdates'
  | 'userFills'
  | 'userEvents'
  | 'userHistoricalOrders'
  | 'userFundings'
  | 'userNonFundingLedgerUpdates'
  | 'notification';

/** What a connection may subscribe to. `key` is equal for subscriptions that mean the same. */
export type Subscription =
  | { kind: 'user'; type: UserStream; user: Address; aggregated: boolean; key: string }
  | { kind: 'book'; market: number; by: Aggregation | null; isFast: boolean; key: string }
  | { kind: 'mids'; dex: string | null; key: string }
  | { kind: 'trades'; market: number; key: string }
  | { kind: 'account'; source: AccountSource; key: string }
  | { kind: 'state'; source: MarketSource; key: string }
  | { kind: 'platform'; of: PlatformSubscription; key: string };

/** A subscription as sent, an unknown one refused. Throws WireError. */
export function readSubscription(value: unknown, markets: readonly Market[]): Subscription {
  const { data: request } = subscriptionSchema.safeParse(value);
  if (request === undefined) throw new WireError('subscription', 'is not a known subscription');
  const marketOf = (coin: string): number => {
    const market = markets.find((one) => coinOf(one) === coin);
    if (market === undefined) throw new WireError('coin', 'is not listed');
    return market.index;
  };
  switch (request.type) {
    case 'orderUpdates':
    case 'userEvents':
    case 'userHistoricalOrders':
    case 'userFundings':
    case 'userNonFundingLedgerUpdates':
    case 'notification':
      return userSubscription(request.type, request.user);
    case 'userFills':
      return userSubscription(request.type, request.user, request.aggregateByTime === true);
    case 'l2Book': {
      const by = readAggregation(request);
      const market = marketOf(request.coin);
      const figures = by === null ? '' : `:${by.nSigFigs}:${by.mantissa ?? 1}`;
      const isFast = request.fast === true;
      return { kind: 'book', market, by, isFast, key: `l2Book:${market}${figures}${isFast ? ':fast' : ''}` };
    }
    case 'fills':
    case 'curves': {
      const { type } = request;
      const market = markets.find(({ pair }) => pair === request.pair);
      if (market === undefined) throw new WireError('pair', 'is not listed');
      const key = `${type}:${market.pair}`;
      return { kind: 'platform', of: { type, market: market.index, pair: market.pair, key }, key };
    }
    case 'status':
      return { kind: 'platform', of: { type: 'status', key: 'status' }, key: 'status' };
    case 'allMids': {
      // There are no perpetual dexes here; the default one is written as an empty name, or not at all.
      const dex = request.dex ?? null;
      return { kind: 'mids', dex, key: dex === null ? 'allMids' : 'allMids:' };
    }
    case 'trades': {
      const market = marketOf(request.coin);
      return { kind: 'trades', market, key: `trades:${market}` };
    }
    case 'bbo':
    case 'activeAssetCtx': {
      const market = marketOf(request.coin);
      return { kind: 'state', source: { type: request.type, market }, key: `${request.type}:${market}` };
    }
    case 'candle': {
      const { type, interval } = request;
      const market = marketOf(request.coin);
      return { kind: 'state', source: { type, market, interval }, key: `${type}:${market}:${interval}` };
    }
    case 'openOrders':
    case 'swapOrders':
    case 'spotState': {
      const user = asAddress(request.user, 'user');
      return { kind: 'account', source: { type: request.type, user }, key: `${request.type}:${user}` };
    }
    case 'spotAssetCtxs':
      return { kind: 'state', source: { type: request.type }, key: request.type };
    case 'webData2': {
      const user = asAddress(request.user, 'user');
      return { kind: 'state', source: { type: request.type, user }, key: `${request.type}:${user}` };
    }
  }
}

function userSubscription(type: UserStream, value: string, aggregated = false): Subscription {
  const user = asAddress(value, 'user');
  return { kind: 'user', type, user, aggregated, key: `${type}:${user}${aggregated ? ':aggregated' : ''}` };
}
