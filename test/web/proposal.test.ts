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
/** The chain of the deployment, on which every view returns one word; what is named answers otherwise. */
const chainOf = (answer: bigint, { code = '0x60', chainId = '0x2105', view = `0x${word(answer)}` } = {}) => ({
  request: async ({ method }: { method: string }): Promise<unknown> =>
    ({ eth_getCode: code, eth_chainId: chainId, eth_call: view })[method] ?? `0x${word(answer)}`,
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
    const problems = async (call: { to: string; value: string; data: string }, code = '0x60') =>
      (await changesOf(chainOf(1n, { code }), deployment, [call]))[0]?.problem;
    expect(await problems({ to: SOMEBODY, value: '0', data: delay })).to.contain('no contract of the deployment');
    expect(await problems({ to: CUSTODIAN, value: '1', data: delay })).to.contain('sends 1 wei');
    expect(await problems({ to: CUSTODIAN, value: '0', data: `${delay}ff` })).to.contain('not encoded as usual');
    const renounce = custodian('renounceOwnership', []);
    expect(await problems({ to: CUSTODIAN, value: '0', data: renounce })).to.contain('no setting');
    const upgrade = custodian('upgradeToAndCall', [SOMEBODY, '0x']);
    expect(await problems({ to: CUSTODIAN, value: '0', data: upgrade }, '0x')).to.contain('no code');
    expect(await problems({ to: CUSTODIAN, value: '0', data: upgrade })).to.equal(null);
  });

  it('reads the call within an upgrade like any other, with its own now and then', async () => {
    const upgrade = (inner: string) => [
      { to: CUSTODIAN, value: '0', data: custodian('upgradeToAndCall', [BOOK, inner]) },
      { to: CUSTODIAN, value: '0', data: custodian('setWithdrawDelay', [600]) },
    ];
    const rows = async (inner: string) => changesOf(chainOf(0n), deployment, upgrade(inner));
    const within = 'custodian, by the upgrade';
    const hidden = await rows(custodian('setPoster', [SOMEBODY, true]));
    expect(hidden.map(({ contract }) => contract)).to.deep.equal(['custodian', within, 'custodian']);
    expect(hidden[0]?.after).to.contain('then makes the call below');
    expect(hidden[1]).to.deep.equal({
      ...{ contract: within, call: `setPoster(${SOMEBODY}, true)` },
      ...{ before: 'not allowed', after: 'allowed', problem: null },
    });
    expect((await rows('0x')).map(({ contract }) => contract)).to.deep.equal(['custodian', 'custodian']);
    const setPoster = custodian('setPoster', [SOMEBODY, true]);
    for (const [inner, says] of [
      ['0x12345678', 'no call that the contract has'],
      [`${setPoster}00`, 'not encoded as usual'],
      [custodian('renounceOwnership', []), 'no setting'],
      [custodian('transferOwnership', [SOMEBODY]), null],
      // Whatever stands within could go on like this; the code that it would run is not what the first one names.
      [custodian('upgradeToAndCall', [SOMEBODY, setPoster]), 'an upgrade within an upgrade'],
    ] as const) {
      const [, row] = await rows(inner);
      expect(row?.contract, inner).to.equal(within);
      if (says === null) expect(row?.problem).to.equal(null);
      else expect(row?.problem, inner).to.contain(says);
    }
  });

  it('takes nothing for an answer that is none, or that is of another chain', async () => {
    const setPoster = { to: CUSTODIAN, value: '0', data: custodian('setPoster', [SOMEBODY, true]) };
    const failure = (chain: Parameters<typeof changesOf>[0], calls = [setPoster]) =>
      changesOf(chain, deployment, calls).catch((error: unknown) => error);
    expect(await failure(chainOf(1n, { view: '0x' }))).to.include({ code: 'NO_CONTRACT' });
    const market = `0x${word(7n)}`;
    const setSeq = { to: BOOK, value: '0', data: encoded(CONTRACT_ABIS.curveBook, 'setSeq', [market, 9]) };
    expect(await failure(chainOf(1n), [setSeq]), 'one word for fourteen').to.include({ code: 'NO_CONTRACT' });
    expect(await failure(chainOf(1n, { chainId: '0x1' }))).to.include({ code: 'WRONG_CHAIN' });
    // The wallet goes to another chain while it is asked.
    let asked = 0;
    const chain = chainOf(1n);
    const moving = {
      request: (ask: { method: string }) =>
        ask.method === 'eth_chainId' ? Promise.resolve(asked++ === 0 ? '0x2105' : '0x1') : chain.request(ask),
    };
    expect(await failure(moving)).to.include({ code: 'WRONG_CHAIN' });
  });
});
