import type { Address, OpenOrder } from '../types.js';

/** Per market: who has open orders there, and a number that changes with every change of them. */
interface Quoting {
  added(order: OpenOrder): void;
  removed(order: OpenOrder): void;
  /** An order's size changed in place. */
  changed(order: OpenOrder): void;
  makers(market: number): Iterable<Address>;
  version(market: number): number;
}

/** Creates it without orders. */
export function createQuoting(): Quoting {
  const counts = new Map<number, Map<Address, number>>();
  const versions = new Map<number, number>();

  const changed = ({ market }: OpenOrder): void => void versions.set(market, (versions.get(market) ?? 0) + 1);

  const count = (order: OpenOrder, by: 1 | -1): void => {
    changed(order);
    let ofMarket = counts.get(order.market);
    if (ofMarket === undefined) {
      ofMarket = new Map();
      counts.set(order.market, ofMarket);
    }
    const next = (ofMarket.get(order.maker) ?? 0) + by;
    if (next === 0) ofMarket.delete(order.maker);
    else ofMarket.set(order.maker, next);
  };

  return {
    added: (order) => count(order, 1),
    removed: (order) => count(order, -1),
    changed,
    makers: (market) => counts.get(market)?.keys() ?? [],
    version: (market) => versions.get(market) ?? 0,
  };
}
