import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { trade, type TradeMode } from '../../core/curve/walk.js';
import type { CurveMathHarness } from '../../typechain-types/mocks/CurveMathHarness.js';
import { CurveMathHarness__factory } from '../../typechain-types/factories/mocks/CurveMathHarness__factory.js';
import { startTestChain, type TestChain } from '../support/chain.js';
import { seededRandom, type Random } from '../support/random.js';
import { randomAmount, randomConsumed, randomCurve, type RandomCurve } from '../support/worlds/random-curves.js';

const MODES: readonly TradeMode[] = ['buyExactIn', 'buyExactOut', 'sellExactIn', 'sellExactOut'];
const TRADES_PER_MODE = 2;
/** Trades of one bulk call. */
const BULK = 150;

const fixture = JSON.parse(readFileSync(new URL('../fixtures/curve-seeds.json', import.meta.url), 'utf8')) as {
  seeds: number[];
  curvesPerSeed: number;
};
const { seeds } = fixture;
/** 10,080 trades in all; RUNS multiplies that. */
const curvesPerSeed = fixture.curvesPerSeed * Math.max(1, Number.parseInt(process.env.RUNS ?? '1', 10));

/** Outcomes of the contract, as the harness numbers them. */
const OUTCOMES = ['filled', 'zeroAmount', 'amountTooLarge', 'insufficientDepth', 'zeroOutput'] as const;

interface TradeCase {
  label: string;
  curve: RandomCurve;
  mode: TradeMode;
  consumed: bigint;
  amount: bigint;
}

function casesOf(random: Random, label: string): TradeCase[] {
  const curve = randomCurve(random);
  return MODES.flatMap((mode) =>
    Array.from({ length: TRADES_PER_MODE }, () => {
      const segments = mode.startsWith('buy') ? curve.asks : curve.bids;
      const consumed = randomConsumed(random, segments);
      return { label, curve, mode, consumed, amount: randomAmount(random, curve.grid, segments, consumed, mode) };
    }),
  );
}

const encoded = ({ curve, mode, consumed, amount }: TradeCase) => ({
  askWords: mode.startsWith('buy') ? curve.askWords : [],
  bidWords: mode.startsWith('buy') ? [] : curve.bidWords,
  isBuy: mode.startsWith('buy'),
  exactOut: mode.endsWith('Out'),
  amount,
  consumed,
  ...curve.grid,
});

/** Our answer in the words of the harness: amounts, both zero when the trade is refused. */
function ours({ curve, mode, consumed, amount }: TradeCase): string {
  const result = trade(curve.grid, curve, { askUnits: consumed, bidUnits: consumed }, mode, amount);
  return result === null ? 'refused' : `${result.baseUnits} base, ${result.quoteUnits} quote`;
}

function theirs(result: Awaited<ReturnType<CurveMathHarness['trades']>>[number]): string {
  return result.outcome === 0n ? `${result.baseAmount} base, ${result.quoteAmount} quote` : 'refused';
}

describe('TypeScript and Solidity trade alike', function () {
  this.timeout(120_000);
  let chain: TestChain;
  let harness: CurveMathHarness;

  before(async () => {
    chain = await startTestChain();
    harness = await new CurveMathHarness__factory(chain.signers[0]).deploy();
    await harness.waitForDeployment();
  });
  after(() => chain.close());

  it(`on ${seeds.length * curvesPerSeed} curves, in all four modes, from committed seeds`, async () => {
    const counts = new Map<string, number>();
    for (const seed of seeds) {
      const random = seededRandom(seed);
      const cases = Array.from({ length: curvesPerSeed }, (_, i) => casesOf(random, `seed ${seed}, curve ${i}`)).flat();
      for (let at = 0; at < cases.length; at += BULK) {
        const bulk = cases.slice(at, at + BULK);
        const results = await harness.trades(bulk.map(encoded));
        bulk.forEach((one, i) => {
          const result = results[i]!;
          expect(ours(one), `${one.label}, ${one.mode} ${one.amount} after ${one.consumed}`).to.equal(theirs(result));
          const key = `${one.mode} ${OUTCOMES[Number(result.outcome)]}`;
          counts.set(key, (counts.get(key) ?? 0) + 1);
        });
      }
    }
    // The comparison means something only if every mode was filled and refused often, for every reason that it has.
    const total = seeds.length * curvesPerSeed * TRADES_PER_MODE;
    for (const mode of MODES) {
      expect(counts.get(`${mode} filled`) ?? 0, `${mode} filled`).to.be.above(total / 4);
      for (const outcome of ['zeroAmount', 'amountTooLarge', 'insufficientDepth']) {
        expect(counts.get(`${mode} ${outcome}`) ?? 0, `${mode} ${outcome}`).to.be.above(10);
      }
    }
    for (const mode of ['buyExactIn', 'sellExactIn']) {
      expect(counts.get(`${mode} zeroOutput`) ?? 0, `${mode} zeroOutput`).to.be.above(10);
    }
  });

  it('on words in storage, read as far as the first one says', async () => {
    for (const seed of seeds) {
      const random = seededRandom(seed + 1);
      const one = random.pick(casesOf(random, `seed ${seed} + 1`));
      const isBuy = one.mode.startsWith('buy');
      const words = isBuy ? one.curve.askWords : one.curve.bidWords;
      // What an older, longer curve left behind must not matter.
      const stored = Array.from(
        { length: 4 },
        (_, i) => words[i] ?? (words.length === 0 && i === 0 ? 0n : 2n ** 256n - 1n),
      );
      await (await harness.store(seed, stored as [bigint, bigint, bigint, bigint])).wait();
      expect(ours(one), one.label).to.equal(theirs(await harness.tradeStored(seed, encoded(one))));
    }
  });
});
