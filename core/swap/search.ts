/**
 * The largest number from `low` to `high` that `holds`, for a condition that holds up to some number and not beyond; null where it does not
 * even hold at `low`.
 */
export function mostOf(low: bigint, high: bigint, holds: (value: bigint) => boolean): bigint | null {
  if (!holds(low)) return null;
  let [known, beyond] = [low, high + 1n];
  while (beyond - known > 1n) {
    const middle = (known + beyond) / 2n;
    if (holds(middle)) known = middle;
    else beyond = middle;
  }
  return known;
}
