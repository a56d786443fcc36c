/** Rows of orders as a strategy describes them. */
import { ceilDiv, maxBig } from '../../core/amounts.js';
import type { Address, Side } from '../../core/types.js';
import type { Setting } from './setting.js';
import type { Ladder } from './steps.js';

/** A strategy begins in a book of two honest makers, posted a block ago. */
export const HONEST_LADDERS: readonly Ladder[] = [
  { levels: 8, awayBps: 2, awayTicks: 1, spanBps: 60, gapPermille: 1_200, size: 1_000, sizePermille: 1_150 },
  { levels: 6, awayBps: 3, awayTicks: 1, spanBps: 90, gapPermille: 1_000, size: 2_000, sizePermille: 1_000 },
];

/** Prices and lots of a ladder; those of a bid that would not be positive are left out. */
export function ordersOf(
  setting: Setting,
  market: number,
  side: Side,
  ladder: Ladder,
  availableUnits: (token: Address) => bigint = () => 0n,
): { priceTicks: bigint; sizeLots: bigint }[] {
  const mid = setting.midTicks[market]!;
  const usual = setting.sizeLots[market]!;
  const reach: bigint[] = [0n];
  let gap = 1_000_000n;
  for (let i = 1; i < ladder.levels; i++) {
    reach.push(reach[i - 1]! + gap);
    gap = maxBig(1n, (gap * BigInt(ladder.gapPermille)) / 1_000n);
  }
  const last = maxBig(1n, reach.at(-1)!);
  const away = (mid * BigInt(ladder.awayBps)) / 10_000n + BigInt(ladder.awayTicks);
  const span = (mid * BigInt(ladder.spanBps)) / 10_000n;
  const listed = setting.markets[market]!;
  const { base, quote, lotUnits, tickLotUnits } = listed;
  const minUnits = setting.minOrderUnits(listed);
  const allLots =
    side === 'ask'
      ? availableUnits(base.address) / lotUnits
      : availableUnits(quote.address) / (maxBig(mid - away, 1n) * tickLotUnits);
  /** In billionths of a lot. */
  const sizes: Record<string, bigint> = {
    '-1': (allLots * 1_000_000_000n) / BigInt(ladder.levels),
    '0': ceilDiv(minUnits, maxBig(mid - away - span, 1n) * tickLotUnits) * 1_000_000_000n,
  };
  let size = sizes[ladder.size] ?? usual * BigInt(ladder.size) * 1_000_000n;
  return reach.flatMap((reached) => {
    const offset = away + (span * reached) / last;
    const priceTicks = side === 'ask' ? mid + offset : mid - offset;
    const sizeLots = maxBig(1n, size / 1_000_000_000n);
    if (ladder.size >= 0) size = (size * BigInt(ladder.sizePermille)) / 1_000n;
    return priceTicks > 0n ? [{ priceTicks, sizeLots }] : [];
  });
}
