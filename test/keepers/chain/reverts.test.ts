/** What the operator reads of transactions that reverted, and what finding it out may cost the node. */
import { expect } from 'chai';
import { Interface } from 'ethers';
import type { Hex } from '../../../core/types.js';
import { revertReason } from '../../../keepers/chain/reverts.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';

const HASH: Hex = `0x${'ab'.repeat(32)}`;
const TX = { from: `0x${'11'.repeat(20)}`, to: `0x${'22'.repeat(20)}`, input: '0x1234', gas: '0x3d090' };
const SETTLER = OrderSettler__factory.createInterface();
const TEXTS = new Interface(['error Error(string)', 'error Panic(uint256)']);
const failed = (reason: string): string => SETTLER.encodeErrorResult('CallFailed', [TX.to, reason]);

/** A node that knows one transaction, whose call ends so. */
function nodeWith(end: unknown, tx: object | null = TX): { rpc: Rpc; calls: unknown[][] } {
  const calls: unknown[][] = [];
  const call = (method: string, params: unknown[] = []): Promise<unknown> => {
    if (method === 'eth_getTransactionByHash') return Promise.resolve(tx);
    calls.push(params);
    return end instanceof Error ? Promise.reject(end) : Promise.resolve(end);
  };
  return { rpc: { name: 'node', call, batch: () => Promise.reject(new Error('not asked')) }, calls };
}

const revert = (data?: unknown): Error => new RpcResponseError('eth_call', 3, 'execution reverted', data);

describe('reasons of reverted transactions', () => {
  const cases: [string, unknown, string | null][] = [
    ['the text of a require', TEXTS.encodeErrorResult('Error', ['ERC20: low balance']), 'ERC20: low balance'],
    ['no more of a text than 120 characters', TEXTS.encodeErrorResult('Error', ['x'.repeat(9_999)]), 'x'.repeat(120)],
    ['the name of an error', TEXTS.encodeErrorResult('Panic', [17]), 'Panic'],
    ['the error inside a failed call', failed(TEXTS.encodeErrorResult('Error', ['within'])), 'within'],
    ['the failed call when nothing is inside', failed('0x'), 'CallFailed'],
    ['the selector of an error that nobody knows', '0xdeadbeef0000', '0xdeadbeef'],
    ['data in an object', { data: TEXTS.encodeErrorResult('Error', ['nested']) }, 'nested'],
    ['nothing when there is no data', undefined, null],
    ['nothing of data that is too short for a selector', '0xdead', null],
    ['the selector of data that is cut off', TEXTS.encodeErrorResult('Error', ['cut off']).slice(0, 40), '0x08c379a0'],
    ['no zero bytes and no lines', TEXTS.encodeErrorResult('Error', ['a\0b\nc\u202ed']), 'a\uFFFDb\uFFFDc\uFFFDd'],
    [
      'the selector of a text that is none',
      TEXTS.encodeErrorResult('Error', ['text']).replace('74657874', 'ffffffff'),
      '0x08c379a0',
    ],
    ['the failed call when what is inside is cut off', failed('0x08c379a000'), '0x08c379a0'],
    ['nothing of data that is no hex', `0x${'zz'.repeat(9)}`, '0xzzzzzzzz'],
  ];
  for (const [what, data, reason] of cases) {
    it(`are ${what}`, async () => {
      expect(await revertReason(nodeWith(revert(data)).rpc, HASH, 7)).to.equal(reason);
    });
  }

  it('are found out with the gas that the transaction had, whatever an account would burn of the node', async () => {
    const { rpc, calls } = nodeWith(revert());
    await revertReason(rpc, HASH, 7);
    expect(calls).to.deep.equal([[{ from: TX.from, to: TX.to, data: TX.input, gas: TX.gas }, '0x7']]);
  });

  it('are unknown when the call does not revert again, the transaction is unknown, or the node fails', async () => {
    for (const { rpc } of [
      nodeWith('0x'),
      nodeWith(revert(), null),
      nodeWith(new RpcUnavailableError('no answer from node')),
    ])
      expect(await revertReason(rpc, HASH, 7)).to.equal(null);
  });
});
