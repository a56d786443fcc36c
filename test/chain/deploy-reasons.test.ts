/** What a terminal shows of a failure: one line that says why. */
import { expect } from 'chai';
import { Interface, makeError } from 'ethers';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { reasonOf } from '../../deploy/reasons.js';

const CALLER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

describe('reasons of failed calls', () => {
  const text = new Interface(['error Error(string reason)']).encodeErrorResult('Error', ['STF']);
  const payload = { method: 'eth_sendRawTransaction', params: [`0x02f901d3${'ab'.repeat(400)}`] };
  const answered = (error: object): Error => makeError('could not coalesce error', 'UNKNOWN_ERROR', { error, payload });

  it('are what the contract says, wherever the node put it', () => {
    const custom = CurveBook__factory.createInterface().encodeErrorResult('NotPoster', [CALLER]);
    expect(reasonOf(answered({ code: 3, data: text, message: 'VM Exception' }))).to.equal('reverted with STF');
    const wrapped = new Error('the pool of A-B', {
      cause: answered({ code: 3, data: custom, message: 'VM Exception' }),
    });
    expect(reasonOf(wrapped)).to.equal(`reverted with NotPoster(${CALLER})`);
    expect(reasonOf(answered({ data: '0x12345678' }))).to.contain('not of these contracts (0x12345678)');
    expect(reasonOf({ info: { error: { data: text } } })).to.equal('reverted with STF');
  });

  it('are what the node says where there is no revert, and never the request', () => {
    const funds = answered({ code: -32000, message: 'Sender does not have enough funds\nand more' });
    expect(reasonOf(funds)).to.equal('Sender does not have enough funds');
    expect(reasonOf(makeError('missing revert data', 'CALL_EXCEPTION', payload as never))).to.equal(
      'missing revert data',
    );
    expect(reasonOf(new Error('x'.repeat(1_000)))).to.have.length.below(310);
  });

  it('are never empty', () => {
    const nobody = new AggregateError([
      new Error('connect ECONNREFUSED ::1:1'),
      new Error('connect ECONNREFUSED 127.0.0.1:1'),
    ]);
    expect(reasonOf(nobody)).to.equal('connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1');
    expect(reasonOf('a string')).to.equal('a string');
    expect(reasonOf(null)).to.equal('null');
    expect(reasonOf({})).not.to.equal('');
  });
});
