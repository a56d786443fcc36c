import { expect } from 'chai';
import { Interface } from 'ethers';
import { installDecodedOnce } from './decoded.js';

const ONE = new Interface(['function f(uint256) view returns (uint256, uint8[])']);
const OTHER = new Interface(['function f(uint256) view returns (bytes32)']);

describe('what ethers decodes once', () => {
  let uninstall: () => void;
  before(() => (uninstall = installDecodedOnce()));
  after(() => uninstall());

  it('is the same again, by what it is decoded as', () => {
    const answer = ONE.encodeFunctionResult('f', [7n, [1, 2]]);
    const first = ONE.decodeFunctionResult('f', answer);
    expect(first.toArray(true)).to.deep.equal([7n, [1n, 2n]]);
    expect(ONE.decodeFunctionResult('f', answer)).to.equal(first);
    const data = OTHER.encodeFunctionResult('f', [`0x${'7'.padStart(64, '0')}`]);
    expect(OTHER.decodeFunctionResult('f', data).toArray()).to.deep.equal([data]);
    expect(() => ONE.decodeFunctionResult('f', data)).to.throw('could not decode result data');
    expect(() => ONE.decodeFunctionResult('f', data)).to.throw('could not decode result data');
  });

  it('can not be changed by whoever got it', () => {
    const answer = ONE.encodeFunctionResult('f', [8n, [1]]);
    const got = ONE.decodeFunctionResult('f', answer) as unknown as unknown[];
    expect(() => (got[0] = 9n)).to.throw(TypeError);
    const call = ONE.parseTransaction({ data: ONE.encodeFunctionData('f', [1n]) });
    expect(ONE.parseTransaction({ data: ONE.encodeFunctionData('f', [1n]) })).to.equal(call);
    expect(() => Object.assign(call!, { name: 'g' })).to.throw(TypeError);
    expect(ONE.parseTransaction({ data: ONE.encodeFunctionData('f', [1n]), value: 5n })!.value).to.equal(5n);
    expect(ONE.parseTransaction({ data: '0x12345678' })).to.equal(null);
  });
});
