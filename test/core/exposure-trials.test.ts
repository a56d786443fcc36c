/**
 * The race that the exposure limit is for, many times: makers move, add and cancel orders while up to three curves that were published
 * before can still be executed, in one or two markets with a common token; then takers hit the curves one after the other, up to every
 * breakpoint, before the ledger has seen any of it. 200,000 trials with RUNS above 1, else a sample.
 */
import { expect } from 'chai';
import type { Side } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import { createWorld, type World } from '../support/worlds/market-world.js';
import { drawer, type Draw } from '../support/random.js';

const TRIALS = fcOptions(1).numRuns > 1 ? 200_000 : 1_500;
const SIDES: readonly Side[] = ['ask', 'bid'];

/** One maker's next quote on one side, somewhere, at sizes around what it owns; now and then more levels than a curve has knots. */
function requote(world: World, draw: Draw, marketCount: number): void {
  const isLadder = draw(5) === 0;
  const levels = Array.from({ length: isLadder ? 9 + draw(6) : 1 + draw(3) }, () => ({
    away: BigInt(1 + draw(isLadder ? 90 : 8)),
    sizeLots: BigInt(1 + draw(isLadder ? 6 : 40)),
  }));
  world.step({ kind: 'requote', maker: draw(2), market: draw(marketCount), side: SIDES[draw(2)]!, levels });
}

/** Publishes up to four curves while quotes change, and lets takers at them in between and afterwards. Returns its world. */
function trial(seed: number, marketCount: number, onFault: (what: string) => void): World {
  const draw = drawer(seed);
  const world = createWorld(coarseMarkets().slice(0, marketCount), MAKERS.slice(0, 2), (ok, what) => {
    if (!ok) onFault(what);
  });
  const take = (): void =>
    world.step({ kind: 'take', market: draw(marketCount), side: SIDES[draw(2)]!, orders: 1 + draw(6) });
  for (let curves = 1 + draw(4); curves > 0; curves--) {
    for (let quotes = 1 + draw(3); quotes > 0; quotes--) requote(world, draw, marketCount);
    if (draw(4) === 0) world.step({ kind: 'cancel', pick: draw(1_000) });
    if (draw(6) === 0) {
      world.step({ kind: 'withdraw', maker: draw(2), base: draw(2) === 0, permille: BigInt(1 + draw(900)) });
    }
    world.step({ kind: 'publish', mask: 1 + draw(2 ** marketCount - 1) });
    if (draw(2) === 0) world.step({ kind: 'land', market: draw(marketCount), pick: draw(2) });
    if (draw(2) === 0) take();
    if (draw(4) === 0) world.step({ kind: 'scan' });
  }
  // Every curve lands or does not, in order, and is taken to some breakpoint on either side before the next one.
  for (let hits = 0; hits < 4; hits++) {
    for (let market = 0; market < marketCount; market++) {
      if (draw(3) > 0) world.step({ kind: 'land', market, pick: draw(2) });
      for (const side of SIDES) if (draw(3) > 0) world.step({ kind: 'take', market, side, orders: 1 + draw(9) });
    }
  }
  world.step({ kind: 'withdraw', maker: draw(2), base: draw(2) === 0, permille: BigInt(1 + draw(900)) });
  world.step({ kind: 'scan' });
  return world;
}

describe('no maker pays more than it has', function () {
  this.timeout(TRIALS * 20);

  for (const marketCount of [1, 2]) {
    it(`whatever takers do with ${marketCount === 1 ? 'the curves of one market' : 'those of two markets'}`, () => {
      const { seed } = fcOptions(1);
      const seen = { late: 0, trimmed: 0, older: 0, fills: 0, withdrawn: 0, raised: 0 };
      for (let number = 0; number < TRIALS / 2; number++) {
        const trialSeed = seed + number * 2 + marketCount;
        const world = trial(trialSeed, marketCount, (what) => expect.fail(`trial ${number} of seed ${seed}: ${what}`));
        for (const [account, units] of world.balances) expect(units >= 0n, account).to.equal(true);
        seen.late += world.seen.late;
        seen.trimmed += world.seen.trimmed;
        seen.older = Math.max(seen.older, world.seen.older);
        seen.withdrawn += world.seen.withdrawn;
        seen.raised += world.seen.raised;
        seen.fills += world.attributed.length;
      }
      // The trials are of no use unless what they are about happens in them.
      expect(seen.fills / TRIALS, 'fills per trial').to.be.above(0.5);
      expect(seen.trimmed / TRIALS, 'trimmed curves per trial').to.be.above(0.1);
      expect(seen.late / TRIALS, 'curves with late fills per trial').to.be.above(0.05);
      expect(seen.raised / TRIALS, 'curves per trial that were raised').to.be.above(0.01);
      expect(seen.withdrawn).to.be.above(0);
      expect(seen.older).to.equal(3);
    });
  }
});
