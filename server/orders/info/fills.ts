import { ticksToPrice, unitsToSize } from '../../../core/market.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { WireError } from '../../../core/wire/errors.js';
import { asAddress, asBoolean, asUint, type JsonObject } from '../../../core/wire/shape.js';
import { userOrderFills, userOrderFillsByTime, type UserFill } from '../../../ledger/views/reads.js';
import { MAX_USER_FILLS } from '../limits.js';
import { sideLetter } from './orders.js';
import { coinOf } from './markets.js';
import type { InfoDeps, InfoHandler } from './types.js';

/** The latest 2,000 order fills of a maker, newest first. Maker fees are settled elsewhere, so `fee` is zero. */
export const userFills: InfoHandler = async (request, deps) => {
  const user = asAddress(request.user, 'user');
  refuseAggregation(request);
  const fills = await userOrderFills(deps.db.reads, user, MAX_USER_FILLS);
  return fills.map((fill) => userFillJson(fill, deps.gateway));
};

/** Fills are never merged. Throws WireError. */
export function refuseAggregation({ aggregateByTime }: JsonObject): void {
  if ((aggregateByTime ?? false) !== false) throw new WireError('aggregateByTime', 'is not supported');
}

/** A fill as its maker sees it. */
export function userFillJson(fill: UserFill, gateway: Pick<InfoDeps['gateway'], 'markets'>): object {
  const market = gateway.markets()[fill.market];
  if (market === undefined) throw new RangeError(`a fill names market ${fill.market}, which is not listed`);
  return {
    coin: coinOf(market),
    px: withPoint(ticksToPrice(market, fill.priceTicks)),
    sz: withPoint(unitsToSize(market, fill.baseUnits)),
    side: sideLetter(fill.side),
    time: fill.timestampMs,
    startPosition: withPoint(unitsToSize(market, fill.startBaseUnits)),
    dir: fill.side === 'bid' ? 'Buy' : 'Sell',
    closedPnl: '0.0',
    hash: fill.txHash,
    oid: fill.oid,
    crossed: false,
    fee: '0.0',
    feeToken: fill.side === 'bid' ? market.base.symbol : market.quote.symbol,
    tid: fill.tid,
    ...(fill.cloid === null ? {} : { cloid: fill.cloid }),
    twapId: null,
  };
}

/** Fills of a maker within two times, both included: the oldest 2,000 first, or with `reversed` the newest. */
export const userFillsByTime: InfoHandler = async (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  refuseAggregation(request);
  const fills = await userOrderFillsByTime(db.reads, user, {
    fromMs: asUint(request.startTime, 'startTime'),
    toMs: asUint(request.endTime ?? Number.MAX_SAFE_INTEGER, 'endTime'),
    reversed: asBoolean(request.reversed ?? false, 'reversed'),
    limit: MAX_USER_FILLS,
  });
  return fills.map((fill) => userFillJson(fill, gateway));
};
