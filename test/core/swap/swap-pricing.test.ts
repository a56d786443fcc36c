import { expect } from 'chai';
import fc from 'fast-check';
import { BPS } from '../../../core/amounts.js';
import {
  bestRoute,
  feeUnits,
  isNoRoute,
  maxSellUnits,
  minBuyUnits,
  type RoutePlan,
  type RouteQuestion,
} from '../../../core/swap/pricing.js';
import { OWN, type Source } from '../../../core/swap/source.js';
import { split, type SplitKind } from '../../../core/swap/split.js';
import { fcOptions } from '../../support/fc.js';
import { seededRandom, type Random } from '../../support/random.js';
import { randomCurveSource, randomPoolSource } from '../../support/worlds/random-sources.js';

const PREFERENCES = ['auto', 'preferService', 'onlyService'] as const;

/** Sources of any size at one rate, as far as `depth` of the buy token. */
function flat(id: string, outPerMillion: bigint, depth = 10n ** 30n): Source {
  const million = 1_000_000n;
  return {
    id,
    outputFor: (inUnits) => {
      const out = (inUnits * outPerMillion) / million;
      return out === 0n || out > depth ? null : out;
    },
    inputFor: (outUnits) =>
      outUnits === 0n || outUnits > depth ? null : (outUnits * million + outPerMillion - 1n) / outPerMillion,
    tradedAt: ({ out, in: input }) =>
      outPerMillion * input >= out * million
        ? { inUnits: (depth * million) / outPerMillion, outUnits: depth }
        : { inUnits: 0n, outUnits: 0n },
  };
}

const question = (change: Partial<RouteQuestion>): RouteQuestion => ({
  kind: 'sell',
  amountUnits: 10n ** 12n,
  sources: [],
  preference: 'auto',
  toleranceBps: 10,
  feeOf: () => 0n,
  ...change,
});

function planOf(change: Partial<RouteQuestion>): RoutePlan {
  const plan = bestRoute(question(change));
  if (isNoRoute(plan)) throw new Error(plan.problem);
  return plan;
}

const idsOf = ({ parts }: RoutePlan): string[] => parts.map(({ id }) => id);

/** How much worse than the best, in the token that the kind leaves open. */
const isWithin = (kind: SplitKind, plan: RoutePlan, best: RoutePlan, toleranceBps: bigint): boolean =>
  kind === 'sell'
    ? plan.outUnits * BPS >= best.outUnits * (BPS - toleranceBps)
    : plan.inUnits * BPS <= best.inUnits * (BPS + toleranceBps);

function randomQuestion(random: Random): RouteQuestion {
  const price = random.big(100_000n, 400_000n);
  const isBuy = random.int(0, 1) === 0;
  const kind = random.pick(['sell', 'buy'] as const);
  const pools = Array.from({ length: random.int(0, 2) }, (_, i) => randomPoolSource(random, `pool${i}`, price, isBuy));
  const own = random.int(0, 4) === 0 ? [] : [randomCurveSource(random, price, isBuy)];
  const sources = [...own, ...pools];
  const depth = sources.reduce((sum, source) => {
    const { inUnits, outUnits } = source.tradedAt({ out: 0n, in: 1n });
    return sum + (kind === 'sell' ? inUnits : outUnits);
  }, 1_000n);
  const perPart = random.big(0n, 1_000n);
  return question({
    kind,
    sources,
    amountUnits: random.big(1n, depth) / 10n ** BigInt(random.int(0, 3)) + 2_000n,
    toleranceBps: random.int(0, 50),
    feeOf: (ids) => perPart * BigInt(ids.length),
  });
}

describe('what a route costs beyond its fee', () => {
  const sources = [flat(OWN, 1_000_000n, 10n ** 11n * 9n), flat('pool', 990_000n)];
  const burdenOf = (burden: bigint) => (ids: readonly string[]) => (ids.length > 1 ? burden : 0n);

  it('counts where routes are compared, of sales and purchases, and is taken from nobody', () => {
    for (const kind of ['sell', 'buy'] as const) {
      const free = planOf({ kind, sources });
      expect(idsOf(free)).to.deep.equal([OWN, 'pool']);
      expect(planOf({ kind, sources, burdenOf: burdenOf(8n * 10n ** 9n) })).to.deep.equal(free);
      expect(idsOf(planOf({ kind, sources, burdenOf: burdenOf(10n ** 10n) }))).to.deep.equal(['pool']);
      expect(idsOf(planOf({ kind, sources, burdenOf: burdenOf(10n ** 13n) }))).to.deep.equal(['pool']);
    }
  });
});

describe('routing preferences', () => {
  it('prefer our own curve up to the tolerance, to the basis point, for sales and for purchases', () => {
    const pool = flat('pool', 1_000_000n);
    for (const kind of ['sell', 'buy'] as const) {
      const idsAt = (rate: bigint, preference: RouteQuestion['preference']): string[] =>
        idsOf(planOf({ kind, preference, sources: [flat(OWN, rate), pool] }));
      expect(idsAt(1_000_000n, 'auto')).to.deep.equal([OWN]);
      expect(idsAt(999_999n, 'auto')).to.deep.equal(['pool']);
      // 10 bps of output for a sale; for a purchase 10 bps of input, which is a little less of the rate.
      const last = kind === 'sell' ? 999_000n : 999_001n;
      expect(idsAt(last, 'preferService')).to.deep.equal([OWN]);
      expect(idsAt(last - 1n, 'preferService')).to.deep.equal(['pool']);
      expect(idsAt(900_000n, 'onlyService')).to.deep.equal([OWN]);
    }
  });

  it('never leave our own curve with onlyService, whatever it lacks', () => {
    const sources = [flat(OWN, 1_000_000n, 10n ** 6n), flat('pool', 1_000_000n)];
    expect(bestRoute(question({ sources, preference: 'onlyService' }))).to.deep.equal({ problem: 'liquidity' });
    expect(bestRoute(question({ sources: sources.slice(1), preference: 'onlyService' }))).to.deep.equal({
      problem: 'liquidity',
    });
    expect(idsOf(planOf({ sources, preference: 'preferService' }))).to.deep.equal(['pool']);
  });

  it('judge routes after their fees, and say what the least fee is when it takes everything', () => {
    const sources = [flat(OWN, 999_500n), flat('pool', 1_000_000n)];
    const dearPool = (ids: readonly string[]): bigint => (ids.includes('pool') ? 10n ** 9n : 0n);
    expect(idsOf(planOf({ sources }))).to.deep.equal(['pool']);
    expect(idsOf(planOf({ sources, feeOf: dearPool }))).to.deep.equal([OWN]);
    const fees = (ids: readonly string[]): bigint => 10n ** 12n + BigInt(ids.length);
    expect(bestRoute(question({ sources, feeOf: fees }))).to.deep.equal({ problem: 'fee', feeUnits: 10n ** 12n + 1n });
  });

  it('find the best of all combinations after fees, keep the amount, and keep to the tolerance', () => {
    let own = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (seed) => {
        const asked = randomQuestion(seededRandom(seed));
        const { kind, sources, amountUnits, toleranceBps, feeOf } = asked;
        const [auto, preferred, only] = PREFERENCES.map((preference) => bestRoute({ ...asked, preference }));
        if (auto === undefined || preferred === undefined || only === undefined) throw new Error('three answers');
        if (!isNoRoute(only)) {
          expect(idsOf(only)).to.deep.equal([OWN]);
          expect(isNoRoute(preferred)).to.equal(false);
        }
        expect(isNoRoute(preferred)).to.equal(isNoRoute(auto));
        if (isNoRoute(auto) || isNoRoute(preferred)) return;
        for (const plan of [auto, preferred]) {
          expect(kind === 'sell' ? plan.inUnits : plan.outUnits).to.equal(amountUnits);
          expect(plan.feeUnits).to.equal(feeOf(idsOf(plan)));
          const traded = plan.parts.reduce((sum, part) => sum + part.inUnits, plan.feeUnits);
          expect(traded).to.equal(plan.inUnits);
        }
        // No subset of the sources does better than the best.
        for (let mask = 1; mask < 1 << sources.length; mask++) {
          const some = sources.filter((_, i) => (mask >> i) & 1);
          const fee = feeOf(some.map(({ id }) => id));
          if (kind === 'sell' && fee >= amountUnits) continue;
          const parts = split(kind, some, kind === 'sell' ? amountUnits - fee : amountUnits);
          if (parts?.length !== some.length) continue;
          const out = parts.reduce((sum, part) => sum + part.outUnits, 0n);
          const input = parts.reduce((sum, part) => sum + part.inUnits, fee);
          expect(kind === 'sell' ? out <= auto.outUnits : input >= auto.inUnits).to.equal(true);
        }
        const isOwn = idsOf(preferred).join() === OWN;
        if (isOwn) own += 1;
        if (!isNoRoute(only)) {
          expect(isOwn).to.equal(isWithin(kind, only, auto, BigInt(toleranceBps)) || idsOf(auto).join() === OWN);
        }
        if (!isOwn) expect(preferred).to.deep.equal(auto);
      }),
      fcOptions(300),
    );
    expect(own).to.be.above(10);
  });
});

describe('amounts of a quote', () => {
  const amount = fc.bigInt({ min: 1n, max: 10n ** 39n });
  const bps = fc.integer({ min: 0, max: 2_000 });

  it('give up no more than the slippage, and as much of it as whole units allow', () => {
    fc.assert(
      fc.property(amount, bps, (units, slippageBps) => {
        const least = minBuyUnits(units, slippageBps);
        const exact = units * (BPS - BigInt(slippageBps));
        expect(least * BPS >= exact && (least - 1n) * BPS < exact).to.equal(true);
        const most = maxSellUnits(units, slippageBps);
        const ceiling = units * (BPS + BigInt(slippageBps));
        expect(most * BPS <= ceiling && (most + 1n) * BPS > ceiling).to.equal(true);
      }),
      fcOptions(500),
    );
  });

  it('recover the gas with its margin, and less than one unit more', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 21_000n, max: 10_000_000n }),
        fc.bigInt({ min: 1n, max: 10n ** 12n }),
        fc.bigInt({ min: 1n, max: 10n ** 24n }),
        fc.integer({ min: 0, max: 100_000 }),
        (gas, weiPerGas, units, marginBps) => {
          const wei = 10n ** 15n;
          const fee = feeUnits(gas, { weiPerGas, units, wei }, marginBps);
          const exact = gas * weiPerGas * units * (BPS + BigInt(marginBps));
          expect(fee * wei * BPS >= exact && (fee - 1n) * wei * BPS < exact).to.equal(true);
        },
      ),
      fcOptions(500),
    );
  });
});
