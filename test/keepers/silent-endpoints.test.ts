import { expect } from 'chai';
import { RpcUnavailableError, type Rpc } from '../../keepers/chain/rpc.js';
import { confirmBlock, createSilence } from '../../keepers/watcher/majority.js';
import { doubleChain } from '../support/ledger-world.js';

const HEAD = 1;

describe('an endpoint that was silent', () => {
  const { rpc } = doubleChain();
  const dead: Rpc = {
    name: 'dead',
    call: () => Promise.reject(new RpcUnavailableError('dead')),
    batch: () => Promise.reject(new RpcUnavailableError('dead')),
  };

  it('is asked again as soon as nothing can be decided without it', async () => {
    const header = (await rpc.call('eth_getBlockByNumber', ['0x1', false])) as { hash: `0x${string}` };
    const back: Rpc = { ...rpc, name: 'back' };
    const silence = createSilence(() => 0);
    for (let i = 0; i < 6; i += 1) silence.note(back, false);
    expect(silence.isSilent(back)).to.equal(true);
    const known = { number: HEAD, hash: header.hash };
    const confirmation = await confirmBlock(rpc, known, [dead, back], silence);
    expect(confirmation).to.deep.equal({ kind: 'confirmed', by: [back] });
    expect(silence.isSilent(back)).to.equal(false);
  });

  it('is not waited for when it is the only other one', async () => {
    const header = (await rpc.call('eth_getBlockByNumber', ['0x1', false])) as { hash: `0x${string}` };
    let asked = 0;
    const counted: Rpc = { ...dead, batch: () => Promise.reject(new RpcUnavailableError(`asked ${(asked += 1)}`)) };
    const silence = createSilence(() => 0);
    silence.note(counted, false);
    const confirmation = await confirmBlock(rpc, { number: HEAD, hash: header.hash }, [counted], silence);
    expect(confirmation).to.deep.equal({ kind: 'alone' });
    expect(asked).to.equal(0);
  });
});
