/** Which tokens the SDK takes at a server's word: none that were not named so. */
import { expect } from 'chai';
import { createMakerClient } from '../../sdk/src/maker.js';
import { createTakerClient } from '../../sdk/src/taker.js';
import { WETH, USDC, FAKE, contracts, listed, world, codeOf } from '../support/api/lying-server.js';

describe('tokens that a server lies about', () => {
  const swapped = { tokens: [listed(WETH, 'WETH', 18), listed(FAKE, 'USDC', 6)] };
  const scaled = { tokens: [listed(WETH, 'WETH', 18), listed(USDC, 'USDC', 12)] };
  const bare = { ...contracts, tokens: undefined };
  const deposit = ({ options }: ReturnType<typeof world>, token: string, more: object = {}): Promise<unknown> =>
    codeOf(createMakerClient({ ...options, ...more }).deposit(token, '1'));

  it('are not sent, whether named or by address', async () => {
    for (const deployment of [swapped, scaled]) {
      const lie = world({ deployment });
      expect(await deposit(lie, 'USDC')).to.equal('OTHER_DEPLOYMENT');
      expect(await codeOf(createTakerClient(lie.options).allowGasless('USDC', '1'))).to.equal('OTHER_DEPLOYMENT');
      expect(await codeOf(createTakerClient(lie.options).price({ sell: 'USDC', buy: 'WETH', amount: '1' }))).to.equal(
        'OTHER_DEPLOYMENT',
      );
      expect(lie.sent).to.have.length(0);
    }
    const lie = world({ deployment: scaled });
    expect(await deposit(lie, USDC, { contracts: bare })).to.equal('OTHER_DEPLOYMENT');
    expect(lie.sent).to.have.length(0);
  });

  it('are those of the caller: by a symbol that it named, or by address with decimals of the chain', async () => {
    const named = world();
    expect(await deposit(named, 'USDC')).to.equal(null);
    expect(await deposit(named, USDC, { contracts: bare })).to.equal(null);
    for (const { data } of named.sent) {
      expect(`0x${data.slice(34, 74)}`).to.equal(USDC);
      expect(BigInt(`0x${data.slice(74)}`)).to.equal(1_000_000n);
    }
    expect(await deposit(named, 'USDC', { contracts: bare })).to.equal('UNTRUSTED_TOKEN');
    expect(await deposit(world({ decimals: 300n }), USDC, { contracts: bare })).to.equal('UNTRUSTED_TOKEN');
    const maker = createMakerClient({ ...named.options, contracts: bare, reader: undefined });
    expect(await codeOf(maker.requestWithdraw(USDC, '1'))).to.equal('CANNOT_READ');
  });

  it("are taken at the server's word only for `server`", async () => {
    const lie = world({ deployment: scaled });
    expect(await deposit(lie, 'USDC', { contracts: 'server' })).to.equal(null);
    expect(BigInt(`0x${lie.sent[0]?.data.slice(74)}`)).to.equal(10n ** 12n);
  });
});
