import { ticksToPrice, unitsToSize } from '../../../core/market.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { asAddress, asBoolean, asUint } from '../../../core/wire/shape.js';
import { userOrderFills, userOrderFillsByTime, type UserFill } from '../../../ledger/views/reads.js';
import { quoteAmount } from '../../market-data/wire.js';
import { MAX_USER_FILLS } from '../limits.js';
import { sideLetter } from './orders.js';
import { coinOf } from './markets.js';
import type { InfoDeps, InfoHandler } from './types.js';

/**
 * The latest 2,000 order fills of a maker, newest first. Maker fees are settled elsewhere, so `fee` is zero. When merged by block, a block whose parts
 * may continue beyond them is left out.
 */
export const userFills: InfoHandler = async (request, deps) => {
  const user = asAddress(request.user, 'user');
  const isMerged = asBoolean(request.aggregateByTime ?? false, 'aggregateByTime');
  const fills = await userOrderFills(deps.db.reads, user, MAX_USER_FILLS);
  return (isMerged ? mergedPage(fills) : fills).map((fill) => userFillJson(fill, deps.gateway));
};

/** The fills of an answer, merged: without those of its last block where the limit may have cut that in two, so that no size is a part of one. */
export function mergedPage(fills: readonly UserFill[]): UserFill[] {
  const last = fills.at(-1)?.blockNumber;
  const whole = fills.filter(({ blockNumber }) => blockNumber !== last);
  const isCut = fills.length === MAX_USER_FILLS && whole.length > 0;
  return mergedFills(isCut ? whole : fills);
}

/**
 * Fills in which the parts of one order in one block are merged, at the position of the first of them: sizes and profits are summed; price,
 * transaction and id are those of the earliest part.
 */
export function mergedFills(fills: readonly UserFill[]): UserFill[] {
  const merged = new Map<string, UserFill>();
  for (const fill of fills) {
    const key = `${fill.oid}:${fill.blockNumber}`;
    const other = merged.get(key);
    if (other === undefined) {
      merged.set(key, fill);
      continue;
    }
    const earliest = fill.fillSeq < other.fillSeq ? fill : other;
    merged.set(key, {
      ...earliest,
      baseUnits: fill.baseUnits + other.baseUnits,
      quoteUnits: fill.quoteUnits + other.quoteUnits,
      closedUnits: fill.closedUnits + other.closedUnits,
    });
  }
  return [...merged.values()];
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
    closedPnl: quoteAmount(market, fill.closedUnits),
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

/**
 * Fills of a maker within two times, both included: the oldest 2,000 first, or with `reversed` the newest. The next page begins with the
 * last time of this one. When merged by block, a block whose parts may continue on the next page is left out.
 */
export const userFillsByTime: InfoHandler = async (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  const isMerged = asBoolean(request.aggregateByTime ?? false, 'aggregateByTime');
  const fills = await userOrderFillsByTime(db.reads, user, {
    fromMs: asUint(request.startTime, 'startTime'),
    toMs: asUint(request.endTime ?? Number.MAX_SAFE_INTEGER, 'endTime'),
    reversed: asBoolean(request.reversed ?? false, 'reversed'),
    limit: MAX_USER_FILLS,
  });
  return (isMerged ? mergedPage(fills) : fills).map((fill) => userFillJson(fill, gateway));
};
