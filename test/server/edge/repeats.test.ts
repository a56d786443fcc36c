/** What an edge is told of an action that it hands over again. */
import { expect } from 'chai';
import type { ForwardedAction } from '../../../server/orders/types.js';
import { addressOf, operate } from '../../support/gateway.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';

withGateway('An action that comes again', (suite) => {
  function actionOf(change: Partial<ForwardedAction['request']> = {}): ForwardedAction {
    const signature = { r: '0x1', s: '0x2', v: 27 } as const;
    const action = orderAction(limit(true, '1000', '0.1'));
    const request = { action, signature, nonce: suite.nextNonce(), vaultAddress: null, expiresAfter: null, ...change };
    return { signer: addressOf(1), request };
  }
  const decide = (one: ForwardedAction) => suite.running.gateway.decide(one, false);

  it('has an unknown outcome when the log can not be read', async () => {
    await suite.start();
    const one = actionOf();
    const reply = await decide(one);
    const { reads } = suite.db;
    const broken = Object.assign(() => {
      throw new Error('Connection terminated unexpectedly');
    }, reads);
    Object.defineProperty(suite.db, 'reads', { value: broken, configurable: true, writable: true });
    try {
      expect(await decide(one).catch((error: unknown) => error)).to.have.property('code', 'outcome_unknown');
    } finally {
      Object.defineProperty(suite.db, 'reads', { value: reads, configurable: true, writable: true });
    }
    expect(await decide(one)).to.deep.equal(reply);
  });

  it('is answered as it was, also when its maker may act no more', async () => {
    await suite.start();
    const one = actionOf();
    const reply = await decide(one);
    expect(reply).to.have.nested.property('response.data.statuses[0].resting.oid', 1);
    await operate(suite.db, 'suspend', addressOf(1));
    const refused = await decide(actionOf());
    expect(refused)
      .to.have.property('response')
      .that.matches(/^maker_suspended: /);
    expect(await decide(one)).to.deep.equal(reply);
  });

  it('is not judged for a vault, whatever an edge has checked', async () => {
    await suite.start();
    const reply = await decide(actionOf({ vaultAddress: addressOf(2) }));
    expect(reply)
      .to.have.property('response')
      .that.matches(/^vault_unsupported: /);
  });
});
