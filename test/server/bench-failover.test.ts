/** What the failover trials make of their times and of the order log. */
import { expect } from 'chai';
import { judge, quantile, summarise, type Acknowledged, type StoredAction } from '../../bench/failover/summary.js';

const told = (nonce: number, oid: number | null = nonce + 100): Acknowledged => ({
  ...{ signer: '0xa', nonce, oid, server: 'edge1', atMs: 0 },
});
const row = (nonce: number, ...oids: number[]): StoredAction => ({ signer: '0xa', nonce, oids });
const took = (fault: string, act: string, ...secs: number[]) =>
  secs.map((sec) => ({ role: 'gateway', fault, act, sec }));

describe('The summary of failover trials', () => {
  it('takes the median and the worst of values that came, and counts what never came as the worst', () => {
    expect(quantile([3, 1, 2], 0.5)).to.equal(2);
    expect(quantile([4, 3, 1, 2], 0.5)).to.equal(2);
    expect(quantile([3, 1, 2], 1)).to.equal(3);
    expect(quantile([Number.NaN, 1, 2], 0.5)).to.equal(2);
    expect(quantile([1, Number.NaN, 2], 1)).to.be.NaN;
    expect(quantile([], 0.5)).to.be.NaN;
  });

  it('judges the median by what operators are promised of that act and fault', () => {
    const rows = summarise([
      ...took('kill', 'first order', 1, 1.9, 9),
      ...took('freeze', 'log taken', 5.5, 5.1, 4),
      ...took('freeze', 'first order', 30),
    ]);
    expect(
      rows.map(({ act, goalSec, trials, p50Sec, worstSec, holds }) => [act, goalSec, trials, p50Sec, worstSec, holds]),
    ).to.deep.equal([
      ['first order', 2, 3, 1.9, 9, true],
      ['log taken', 5, 3, 5.1, 5.5, false],
      ['first order', null, 1, 30, 30, true],
    ]);
  });

  it('fails a row of which one trial never came, whatever its median', () => {
    expect(summarise(took('kill', 'first order', 1, 1, Number.NaN))[0]).to.include({ p50Sec: 1, holds: false });
  });
});

describe('The audit of failover trials', () => {
  it('finds nothing where each acknowledged action has its one row', () => {
    const stored = [row(1, 101), row(2), row(3, 103), { signer: null, nonce: null, oids: [] }];
    expect(judge([told(1), told(2, null), told(1)], stored)).to.deep.equal({ lost: [], doubled: [] });
  });

  it('calls lost what has no row, has that of another signer, or a row with another order', () => {
    const acknowledged = [told(1), told(2), told(3)];
    const stored = [row(1, 999), { ...row(2, 102), signer: '0xb' }];
    expect(judge(acknowledged, stored).lost).to.deep.equal(acknowledged);
  });

  it('calls doubled what has two rows, acknowledged or not, and an order that was opened twice', () => {
    expect(judge([], [row(1, 101), row(1, 102)]).doubled).to.deep.equal(['0xa 1']);
    expect(judge([], [row(1, 101), row(2, 101)]).doubled).to.deep.equal(['order 101']);
  });
});
