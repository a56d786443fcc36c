import fc from 'fast-check';
import type { Market, MarketSnapshot, OrderFill, Side, SnapshotOrder } from '../../core/types.js';
import { MAKERS } from './markets.js';

/** A drawn order of a side. There are few prices and makers, so that ties are common. */
export interface OrderDraw {
  maker: number;
  priceTicks: bigint;
  sizeLots: bigint;
}

export const orderDraw = (maxTicks = 6n, maxLots = 5n): fc.Arbitrary<OrderDraw> =>
  fc.record({
    maker: fc.nat(MAKERS.length - 1),
    priceTicks: fc.bigInt(1n, maxTicks),
    sizeLots: fc.bigInt(1n, maxLots),
  });

/** Best price first, then lower maker address, then lower oid. */
export const inSnapshotOrder = <T extends { oid: number; maker: string; priceTicks: bigint }>(
  side: Side,
  orders: readonly T[],
): T[] =>
  [...orders].sort((a, b) => {
    if (a.priceTicks !== b.priceTicks) return a.priceTicks < b.priceTicks === (side === 'ask') ? -1 : 1;
    return a.maker === b.maker ? a.oid - b.oid : a.maker < b.maker ? -1 : 1;
  });

/** Sorts drawn orders as a snapshot does; oids count from `firstOid` in drawing order, so they are unrelated to prices. */
export const sideOf = (side: Side, draws: readonly OrderDraw[], firstOid: number): SnapshotOrder[] =>
  inSnapshotOrder(
    side,
    draws.map(({ maker, priceTicks, sizeLots }, index) => ({
      oid: firstOid + index,
      maker: MAKERS[maker]!,
      priceTicks,
      sizeLots,
    })),
  );

/** A snapshot of market 0 with one side filled. */
export const oneSided = (market: Market, side: Side, draws: readonly OrderDraw[], firstOid = 1): MarketSnapshot => {
  const orders = sideOf(side, draws, firstOid);
  const volumes = { fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n };
  return { market: market.index, ...volumes, asks: side === 'ask' ? orders : [], bids: side === 'bid' ? orders : [] };
};

export const depthUnits = (market: Market, orders: readonly SnapshotOrder[]): bigint =>
  orders.reduce((sum, order) => sum + order.sizeLots * market.lotUnits, 0n);

/** `permille` of a whole, at least one unit unless the whole is zero. */
export const part = (wholeUnits: bigint, permille: bigint): bigint => {
  const units = (wholeUnits * permille) / 1000n;
  return units === 0n && wholeUnits > 0n ? 1n : units;
};

/** Sums of fills per order. */
export const unitsByOid = (fills: readonly Pick<OrderFill, 'oid' | 'baseUnits'>[]): Map<number, bigint> => {
  const sums = new Map<number, bigint>();
  for (const { oid, baseUnits } of fills) sums.set(oid, (sums.get(oid) ?? 0n) + baseUnits);
  return sums;
};
