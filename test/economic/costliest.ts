import { minBig } from '../../core/amounts.js';
import type { SideState } from '../../core/attribution.js';
import { SUBTICKS_PER_TICK } from '../../core/market.js';
import type { Segment, Side } from '../../core/types.js';

/**
 * The amount of base at which the rest of a curve loses most against what is left of its book, and that loss in subticks x base units.
 * Both are zero when it loses nowhere.
 */
export function costliest(
  side: Side,
  segments: readonly Segment[],
  { orders }: Pick<SideState, 'orders'>,
): { units: bigint; lost: bigint } {
  let worst = { units: 0n, lost: 0n };
  let [taken, lost] = [0n, 0n];
  let order = 0;
  let orderLeft = orders[0]?.units ?? 0n;
  for (const { lengthUnits, subticks } of segments) {
    for (let left = lengthUnits; left > 0n;) {
      while (orderLeft === 0n && order < orders.length) orderLeft = orders[++order]?.units ?? 0n;
      const here = orders[order];
      if (here === undefined) return worst;
      const units = minBig(left, orderLeft);
      const better = here.priceTicks * SUBTICKS_PER_TICK - subticks;
      lost += units * (side === 'ask' ? better : -better);
      taken += units;
      left -= units;
      orderLeft -= units;
      if (lost > worst.lost) worst = { units: taken, lost };
    }
  }
  return worst;
}
