import { expect } from 'chai';
import fc from 'fast-check';
import { continues, isTakenBack, liveRanges, rangesAfter, type Reversal } from '../../../ledger/chain/branches.js';
import { fcOptions } from '../../support/fc.js';

/** What is live after `upTo`, from first principles: the log replayed with a list that a reversal cuts off. */
function liveByReplay(reversals: readonly Reversal[], upTo: number): number[] {
  const states = new Map<number, number[]>([[0, []]]);
  let live: number[] = [];
  for (let generation = 1; generation <= upTo; generation++) {
    const reversal = reversals.find((one) => one.generation === generation);
    live = reversal === undefined ? [...live, generation] : [...states.get(reversal.keptGeneration)!, generation];
    states.set(generation, live);
  }
  return live;
}

const expand = (ranges: { from: number; to: number }[]): number[] =>
  ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));

describe('branches of the ledger log', () => {
  /** A log of up to 40 generations in which some take back what is live. */
  const log = fc.array(fc.option(fc.nat(), { freq: 4 }), { minLength: 1, maxLength: 40 }).map((plan) => {
    const reversals: Reversal[] = [];
    plan.forEach((pick, i) => {
      const generation = i + 1;
      if (pick === null || generation === 1) return;
      const live = [0, ...liveByReplay(reversals, generation - 1).slice(0, -1)];
      reversals.push({ generation, keptGeneration: live[pick % live.length]! });
    });
    return { length: plan.length, reversals };
  });

  it('are what a replay of the log leaves', () => {
    fc.assert(
      fc.property(log, fc.nat(), ({ length, reversals }, pick) => {
        const upTo = (pick % length) + 1;
        const live = liveByReplay(reversals, upTo);
        expect(expand(liveRanges(reversals, upTo))).to.deep.equal(live);
        const known = reversals.filter(({ generation }) => generation <= upTo);
        const standing = expand([{ from: 1, to: upTo }]).filter((one) => !isTakenBack(known, one));
        expect(standing).to.deep.equal(live);
      }),
      fcOptions(500),
    );
  });

  it('continue exactly where the earlier state is a beginning of the later one', () => {
    fc.assert(
      fc.property(log, fc.nat(), fc.nat(), ({ length, reversals }, a, b) => {
        const [from, to] = [a % (length + 1), (b % length) + 1].sort((x, y) => x - y) as [number, number];
        const earlier = liveByReplay(reversals, from);
        const later = liveByReplay(reversals, to);
        const isBeginning = earlier.every((generation, i) => later[i] === generation);
        expect(continues(reversals, from, to)).to.equal(isBeginning);
        if (!isBeginning) return;
        const added = expand(rangesAfter(liveRanges(reversals, to), from));
        expect([...earlier, ...added]).to.deep.equal(later);
      }),
      fcOptions(500),
    );
  });
});
