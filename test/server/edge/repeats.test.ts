/** What an edge is told of an action that it hands over again. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createGateway } from '../../../server/orders/engine.js';
import { createTurns } from '../../../server/turns.js';
import type { ForwardedAction } from '../../../server/orders/types.js';
import { addressOf, operate, signRequest } from '../../support/gateway.js';
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

withGateway('An edge that waits for a row', (suite) => {
  it('reads the logs with pauses, and no more once it has answered', async () => {
    let count = 0;
    // Every read begins with one of what the database offers.
    const counted = new Proxy(suite.db, {
      get(target, name) {
        count += 1;
        return target[name as keyof typeof target];
      },
    });
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const edge = await createGateway({
      db: counted,
      writer: null,
      forward: {
        submit: () => Promise.resolve({ reply: { status: 'ok', response: { type: 'default' } }, orderSeq: 1_000_000 }),
        waiting: () => 0,
        idle: () => Promise.resolve(),
      },
      config: {
        ...{ sources: ['a', 'b'], signatureChainIds: null, failuresPerMinute: 50, pollMs: 60_000 },
        ...{ referencePrices: {}, minOrderUnits: () => 0n },
      },
      readiness: () => ({ ready: true, reason: null }),
      clock: () => Date.now(),
      logger: silent,
    });
    const stopping = new AbortController();
    const running = edge.run(stopping.signal);
    try {
      const body = signRequest(orderAction(limit(true, '1000', '0.1')), 1, suite.nextNonce());
      expect((await edge.submit(body)).reply).to.have.property('status', 'ok');
      await delay(100);
      const before = count;
      await delay(300);
      expect(count).to.equal(before);
    } finally {
      stopping.abort();
      await running;
    }
  });
});

describe('Turns', () => {
  it('let so much run at the same time, in order, and go on after a failure', async () => {
    const turns = createTurns(2);
    let running = 0;
    let most = 0;
    const begun: number[] = [];
    const ends = await Promise.allSettled(
      [1, 2, 3, 4, 5].map((index) =>
        turns.run(async () => {
          begun.push(index);
          most = Math.max(most, (running += 1));
          await delay(5);
          running -= 1;
          if (index === 1) throw new Error('so');
          return index;
        }),
      ),
    );
    expect(ends.map(({ status }) => status)).to.deep.equal(['rejected', ...Array<string>(4).fill('fulfilled')]);
    expect([begun, most, turns.waiting()]).to.deep.equal([[1, 2, 3, 4, 5], 2, 0]);
  });
});
