/** What the operator page says of a proposal: every call is either read whole, or not to be signed. */
import { expect } from 'chai';
import { Interface, type InterfaceAbi } from 'ethers';
import { CONTRACT_ABIS } from '../../contracts-package/src/abis.js';
import type { Deployment } from '../../web/src/market-context.js';
import { changesOf, decodeCall, parseProposal } from '../../web/src/operator/proposal.js';

const CUSTODIAN = `0x${'c0'.repeat(20)}`;
const BOOK = `0x${'b0'.repeat(20)}`;
const SOMEBODY = `0x${'a1'.repeat(20)}`;
const deployment = {
  chain_id: 8453,
  tokens: [],
  contracts: {
    custodian: { address: CUSTODIAN, abi: CONTRACT_ABIS.custodian },
    curveBook: { address: BOOK, abi: CONTRACT_ABIS.curveBook },
  },
} as unknown as Deployment;

const word = (value: bigint | string): string => BigInt(value).toString(16).padStart(64, '0');
/** A chain on which every view returns one word. */
const chainOf = (answer: bigint, code = '0x60') => ({
  request: async ({ method }: { method: string }): Promise<unknown> =>
    method === 'eth_getCode' ? code : `0x${word(answer)}`,
});
const encoded = (abi: unknown, method: string, args: readonly unknown[]): string =>
  new Interface(abi as InterfaceAbi).encodeFunctionData(method, args);
const custodian = (method: string, args: readonly unknown[]): string => encoded(CONTRACT_ABIS.custodian, method, args);
const file = (transactions: unknown, chainId: unknown = '8453'): string => JSON.stringify({ chainId, transactions });

describe('a proposal of the owner on the operator page', () => {
  it('is read by the calls alone, and refused whole where it is no such file', () => {
    const call = { to: SOMEBODY.toUpperCase().replace('0X', '0x'), value: '0', data: '0xABCD' };
    expect(parseProposal(file([call]), 8453)).to.deep.equal([{ to: SOMEBODY, value: '0', data: '0xabcd' }]);
    for (const [text, says] of [
      ['{', 'no JSON'],
      ['null', '1 to 200'],
      [file([]), '1 to 200'],
      [file(Array.from({ length: 201 }, () => call)), '1 to 200'],
      [file([call], '1'), 'for chain 1'],
      [file([{ ...call, to: 'me' }]), 'Call 1 names no address'],
      [file([call, { ...call, data: '0xabc' }]), 'Call 2 has no call data'],
      [file([null]), 'Call 1 names no address'],
    ] as const)
      expect(() => parseProposal(text, 8453), text.slice(0, 60)).to.throw(says);
  });

  it('decodes only what every encoder would write', () => {
    const data = custodian('setPoster', [SOMEBODY, true]);
    const read = (text: string) => decodeCall(CONTRACT_ABIS.custodian, text);
    expect(read(data)).to.deep.equal({ name: 'setPoster', args: { poster: SOMEBODY, allowed: 'true' } });
    expect(read(`${data.slice(0, -1)}2`), 'no boolean').to.equal(null);
    expect(read(`${data}00`), 'more than the arguments').to.equal(null);
    expect(read(data.slice(0, -2)), 'less than the arguments').to.equal(null);
    expect(read(data.replace('000000a1', '010000a1')), 'no address').to.equal(null);
    expect(read('0x'), 'nothing').to.equal(null);
    const upgrade = custodian('upgradeToAndCall', [SOMEBODY, '0x123456']);
    expect(read(upgrade)?.args).to.deep.equal({ newImplementation: SOMEBODY, data: '0x123456' });
    expect(read(upgrade.replace('123456', '1234560001')), 'something behind the bytes').to.equal(null);
    const offset = upgrade.replace(word(64n), word(96n));
    expect(read(offset), 'bytes elsewhere').to.equal(null);
  });

  it('says what the chain has and what it would have then', async () => {
    const calls = [
      { to: CUSTODIAN, value: '0', data: custodian('setWithdrawDelay', [600]) },
      { to: CUSTODIAN, value: '0', data: custodian('setPoster', [SOMEBODY, false]) },
      { to: BOOK, value: '0', data: encoded(CONTRACT_ABIS.curveBook, 'setPoster', [SOMEBODY, true]) },
      { to: CUSTODIAN, value: '0', data: custodian('transferOwnership', [SOMEBODY]) },
    ];
    expect(await changesOf(chainOf(1n), deployment, calls)).to.deep.equal([
      { contract: 'custodian', call: 'setWithdrawDelay(600)', before: '1 s', after: '600 s', problem: null },
      {
        ...{ contract: 'custodian', call: `setPoster(${SOMEBODY}, false)` },
        ...{ before: 'allowed', after: 'not allowed', problem: null },
      },
      {
        ...{ contract: 'curveBook', call: `setPoster(${SOMEBODY}, true)` },
        ...{ before: 'allowed', after: 'allowed', problem: null },
      },
      {
        ...{ contract: 'custodian', call: `transferOwnership(${SOMEBODY})`, problem: null },
        ...{ before: `owner 0x${'0'.repeat(39)}1`, after: `offered to ${SOMEBODY}; it has to accept` },
      },
    ]);
  });

  it('warns of whatever a command would not propose', async () => {
    const delay = custodian('setWithdrawDelay', [600]);
    const problems = async (call: { to: string; value: string; data: string }, code?: string) =>
      (await changesOf(chainOf(1n, code), deployment, [call]))[0]?.problem;
    expect(await problems({ to: SOMEBODY, value: '0', data: delay })).to.contain('no contract of the deployment');
    expect(await problems({ to: CUSTODIAN, value: '1', data: delay })).to.contain('sends 1 wei');
    expect(await problems({ to: CUSTODIAN, value: '0', data: `${delay}ff` })).to.contain('not encoded as usual');
    const renounce = custodian('renounceOwnership', []);
    expect(await problems({ to: CUSTODIAN, value: '0', data: renounce })).to.contain('no setting');
    const upgrade = custodian('upgradeToAndCall', [SOMEBODY, '0x']);
    expect(await problems({ to: CUSTODIAN, value: '0', data: upgrade }, '0x')).to.contain('no code');
    expect(await problems({ to: CUSTODIAN, value: '0', data: upgrade })).to.equal(null);
  });
});
