/** The planner against a search of its own kind: every set of sources, divided by moving amounts between two of them as long as it helps. */
import { expect } from 'chai';
import fc from 'fast-check';
import { bestRoute, isNoRoute, type RouteQuestion } from '../../../core/swap/pricing.js';
import { sqrtPriceAtTick } from '../../../core/swap/pool-math.js';
import { pathSource } from '../../../core/swap/paths.js';
import { poolSource } from '../../../core/swap/pool-source.js';
import { OWN, type Source } from '../../../core/swap/source.js';
import type { Address } from '../../../core/types.js';
import { fcOptions } from '../../support/fc.js';
import { seededRandom, type Random } from '../../support/random.js';
import { randomQuestion } from '../../support/worlds/random-questions.js';

const STATES = 1_000;
/** With pools beyond what a market has. */
const STRANGE_STATES = 40;
const CHUNKS = 24n;
const FINEST = 1n << 24n;
const TOKENS = ['11', '22', '33'].map((byte): Address => `0x${byte.repeat(20)}`);

/** What a set brings (sell) or costs (buy) at best without fee, by exchanges; null when it can't trade the amount. */
function searched({ kind }: RouteQuestion, sources: readonly Source[], amount: bigint): bigint | null {
  const valueOf = (source: Source, units: bigint): bigint | null =>
    units === 0n ? 0n : kind === 'sell' ? source.outputFor(units) : source.inputFor(units);
  const gain = (before: bigint, after: bigint): bigint => (kind === 'sell' ? after - before : before - after);
  const at = sources.map(() => 0n);
  const values = sources.map(() => 0n);
  let step = amount / CHUNKS + 1n;
  for (let left = amount; left > 0n;) {
    const chunk = left < step ? left : step;
    let best: { i: number; value: bigint; gained: bigint } | null = null;
    for (const [i, source] of sources.entries()) {
      const value = valueOf(source, at[i]! + chunk);
      if (value === null) continue;
      const gained = gain(values[i]!, value);
      if (best === null || gained > best.gained) best = { i, value, gained };
    }
    if (best === null) return null;
    at[best.i]! += chunk;
    values[best.i] = best.value;
    left -= chunk;
  }
  for (; step > amount / FINEST; step /= 2n) {
    for (let moved = true, rounds = 0; moved && rounds < 8; rounds++) {
      moved = false;
      for (const [i, from] of sources.entries()) {
        for (const [j, to] of sources.entries()) {
          if (i === j || at[i]! < step) continue;
          const [less, more] = [valueOf(from, at[i]! - step), valueOf(to, at[j]! + step)];
          if (less === null || more === null || gain(values[i]! + values[j]!, less + more) <= 0n) continue;
          at[i]! -= step;
          at[j]! += step;
          [values[i], values[j]] = [less, more];
          moved = true;
        }
      }
    }
    if (step === 1n) break;
  }
  return values.reduce((sum, value) => sum + value, 0n);
}

/** Two of them trade at one place or are paid from one vault's tokens, so that neither is what it was priced at once the other has. */
function sharesPlace(set: readonly Source[]): boolean {
  const places = set.flatMap(({ id, legs }) => legs?.map(({ source }) => source.id) ?? [id]);
  return new Set(places).size < places.length;
}

/** What a lying endpoint may say of a pool, as far as its price is one: up to the ends of what Uniswap has. */
function extremePool(random: Random, id: string): Source {
  const zeroForOne = random.int(0, 1) === 0;
  const tick = random.pick([-887_272, -880_000, -400_000, -100, 0, 100, 400_000, 880_000, 887_271]);
  const ticks = Array.from({ length: random.int(1, 5) }, () => random.pick([1, 10, 5_000, 300_000]));
  let at = tick;
  const ranges = ticks.map((step) => {
    at = Math.max(-887_272, Math.min(887_272, at + (zeroForOne ? -step : step)));
    return {
      liquidity: random.pick([0n, 1n, 1_000n, 10n ** 18n, (1n << 128n) - 1n]),
      endSqrtPrice: sqrtPriceAtTick(at),
    };
  });
  return poolSource({ id, zeroForOne, feePpm: random.pick([100n, 10_000n]), sqrtPrice: sqrtPriceAtTick(tick), ranges });
}

describe('the planner', function () {
  this.timeout(600_000);

  it('comes within a tenth of a basis point of the best over every set of up to six sources', () => {
    const counts = new Map<number, number>();
    let overPaths = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (seed) => {
        const random = seededRandom(seed);
        const count = random.int(1, 6);
        const asked = randomQuestion(random, count, random.int(0, Math.min(3, count - 1)));
        const { kind, sources, amountUnits, feeOf } = asked;
        const plan = bestRoute(asked);
        for (let members = 1; members < 1 << sources.length; members++) {
          const set = sources.filter((_, i) => (members >> i) & 1);
          if (sharesPlace(set)) continue;
          const fee = feeOf(set.map(({ id }) => id));
          if (kind === 'sell' && fee >= amountUnits) continue;
          const best = searched(asked, set, kind === 'sell' ? amountUnits - fee : amountUnits);
          if (best === null) continue;
          const what = `seed ${seed}: ${set.map(({ id }) => id).join('+')}`;
          expect(isNoRoute(plan), what).to.equal(false);
          if (isNoRoute(plan)) return;
          // A unit for each part that rounds.
          if (kind === 'sell') expect((plan.outUnits + 6n) * 100_000n >= best * 99_999n, what).to.equal(true);
          else expect((plan.inUnits - 6n) * 100_000n <= (best + fee) * 100_001n, what).to.equal(true);
        }
        if (isNoRoute(plan)) return;
        counts.set(plan.parts.length, (counts.get(plan.parts.length) ?? 0) + 1);
        if (plan.parts.some(({ id }) => id.includes('>'))) overPaths += 1;
      }),
      fcOptions(STATES),
    );
    // Routes of one part and of several, or nothing was weighed.
    expect(
      [...counts.keys()].filter((parts) => parts > 1),
      [...counts].join('; '),
    ).to.not.deep.equal([]);
    expect(counts.get(1) ?? 0).to.be.above(0);
    expect(overPaths, 'routes by way of another token').to.be.above(0);
  });

  it('finds a route or none whatever pools there are', () => {
    // Far below every price of Uniswap: a reserve of it rounds to nothing.
    const nothing = poolSource({
      ...{ id: 'pool:nothing', zeroForOne: false, feePpm: 500n, sqrtPrice: 1n },
      ranges: [{ liquidity: 1n, endSqrtPrice: sqrtPriceAtTick(-887_272) }],
    });
    let planned = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (seed) => {
        const random = seededRandom(seed);
        const asked = randomQuestion(random, 3, 1);
        const path = asked.sources.at(-1)!;
        const strange = [0, 1].map((i) => extremePool(random, `strange:${i}`));
        const by = (source: Source, other: Source): Source =>
          pathSource(
            [source, other].map((one, i) => ({ source: one, sellToken: TOKENS[i]!, buyToken: TOKENS[i + 1]! })),
          );
        const last = path.legs!.at(-1)!.source;
        const sources = [
          ...asked.sources,
          nothing,
          ...strange,
          by(strange[0]!, last),
          by(last, strange[1]!),
          by(nothing, last),
        ];
        const plan = bestRoute({ ...asked, sources });
        if (!isNoRoute(plan)) planned += 1;
        expect(isNoRoute(plan) && !isNoRoute(bestRoute(asked)), `seed ${seed}`).to.equal(false);
      }),
      fcOptions(STRANGE_STATES),
    );
    expect(planned).to.be.above(0);
  });

  it('weighs the gas of each part: the dearer it is, the fewer there are', () => {
    const random = seededRandom(7);
    const asked = randomQuestion(random, 6);
    const partsAt = (perPart: bigint): number => {
      const feeOf = (ids: readonly string[]): bigint => perPart * BigInt(ids.length);
      const plan = bestRoute({ ...asked, kind: 'sell', feeOf });
      return isNoRoute(plan) ? 0 : plan.parts.length;
    };
    const { amountUnits } = asked;
    const parts = [0n, amountUnits / 100_000n, amountUnits / 1_000n, amountUnits / 10n].map(partsAt);
    expect(parts).to.deep.equal([...parts].sort((a, b) => b - a));
    expect(parts[0]).to.be.above(parts.at(-1)!);
    expect(parts.at(-1)).to.equal(1);
    expect(asked.sources.some(({ id }) => id === OWN)).to.equal(true);
  });
});
