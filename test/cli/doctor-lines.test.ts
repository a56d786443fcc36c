/** What doctor prints of what others said, and in which colours. */
import { Writable } from 'node:stream';
import { expect } from 'chai';
import { harmless } from '../../cli/commands/doctor/finding.js';
import { median } from '../../cli/commands/doctor/median.js';
import { paintFor } from '../../cli/commands/style.js';

describe('what doctor is made of', () => {
  it('lets no stranger write to the terminal, and colours only what wants them', () => {
    expect(harmless('a\u001b[31m\r\nb\u202e\u0007c')).to.equal('a [31m b c');
    expect(harmless('x'.repeat(1_000))).to.have.length(301);
    const output = Object.assign(new Writable(), { isTTY: true });
    expect(paintFor(output, {})('red', 'x')).to.equal('\u001b[31mx\u001b[0m');
    expect(paintFor(output, { NO_COLOR: '1' })('red', 'x')).to.equal('x');
    expect(paintFor(output, { NO_COLOR: '' })('red', 'x')).to.not.equal('x');
    expect(paintFor(output, { TERM: 'dumb' })('red', 'x')).to.equal('x');
    expect(paintFor(Object.assign(new Writable(), { isTTY: false }), {})('red', 'x')).to.equal('x');
    expect([median([3, 1, 2]), median([1n, 9n]), median([])]).to.deep.equal([2, 1n, null]);
  });
});
