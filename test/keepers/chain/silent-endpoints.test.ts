import { expect } from 'chai';
import { RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { confirmBlock, createSilence } from '../../../keepers/watcher/scan/majority.js';
import { doubleChain } from '../../support/worlds/ledger-world.js';

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

  it('is asked each time when it is the only other one, and not waited for as long', async () => {
    const header = (await rpc.call('eth_getBlockByNumber', ['0x1', false])) as { hash: `0x${string}` };
    const known = { number: HEAD, hash: header.hash };
    const mute: Rpc = { ...dead, name: 'mute', batch: () => new Promise(() => undefined) };
    const back: Rpc = { ...rpc, name: 'back' };
    const other: Rpc = {
      ...rpc,
      name: 'other',
      batch: async (requests) =>
        [await rpc.call('eth_getBlockByNumber', ['0x0', false]), ...(await rpc.batch(requests)).slice(1)].map(
          (one, i) => (i === 0 ? { ...(one as object), number: '0x1' } : one),
        ),
    };
    const silence = createSilence(() => 0);
    for (const one of [mute, back, other]) silence.note(one, false);
    expect(await confirmBlock(rpc, known, [mute], silence)).to.deep.equal({ kind: 'alone' });
    expect(await confirmBlock(rpc, known, [back], silence)).to.deep.equal({ kind: 'confirmed', by: [back] });
    const contradicted = await confirmBlock(rpc, known, [other], silence).catch((error: Error) => error.name);
    expect(contradicted).to.equal('NoMajorityError');
  });
});
