import { expect } from 'chai';
import { createRecent } from '../../sdk/src/stream/recent.js';

describe('what is remembered of a stream', () => {
  it('is the newest only, so that it takes no more room however long a connection lives', () => {
    const recent = createRecent<number>(3);
    expect([1, 2, 3].map((one) => recent.add(one))).to.deep.equal([true, true, true]);
    expect(recent.add(2), 'known').to.equal(false);
    expect(recent.add(4)).to.equal(true);
    expect([1, 2, 3, 4].map((one) => recent.has(one))).to.deep.equal([false, true, true, true]);
    for (let i = 0; i < 100_000; i += 1) recent.add(i);
    expect([...Array(100_000).keys()].filter((i) => recent.has(i))).to.deep.equal([99_997, 99_998, 99_999]);
    recent.clear();
    expect(recent.has(99_999)).to.equal(false);
  });
});
