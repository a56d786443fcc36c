import { expect } from 'chai';
import { fcOptions } from '../support/fc.js';
import { MISTAKES } from './search/mistake-list.js';
import { kindOf } from './search/shrink.js';
import { patched, simulateWith, tryOne } from './search/mistakes.js';

/** Found within seconds: what an endpoint omits, and orders that take more than was signed. */
const QUICK = ['omitted second log', 'order sent below its minimum', 'settled above the balance'];
const LIMIT_MS = 600_000;
const isDeep = fcOptions(1).numRuns > 1;
const named = (name: string) => MISTAKES.find((one) => one.name === name)!;

describe('mistakes that the simulation must find', () => {
  for (const mistake of MISTAKES) {
    it(`can be put in: ${mistake.name}`, () => {
      for (const [file, text] of patched(mistake)) expect(text, file).to.not.equal('');
    });
  }

  it('are no mistakes when they are not what the sources have', () => {
    const gone = { name: 'gone', patches: [{ file: 'package.json', from: 'no such text', to: '' }] };
    expect(() => patched(gone)).to.throw(RangeError, 'must have once');
    expect(() => patched({ name: 'none', patches: [] })).to.throw(RangeError, 'changes nothing');
  });

  // Each copies the sources and takes minutes.
  if (!isDeep) return;

  for (const name of QUICK) {
    it(`are found: ${name}`, async function () {
      this.timeout(2 * LIMIT_MS);
      expect(await tryOne(named(name), LIMIT_MS)).to.not.equal(null);
    });
  }

  it('are found again by the same seed, at the same event, and shrink', async function () {
    this.timeout(4 * LIMIT_MS);
    const mistake = named('cursor before the events');
    const found = await tryOne(mistake, LIMIT_MS);
    const args = ['--seed', found!.seed, '--quiet', ...(mistake.args ?? [])];
    const verdict = (text: string) => /^seed .*trace (\w+),.*FAILED (.*)$/m.exec(text)?.slice(1);
    const first = await simulateWith(mistake, args);
    const second = await simulateWith(mistake, [...args, '--shrink']);
    expect(verdict(first)).to.have.length(2);
    expect(verdict(second)).to.deep.equal(verdict(first));
    const [, all = '', least = ''] = /^(\d+) events shrink to (\d+) and/m.exec(second) ?? [];
    expect(parseInt(least, 10)).to.be.below(parseInt(all, 10));
    // What is left fails in the same way, by the command that was printed.
    const [, command = ''] = /^npm run simulate -- (.*)$/m.exec(second) ?? [];
    const printed = command.split(' ').map((word) => word.replaceAll("'", ''));
    const events = printed.at(-1)!;
    expect(events.split(',')).to.have.length(parseInt(least, 10));
    const again = await simulateWith(mistake, printed);
    expect(kindOf(verdict(again)![1]!)).to.equal(kindOf(verdict(first)![1]!));
  });
});
