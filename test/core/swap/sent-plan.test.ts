/** Routes that are sent checked for new accounts, over places where the trade crosses more ticks than a new account's credit covers. */
import { expect } from 'chai';
import { sqrtPriceAtTick } from '../../../core/swap/pool-math.js';
import { poolSource } from '../../../core/swap/pool-source.js';
import { isNoRoute, type RoutePlan } from '../../../core/swap/pricing.js';
import { OWN, type Source } from '../../../core/swap/source.js';
import { countChecks } from '../../../liquidity/checks.js';
import { planSent } from '../../../liquidity/checked-plan.js';
import { planRoute } from '../../../liquidity/planner.js';
import {
  CROSSING_HEAD,
  CROSSING_TOKENS,
  CROSSING_UNITS,
  crossingPools,
  crossingSale,
  marketOf,
  newcomersWay,
} from '../../support/worlds/crossing-pools.js';

const ids = ({ parts }: RoutePlan): string[] => parts.map(({ id }) => id);

/** The best route for a new account, how often the sources were planned among, and how many worst cases were searched for. */
async function sentOver(sources: readonly Source[], amountUnits = CROSSING_UNITS) {
  let [plans, searches] = [0, 0];
  const counted = sources.map((source) => {
    const { crossed } = source;
    if (crossed === undefined) return source;
    return {
      ...source,
      crossed: (...[kind, units, bound]: Parameters<typeof crossed>) => {
        searches += bound === null ? 0 : 1;
        return crossed(kind, units, bound);
      },
    };
  });
  const market = marketOf(counted);
  const paths = () => ((plans += 1), market.paths({} as never, CROSSING_HEAD, 0));
  const question = { ...crossingSale(newcomersWay), amountUnits };
  const plan = await planSent({ ...market, paths }, question, CROSSING_HEAD, 0);
  if (isNoRoute(plan)) expect.fail(`no route: ${plan.problem}`);
  return { plan, plans, searches };
}

describe('routes that are sent for new accounts', () => {
  for (const count of [1, 2, 5, 6, 9])
    it(`are found where each of ${count} equal pools has too many conditions: our own curve alone`, async () => {
      const { plan, plans, searches } = await sentOver(crossingPools(count));
      expect(ids(plan)).to.deep.equal([OWN]);
      expect([plans, searches], 'planned once, and too many ticks need no search').to.deep.equal([1, 0]);
    });

  it('are the best of all that they may be, by their own conditions', async () => {
    const sources = crossingPools(4);
    const market = marketOf(sources);
    const kinds = new Set<string>();
    for (let units = CROSSING_UNITS / 64n; units < CROSSING_UNITS; units = (units * 5n) / 4n) {
      const { plan, plans, searches } = await sentOver(sources, units);
      expect(plans).to.equal(1);
      expect(searches, 'worst cases searched for').to.be.at.most(40);
      kinds.add(
        ids(plan)
          .map((id) => id.split(':')[0])
          .join('+'),
      );
      const { way, feeOf, boundOf, ...sale } = { ...crossingSale(newcomersWay), amountUnits: units };
      for (let members = 1; members < 1 << sources.length; members++) {
        const set = sources.filter((_, i) => (members >> i) & 1).map(({ id }) => id);
        if (way(set) === null) continue;
        const isThis = (one: readonly string[]): boolean => one.toSorted().join() === set.toSorted().join();
        const only = { ...sale, feeOf: (one: readonly string[]) => feeOf(one, 0), mayTake: isThis };
        const other = await planRoute(market, only, CROSSING_HEAD, 0);
        if (isNoRoute(other)) continue;
        const [sellToken, buyToken] = CROSSING_TOKENS;
        const route = { kind: 'sell' as const, sellToken, buyToken, parts: other.parts, boundUnits: boundOf(other)! };
        const checks = await countChecks(market, route, CROSSING_HEAD, 0);
        if (way(set, checks) !== null)
          expect(other.outUnits <= plan.outUnits, `${units}: ${set.join()}`).to.equal(true);
      }
    }
    expect([...kinds], 'one pool, two, and none').to.include.members(['own', 'uniswap-v3', 'uniswap-v3+uniswap-v3']);
  });

  it('are counted without a walk for each step of a search, and each worst case is searched for once', () => {
    let reads = 0;
    const ranges = Array.from({ length: 60 }, (_, i) => ({
      get liquidity() {
        reads += 1;
        return CROSSING_UNITS * 285n;
      },
      endSqrtPrice: sqrtPriceAtTick(-10 * (i + 1)),
    }));
    const { crossed, outputFor } = poolSource({
      ...{ id: 'p', zeroForOne: true, feePpm: 500n, sqrtPrice: sqrtPriceAtTick(0), ranges },
    });
    const readsOf = (units: bigint, bound: bigint): number => {
      const before = reads;
      crossed!('sell', units, bound);
      return reads - before;
    };
    const bound = (units: bigint): bigint => (outputFor(units)! * 9_995n) / 10_000n;
    expect(readsOf(CROSSING_UNITS, bound(CROSSING_UNITS)), 'seven ranges').to.be.at.most(10);
    const some = CROSSING_UNITS / 4n;
    expect(readsOf(some, bound(some)), 'a search').to.be.within(100, 3_000);
    expect(readsOf(some, bound(some)), 'again').to.be.at.most(4);
  });
});
