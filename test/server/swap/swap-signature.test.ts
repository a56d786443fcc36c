import { expect } from 'chai';
import type { Address, Hex } from '../../../core/types.js';
import { RpcResponseError, RpcUnavailableError } from '../../../keepers/chain/rpc.js';
import { simulate } from '../../../keepers/executor/simulate.js';
import { acceptedSignature, signatureGas } from '../../../server/swap/signature.js';

const OWNER: Address = `0x${'a1'.repeat(20)}`;
const DIGEST: Hex = `0x${'d1'.repeat(32)}`;
const LIMIT = new RpcResponseError('eth_call', -32_005, 'limit exceeded', undefined);
const TIMEOUT = new RpcResponseError('eth_call', -32_000, 'execution aborted (timeout = 5s)', undefined);
const SILENCE = new RpcUnavailableError('no answer');
const REVERTS = [
  new RpcResponseError('eth_call', 3, 'execution reverted', '0x'),
  new RpcResponseError('eth_call', -32_000, 'execution reverted', undefined),
  // Every way in which code that its owner chose may end, in the words of go-ethereum.
  ...[
    'invalid opcode: INVALID',
    'invalid jump destination',
    'stack underflow (0 <=> 1)',
    'stack limit reached 1024 (1023)',
    'out of gas',
    'gas uint64 overflow',
    'return data out of bounds',
    'write protection',
  ].map((message) => new RpcResponseError('eth_call', -32_000, message, undefined)),
];

/** A node that answers every request in the same way. */
function node(answer: Hex | Error) {
  const call = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
  return { name: 'test', call, batch: () => call().then((one) => [one, '0x1']) };
}

const thrownBy = (run: Promise<unknown>): Promise<unknown> => run.then(() => null).catch((error: unknown) => error);

describe('answers and faults of a node', () => {
  const accepted = (answer: Hex | Error) =>
    acceptedSignature(node(answer), { owner: OWNER, code: '0x6000' }, DIGEST, '0x1234');

  it('tell a signature that an account refuses from a node that can not say', async () => {
    expect(await accepted(`0x1626ba7e${'0'.repeat(56)}`)).to.equal('0x1234');
    for (const refusal of ['0x', `0xffffffff${'0'.repeat(56)}`, ...REVERTS] as const) {
      expect(await accepted(refusal)).to.equal(null);
    }
    for (const fault of [LIMIT, TIMEOUT, SILENCE]) expect(await thrownBy(accepted(fault))).to.equal(fault);
  });

  it('are asked for with a limit of gas, whatever is simulated', async () => {
    const asked: { gas?: string }[] = [];
    const noted = ({ params = [] }: { params?: unknown[] }): Hex => {
      asked.push(params[0] as { gas?: string });
      return '0x5208';
    };
    const spied = {
      name: 'test',
      call: (_method: string, params: unknown[] = []) => Promise.resolve(noted({ params })),
      batch: (requests: readonly { params?: unknown[] }[]) => Promise.resolve(requests.map(noted)),
    };
    const account = { owner: OWNER, code: '0x6000' as Hex };
    await acceptedSignature(spied, account, DIGEST, '0x1234', { maxGas: 400_000n, permit2: OWNER });
    await signatureGas(spied, account, { maxGas: 400_000n, permit2: OWNER });
    expect(asked.map(({ gas }) => gas)).to.deep.equal(['0x61a80', '0x61a80']);
    await thrownBy(simulate(spied, OWNER, OWNER, '0x', 800_000n));
    expect(asked.slice(2).map(({ gas }) => gas)).to.deep.equal(['0xc3500', '0xc3500']);
  });

  it('tell an order that the contracts refuse from a node that can not say', async () => {
    const simulated = (answer: Error) => simulate(node(answer), OWNER, OWNER, '0x');
    for (const revert of REVERTS) expect(await simulated(revert)).to.deep.include({ ok: false });
    for (const fault of [LIMIT, TIMEOUT, SILENCE]) expect(await thrownBy(simulated(fault))).to.equal(fault);
  });
});
