/** Random questions to the route planner: our own curve and pools around one price, an amount within their depth, and a fee for each part. */
import type { RouteQuestion } from '../../../core/swap/pricing.js';
import { venuesIn } from '../../../core/swap/paths.js';
import { OWN, type Source } from '../../../core/swap/source.js';
import type { Random } from '../random.js';
import { randomCurveSource, randomPathSources, randomPoolSource } from './random-sources.js';

/** Over `count` sources, of which the first is our own curve, and the last `paths` go by way of another token. */
export function randomQuestion(random: Random, count: number, paths = 0): RouteQuestion {
  const kind = random.pick(['sell', 'buy'] as const);
  const isBuy = random.int(0, 1) === 0;
  const price = random.big(100_000n, 400_000n);
  const pools = Array.from({ length: count - 1 - paths }, (_, i) =>
    randomPoolSource(random, `pool:${i}`, price, isBuy),
  );
  const sources: Source[] = [
    randomCurveSource(random, price, isBuy),
    ...pools,
    ...randomPathSources(random, paths, price, isBuy),
  ];
  const depth = sources.reduce((sum, source) => {
    const { inUnits, outUnits } = source.tradedAt({ out: 0n, in: 1n });
    return sum + (kind === 'sell' ? inUnits : outUnits);
  }, 0n);
  const amountUnits = random.big(1n, depth) / 10n ** BigInt(random.int(0, 4)) + 1_000n;
  const traded = sources.reduce((sum, source) => sum + source.tradedAt({ out: 0n, in: 1n }).inUnits, 0n);
  // From nothing to a part of the trade that makes a difference.
  const perPart = traded / 10n ** BigInt(random.int(4, 12));
  const feeOf = (ids: readonly string[]): bigint => perPart * BigInt(venuesIn(ids) + (ids.includes(OWN) ? 0 : 1));
  return { kind, amountUnits, sources, preference: 'auto', toleranceBps: 10, feeOf };
}
