/** Paths: what each leg does one after the other, as one source. */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  callsIn,
  conflictsAmong,
  disjoint,
  hopsOf,
  ownCallsIn,
  pathSource,
  venuesIn,
} from '../../../core/swap/paths.js';
import { candidatesOf } from '../../../core/swap/candidates.js';
import { curveSource } from '../../../core/swap/curve-source.js';
import { SUBTICKS_PER_TICK } from '../../../core/market.js';
import { WETH_USDC } from '../../support/markets.js';
import { gasOf, DEFAULT_GAS } from '../../../core/swap/pricing.js';
import { RATE_ONE, type Source } from '../../../core/swap/source.js';
import type { Address } from '../../../core/types.js';
import { fcOptions } from '../../support/fc.js';
import { seededRandom } from '../../support/random.js';
import { randomPathSources } from '../../support/worlds/random-sources.js';

const [A, B, C, D] = ['aa', 'bb', 'cc', 'dd'].map((byte) => `0x${byte.repeat(20)}`) as [
  Address,
  Address,
  Address,
  Address,
];

describe('paths', () => {
  it('name their places and the tokens between them, and are read back', () => {
    const leg = (id: string): Source => ({ id }) as Source;
    const path = pathSource([
      { source: leg('uniswap-v3:500'), sellToken: A, buyToken: B },
      { source: leg('own'), sellToken: B, buyToken: C },
      { source: leg('uniswap-v2:'), sellToken: C, buyToken: D },
    ]);
    expect(path.id).to.equal(`uniswap-v3:500>${B}>own>${C}>uniswap-v2:`);
    expect(hopsOf(path.id, A, D)).to.deep.equal([
      { id: 'uniswap-v3:500', sellToken: A, buyToken: B },
      { id: 'own', sellToken: B, buyToken: C },
      { id: 'uniswap-v2:', sellToken: C, buyToken: D },
    ]);
    expect(hopsOf('own', A, B)).to.deep.equal([{ id: 'own', sellToken: A, buyToken: B }]);
    expect(() => hopsOf(`own>${B}`, A, C)).to.throw(RangeError);
    const ids = ['own', 'uniswap-v3:500', path.id];
    expect([venuesIn(ids), callsIn(ids), ownCallsIn(ids)]).to.deep.equal([5, 4, 1]);
    const { route, routeOwn, routeCall, routeOwnCall } = DEFAULT_GAS;
    expect(gasOf(DEFAULT_GAS, ids)).to.equal(route + routeOwn + 3n * routeCall + routeOwnCall);
    expect(gasOf(DEFAULT_GAS, [path.id])).to.equal(route + 2n * routeCall + routeOwnCall);
  });

  it('trade at a rate what gains most over it', () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (seed) => {
        const random = seededRandom(seed);
        const [path] = randomPathSources(random, 1, random.big(100_000n, 400_000n), random.int(0, 1) === 0);
        const all = path!.tradedAt({ out: 0n, in: 1n });
        expect(all.inUnits > 0n && all.outUnits > 0n).to.equal(true);
        // About the average rate: from what is taken whole to what is not taken at all.
        const average = (all.outUnits * RATE_ONE) / all.inUnits;
        const rate = { out: (average * random.big(9_700n, 10_300n)) / 10_000n, in: RATE_ONE };
        const traded = path!.tradedAt(rate);
        const surplus = (inUnits: bigint, outUnits: bigint): bigint => outUnits * RATE_ONE - inUnits * rate.out;
        const most = surplus(traded.inUnits, traded.outUnits) + (all.outUnits * RATE_ONE) / 10n ** 7n + 4n * RATE_ONE;
        if (traded.inUnits > 0n && traded.inUnits < all.inUnits) compared += 1;
        for (let i = 0; i < 20; i++) {
          const inUnits = random.big(1n, all.inUnits);
          const outUnits = path!.outputFor(inUnits) ?? 0n;
          expect(surplus(inUnits, outUnits) <= most, `seed ${seed}: ${inUnits} gain more`).to.equal(true);
        }
        if (traded.inUnits === 0n) return;
        // What it says of the output is what the legs bring.
        const brought = path!.outputFor(traded.inUnits);
        if (brought === null) return;
        const error = brought > traded.outUnits ? brought - traded.outUnits : traded.outUnits - brought;
        expect(error * 1_000_000n <= brought + 10n ** 12n, `seed ${seed}: ${error} of ${brought}`).to.equal(true);
      }),
      fcOptions(300),
    );
    expect(compared).to.be.above(20);
  });

  it('share what the vault pays where they end on our own curve', () => {
    const leg = (id: string): Source => ({ id }) as Source;
    const over = (first: string, second: string, via: Address): Source =>
      pathSource([
        { source: leg(first), sellToken: A, buyToken: via },
        { source: leg(second), sellToken: via, buyToken: D },
      ]);
    const [direct, pool] = [leg('own'), leg('uniswap-v3:500')];
    const [ends, begins, passes] = [over('x:1', 'own', B), over('own', 'x:1', B), over('x:1', 'x:2', C)];
    const ids = (of: readonly Source[]) => of.map(({ id }) => id);
    expect(conflictsAmong([direct, ends, begins, passes, pool])).to.deep.equal([0b00010, 0b00001, 0, 0, 0]);
    expect(conflictsAmong([ends, over('x:1', 'own', C)])).to.deep.equal([0b10, 0b01]);
    expect(ids(disjoint([direct, ends, pool]))).to.deep.equal(['own', 'uniswap-v3:500']);
    // The real rule is what the planner goes by: together they would pay more than the vault has.
    const market = WETH_USDC;
    const [weth, usdc] = [market.base.address, market.quote.address];
    const depth = { lengthUnits: 1_000n * market.lotUnits, subticks: 250_000n * SUBTICKS_PER_TICK };
    const own = (): Source =>
      curveSource(
        { market, sides: { asks: [depth], bids: [] }, consumed: { askUnits: 0n, bidUnits: 0n } },
        weth,
        depth.lengthUnits,
      );
    const path = pathSource([
      { source: { ...own(), id: 'x:1' }, sellToken: usdc, buyToken: C },
      { source: own(), sellToken: C, buyToken: weth },
    ]);
    const both = [own(), path];
    expect(candidatesOf('buy', both, () => depth.lengthUnits).map(({ sources }) => ids(sources))).to.deep.equal([
      ['own'],
      [path.id],
    ]);
  });

  it('bring less than they cost back', () => {
    const random = seededRandom(5);
    for (const isBuy of [true, false]) {
      const [path] = randomPathSources(random, 1, 250_000n, isBuy);
      const all = path!.tradedAt({ out: 0n, in: 1n });
      const outUnits = all.outUnits / 3n;
      const cost = path!.inputFor(outUnits)!;
      expect(path!.outputFor(cost)! >= outUnits).to.equal(true);
      expect(path!.outputFor(all.inUnits * 2n)).to.equal(null);
    }
  });
});
