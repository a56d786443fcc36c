/** Whose actions the order gateway takes, and each how often. */
import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { addressOf, operate, post, signRequest } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';

const CLOID = '0xabcdef0123456789abcdef0123456789';
/** Actions that clients of this wire know and that have no meaning here. */
const UNSUPPORTED = (
  'approveBuilderFee setReferrer updateLeverage updateIsolatedMargin twapOrder twapCancel evmUserModify spotSend usdSend withdraw3 ' +
  'usdClassTransfer sendAsset vaultTransfer createSubAccount tokenDelegate multiSig convertToMultiSigUser agentEnableDexAbstraction ' +
  'userSetAbstraction userDexAbstraction reserveRequestWeight claimRewards spotDeploy'
).split(' ');

forEachGateway('signers of the order gateway', (suite) => {
  const { start, act } = suite;

  it('tells unknown, never approved and suspended signers apart, and stores nothing of theirs', async () => {
    await start();
    const action = orderAction(limit(true, '2500', '1'));
    expect(await act(40, action)).to.deep.equal({
      status: 'err',
      response: `unknown_signer: User or API Wallet ${addressOf(40)} does not exist.`,
    });
    expect((await act(3, action)).response).to.equal(`maker_not_approved: Maker ${addressOf(3)} is not approved`);
    await operate(suite.db, 'suspend', addressOf(2));
    expect((await act(2, action)).response).to.equal(`maker_suspended: Maker ${addressOf(2)} is suspended`);
    expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.deep.equal([]);
    await operate(suite.db, 'approve', addressOf(3));
    expect((await act(3, action)).status).to.equal('ok');
  });

  it('closes the orders of a maker that is suspended', async () => {
    const { gateway } = await start();
    await act(1, orderAction(limit(true, '2500', '1'), limit(true, '2400', '1')));
    await act(2, orderAction(limit(true, '2300', '1')));
    await operate(suite.db, 'suspend', addressOf(1));
    await until(() => gateway.book().openOrders(addressOf(1)).length === 0);
    expect(gateway.book().openOrders(addressOf(2))).to.have.length(1);
    const row = (await readOrderRows(suite.db.knex, { after: 2, limit: 10 }))[0];
    expect(row).to.deep.include({ maker: addressOf(1), signer: null, nonce: null, kind: 'close' });
    expect(row?.effects.map((effect) => effect.type === 'close' && effect.reason)).to.deep.equal([
      'suspended',
      'suspended',
    ]);
  });

  it('recovers signers of padded decimals, shuffled keys and upper-case client order ids', async () => {
    await start();
    const place = (c: string) => orderAction(limit(true, '2500.25', '0.5', { c }));
    const signed = signRequest(place(CLOID), 1, suite.nextNonce(), { source: 'b' }) as { action: object };
    const wire = {
      ...signed,
      action: {
        grouping: 'na',
        orders: [limit(true, '2500.250', '0.50', { c: CLOID.toUpperCase().replace('0X', '0x') })],
        type: 'order',
      },
    };
    const reply = (await post(`${suite.running.url}/exchange`, wire)).json;
    expect(reply.response.data.statuses).to.deep.equal([{ resting: { oid: 1, cloid: CLOID } }]);
    const upper = await act(1, {
      type: 'cancelByCloid',
      cancels: [{ asset: 10000, cloid: `0x${CLOID.slice(2).toUpperCase()}` }],
    });
    expect(upper.response).to.deep.equal({ type: 'cancel', data: { statuses: ['success'] } });
  });

  it('admits a nonce once, also after a restart, also when the action was refused', async () => {
    await start();
    const nowMs = Date.now();
    const place = orderAction(limit(true, '2500', '0.1'));
    expect((await act(1, place, { nonce: nowMs })).status).to.equal('ok');
    expect((await act(1, place, { nonce: nowMs - 5 })).status).to.equal('ok');
    expect((await act(2, place, { nonce: nowMs })).status).to.equal('ok');
    const refused = await act(1, { ...place, grouping: 'normalTpsl' }, { nonce: nowMs + 1 });
    expect(refused.response).to.match(/^grouping_unsupported: /);
    const expired = await act(1, place, { nonce: nowMs + 2, expiresAfter: nowMs - 1 });
    expect(expired.response).to.equal('action_expired: Action already expired');
    const alive = await act(1, place, { nonce: nowMs + 3, expiresAfter: nowMs + 60_000 });
    expect(alive.status).to.equal('ok');
    for (const restarted of [false, true]) {
      if (restarted) await suite.restart();
      for (const used of [nowMs, nowMs - 5, nowMs + 1, nowMs + 2, nowMs + 3]) {
        expect((await act(1, place, { nonce: used })).response).to.equal(
          `duplicate_nonce: Invalid nonce: duplicate nonce ${used}`,
        );
      }
    }
    expect((await act(1, place, { nonce: nowMs - 3 * 86_400_000 })).response).to.match(/^nonce_too_low/);
    expect((await act(1, place, { nonce: nowMs + 2 * 86_400_000 })).response).to.match(/^nonce_too_high/);
    expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.have.length(6);
  });

  it('refuses vaults, altered signatures and actions of other venues', async () => {
    await start();
    const place = orderAction(limit(true, '2500', '0.1'));
    expect((await act(1, place, { vaultAddress: addressOf(9) })).response).to.equal(
      `vault_unsupported: Vault not registered: ${addressOf(9)}`,
    );
    const signed = signRequest(place, 1, suite.nextNonce()) as { signature: { s: string; v: number } };
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const high = { r: '0x1', ...signed.signature, s: `0x${(order - BigInt(signed.signature.s)).toString(16)}` };
    const flipped = { ...signed, signature: { ...high, v: 55 - signed.signature.v } };
    expect((await post(`${suite.running.url}/exchange`, flipped)).json.response).to.equal(
      'bad_signature: Unable to recover signer.',
    );
    const changed = { ...signed, action: orderAction(limit(true, '2500', '9')) };
    expect((await post(`${suite.running.url}/exchange`, changed)).json.response).to.match(
      /^unknown_signer: User or API Wallet 0x/,
    );
    for (const type of UNSUPPORTED) {
      expect((await act(1, { type, anything: 1 })).response).to.equal(`unsupported_action: ${type} is not supported`);
    }
  });
});
