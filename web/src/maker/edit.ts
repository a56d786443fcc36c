/** An order that is changed while it may be filled: what is sent never puts back on sale what was filled meanwhile, unless somebody has seen that. */
import type { OrderState } from '../../../sdk/src/stream.js';
import type { Market } from '../market-context.js';

/** An order that is changed. It stays in its own market, whichever the page shows. */
export interface Edited {
  market: Market;
  oid: number;
  side: 'buy' | 'sell';
  price: string;
  /** What was left of it when the change began. */
  size: string;
}

interface Standing {
  /** What is left of it now, or was when it was last known. */
  left: string;
  /** It is no longer open. */
  isGone: boolean;
}

/** Where the order stands by what the stream tells; nothing is concluded from what it leaves out before it is complete. */
export function standingOf({ oid, size }: Pick<Edited, 'oid' | 'size'>, live: OrderState | null): Standing {
  const row = live?.open.get(oid);
  return { left: row?.sz ?? size, isGone: row === undefined && live?.isComplete === true };
}

/** Whether a typed size was meant for another rest of the order: `seen` is what was left when somebody last pressed, or began. */
export const isOutdated = (typed: string | null, left: string, seen: string): boolean =>
  typed !== null && left !== seen;
