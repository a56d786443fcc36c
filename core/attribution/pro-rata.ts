import type { Address } from '../types.js';

/** What one maker has at a price, or gets of a fill there. */
export interface MakerUnits {
  maker: Address;
  units: bigint;
}

/**
 * Splits `takeUnits` among makers in proportion to what each has, in whole base units: shares are floored, and the units left over go one
 * each to the largest remainders, ties to the lower maker address. `has` names each maker once, lower address first, all amounts above
 * zero; `takeUnits` is at most their sum, `totalUnits`. The result has one share per entry of `has`, in its order; shares add up to
 * `takeUnits`, and none exceeds what its maker has.
 */
export function splitProRata(takeUnits: bigint, has: readonly MakerUnits[], totalUnits: bigint): bigint[] {
  const shares: bigint[] = [];
  const remainders: bigint[] = [];
  let leftUnits = takeUnits;
  for (const { units } of has) {
    const product = takeUnits * units;
    const share = product / totalUnits;
    shares.push(share);
    remainders.push(product - share * totalUnits);
    leftUnits -= share;
  }
  if (leftUnits === 0n) return shares;
  // The sort is stable, so equal remainders stay in address order.
  const byRemainder = has.map((_, index) => index).sort((a, b) => compareDescending(remainders[a]!, remainders[b]!));
  for (const index of byRemainder) {
    if (leftUnits === 0n) break;
    shares[index]! += 1n;
    leftUnits -= 1n;
  }
  return shares;
}

function compareDescending(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a > b ? -1 : 1;
}
