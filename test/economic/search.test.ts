import { expect } from 'chai';
import { explain, unreached } from './report.js';
import { play, search, shrink, type SearchProgress } from './search.js';
import { scoreOf } from './score.js';
import { settingNamed, SETTINGS } from './setting.js';

const upTo = (strategies: number) => (progress: SearchProgress) => progress.tried >= strategies;

describe('the search for strategies that take from others', function () {
  this.timeout(300_000);

  it('finds the drain where posts leave the carry as it is, and shortens it to its steps', () => {
    const setting = settingNamed('triangle');
    const result = search({
      seed: 5,
      carryRule: 'none',
      settings: [setting.name],
      isOver: (progress) =>
        progress.tried >= 4_000 || progress.richest.get(setting.name)!.score.profit > 500n * setting.dollar,
    });
    const drain = result.richest.get(setting.name)!;
    expect(drain.score.profit > 500n * setting.dollar, `${result.tried} strategies`).to.equal(true);
    const short = shrink(drain.strategy, (one) => scoreOf(play(one, 'none')).profit >= drain.score.profit);
    expect(short.steps.length).to.be.lessThan(20);
    const kinds = short.steps.map(({ kind }) => kind);
    expect(kinds).to.include.members(['quote', 'post', 'swap', 'land']);
    expect(explain({ ...drain, strategy: short }, 'none').join('\n')).to.include('more than');
    // With the rule the same steps bring in nothing.
    const score = scoreOf(play(short, 'raised'));
    expect(score.violations).to.deep.equal([]);
    expect(score.taken).to.equal(0n);
    expect(score.profit <= 0n, String(score.profit)).to.equal(true);
  });

  it('finds nothing beyond rounding with the carry rule, in every setting, and tries everything', () => {
    const result = search({ seed: 7, carryRule: 'raised', isOver: upTo(3_000) });
    expect(result.found.flatMap((one) => explain(one, 'raised'))).to.deep.equal([]);
    expect(unreached(result.seen, 'raised')).to.deep.equal([]);
    for (const { name } of SETTINGS) expect(result.best.get(name)!.score.taken, name).to.equal(0n);
  });

  it('tries the same strategies for the same seed', () => {
    const run = () => search({ seed: 11, carryRule: 'raised', settings: ['coarse'], isOver: upTo(60) });
    const [first, second] = [run(), run()];
    expect([...second.seen]).to.deep.equal([...first.seen]);
    expect(second.best.get('coarse')).to.deep.equal(first.best.get('coarse'));
  });
});
