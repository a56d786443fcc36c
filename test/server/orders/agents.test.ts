import { expect } from 'chai';
import { ethers } from 'ethers';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { addGeneration, addressOf, clientOf, deposit, keyOf, operate, post } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction } from '../../support/gateway-suite.js';
import { WETH } from '../../support/markets.js';

const DAY = 86_400_000;
const TYPES = {
  'HyperliquidTransaction:ApproveAgent': [
    { name: 'hyperliquidChain', type: 'string' },
    { name: 'agentAddress', type: 'address' },
    { name: 'agentName', type: 'string' },
    { name: 'nonce', type: 'uint64' },
  ],
};

forEachGateway('agents', (suite) => {
  const place = orderAction(limit(true, '2500', '0.1'));

  /** Sends an approval, signed like a wallet does; `change` alters what is sent after signing. */
  async function approve(
    index: number,
    agent: string,
    name = '',
    options: { nonce?: number; chainId?: string; network?: string; change?: object } = {},
  ): Promise<string> {
    const nonce = options.nonce ?? suite.nextNonce();
    const signatureChainId = options.chainId ?? '0x2105';
    const message = { hyperliquidChain: options.network ?? 'Mainnet', agentAddress: agent, agentName: name, nonce };
    const domain = {
      name: 'HyperliquidSignTransaction',
      version: '1',
      chainId: BigInt(signatureChainId),
      verifyingContract: ethers.ZeroAddress,
    };
    const wallet = new ethers.Wallet(keyOf(index));
    const { r, s, v } = ethers.Signature.from(await wallet.signTypedData(domain, TYPES, message));
    const action = { type: 'approveAgent', signatureChainId, ...message, ...options.change };
    const reply = (await post(`${suite.running.url}/exchange`, { action, nonce, signature: { r, s, v } })).json;
    if (reply.status === 'err') return reply.response as string;
    expect(reply).to.deep.equal({ status: 'ok', response: { type: 'default' } });
    return 'ok';
  }

  it('act for their master, over restarts, and for nobody once removed', async () => {
    const { url } = await suite.start();
    const master = clientOf(url, 1);
    await master.exchange.approveAgent({ agentAddress: addressOf(11), agentName: 'bot-1' });
    await master.exchange.approveAgent({ agentAddress: addressOf(12) });
    const restarted = await suite.restart();
    for (const index of [11, 12]) {
      const reply = await suite.act(index, place);
      expect(reply.response.data.statuses[0]).to.have.property('resting');
    }
    expect(restarted.gateway.book().openOrders(addressOf(1))).to.have.length(2);
    const info = clientOf(restarted.url, 1).info;
    const [agent, ...others] = await info.extraAgents({ user: addressOf(1) });
    expect(others).to.deep.equal([]);
    expect(agent).to.include({ name: 'bot-1', address: addressOf(11) });
    expect((agent?.validUntil ?? 0) - Date.now()).to.be.within(89.9 * DAY, 90 * DAY);
    expect(await info.userRole({ user: addressOf(11) })).to.deep.equal({ role: 'agent', data: { user: addressOf(1) } });
    expect(await info.userRole({ user: addressOf(1) })).to.deep.equal({ role: 'user' });

    expect(await approve(1, ethers.ZeroAddress, 'bot-1')).to.equal('ok');
    expect((await suite.act(11, place)).response).to.equal(
      `unknown_signer: User or API Wallet ${addressOf(11)} does not exist.`,
    );
    expect(await approve(1, ethers.ZeroAddress, 'bot-1')).to.match(/^agent_not_found: /);
    expect((await suite.act(12, place)).status).to.equal('ok');
    expect(await info.userRole({ user: addressOf(11) })).to.deep.equal({ role: 'missing' });
  });

  it('are replaced under their name, and never come back', async () => {
    await suite.start();
    expect(await approve(1, addressOf(11), 'bot')).to.equal('ok');
    expect(await approve(1, addressOf(12), 'bot')).to.equal('ok');
    expect((await suite.act(11, place)).response).to.match(/^unknown_signer/);
    expect((await suite.act(12, place)).status).to.equal('ok');
    for (const agent of [11, 12]) {
      for (const [master, name] of [
        [1, 'bot'],
        [2, ''],
      ] as const) {
        expect(await approve(master, addressOf(agent), name)).to.equal('agent_used: Extra agent already used.');
      }
    }
  });

  it('can not be the address of a maker, approved before or after, or of anybody with a ledger row', async () => {
    const { gateway } = await suite.start();
    const used = 'agent_used: Extra agent already used.';
    for (const index of [1, 2, 3]) expect(await approve(1, addressOf(index))).to.equal(used);
    await operate(suite.db, 'suspend', addressOf(2));
    expect(await approve(1, addressOf(2))).to.equal(used);
    // Whoever is approved later acts for itself from then on, also once suspended.
    expect(await approve(1, addressOf(11), 'rival')).to.equal('ok');
    await addGeneration(suite.db, { entries: deposit('late', addressOf(11), WETH.address, 10n ** 18n) });
    await operate(suite.db, 'approve', addressOf(11));
    expect((await suite.act(11, { type: 'noop' })).status).to.equal('ok');
    const rows = await readOrderRows(suite.db.knex, { after: 0, limit: 10 });
    expect(rows.at(-1)).to.include({ maker: addressOf(11), signer: addressOf(11) });
    expect(gateway.agentsOf(addressOf(1))).to.deep.equal([]);
    await operate(suite.db, 'suspend', addressOf(11));
    expect((await suite.act(11, place)).response).to.match(/^maker_suspended/);
  });

  it('are suspended with their master, and end when their time does', async () => {
    const { time } = await suite.start();
    const nowMs = Date.now();
    expect(await approve(1, addressOf(11), `short valid_until ${nowMs + 60_000}`)).to.equal('ok');
    expect(await approve(1, addressOf(12), 'long')).to.equal('ok');
    expect((await suite.act(11, place)).status).to.equal('ok');
    time.nowMs = () => nowMs + 60_000;
    expect((await suite.act(11, place)).response).to.match(/^unknown_signer/);
    expect((await suite.act(12, place)).status).to.equal('ok');
    await operate(suite.db, 'suspend', addressOf(1));
    expect((await suite.act(12, place)).response).to.equal(`maker_suspended: Maker ${addressOf(1)} is suspended`);
  });

  it('hold the rules of names, ends and slots', async () => {
    await suite.start();
    const nowMs = Date.now();
    const fresh = (
      (next) => () =>
        addressOf((next += 1))
    )(20);
    expect(await approve(1, fresh(), 'x'.repeat(17))).to.match(
      /^agent_name: Extra agent name must be between 1 and 16/,
    );
    for (const end of [nowMs - 1, nowMs + 181 * DAY]) {
      expect(await approve(1, fresh(), `x valid_until ${end}`)).to.match(/^agent_expiry: Agent valid_until already/);
    }
    expect(await approve(1, fresh(), ` valid_until ${nowMs + DAY}`)).to.equal('ok');
    for (const name of ['a', 'b', 'c']) expect(await approve(1, fresh(), name)).to.equal('ok');
    expect(await approve(1, fresh(), 'd')).to.match(/^agent_slots: Too many extra agents .* Current limit is 3$/);
    expect(await approve(1, fresh(), 'c')).to.equal('ok');
    expect(await approve(1, ethers.ZeroAddress, 'a')).to.equal('ok');
    expect(await approve(1, fresh(), 'd')).to.equal('ok');
    expect(suite.running.gateway.agentsOf(addressOf(1)).map((agent) => agent.name)).to.deep.equal(['', 'b', 'c', 'd']);
  });

  it('refuse what they signed before their approval, and have nonces of their own', async () => {
    await suite.start();
    const nonce = suite.nextNonce();
    expect(await approve(1, addressOf(11), '', { nonce })).to.equal('ok');
    expect((await suite.act(11, place, { nonce: nonce - 1 })).response).to.equal(
      `nonce_too_low: Invalid nonce: nonce too low ${nonce - 1} < ${nonce}`,
    );
    expect((await suite.act(11, place, { nonce })).status).to.equal('ok');
    expect((await suite.act(11, place, { nonce })).response).to.match(/^duplicate_nonce/);
    // The approval itself used the master's nonce.
    expect((await suite.act(1, place, { nonce })).response).to.match(/^duplicate_nonce/);
    expect(await approve(1, addressOf(12), '', { nonce })).to.match(/^duplicate_nonce/);
  });

  it('can not approve, and approvals of strangers and altered ones name nobody', async () => {
    await suite.start();
    expect(await approve(1, addressOf(11))).to.equal('ok');
    expect(await approve(11, addressOf(12))).to.equal(
      `unknown_account: Must deposit before performing actions. User: ${addressOf(11)}`,
    );
    expect(await approve(3, addressOf(12))).to.match(/^maker_not_approved/);
    expect(await approve(1, addressOf(12), '', { change: { agentAddress: addressOf(13) } })).to.match(
      /^unknown_account: Must deposit/,
    );
    expect(await approve(1, addressOf(12), '', { change: { nonce: 5 } })).to.equal('nonce_mismatch: Nonce mismatch.');
  });

  it('may be limited to networks and chains', async () => {
    await suite.start({ sources: ['a'], signatureChainIds: [8453n] });
    expect(await approve(1, addressOf(11), '', { network: 'Testnet' })).to.equal(
      'wrong_network: Mainnet and testnet require different signature.',
    );
    expect(await approve(1, addressOf(11), '', { chainId: '0x66eee' })).to.equal(
      'signature_chain_refused: Signatures for chain 0x66eee are not accepted',
    );
    expect(await approve(1, addressOf(11))).to.equal('ok');
    expect((await suite.act(11, place, { source: 'b' })).response).to.match(/^unknown_signer/);
    expect((await suite.act(11, place)).status).to.equal('ok');
  });
});
