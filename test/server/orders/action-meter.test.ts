import { expect } from 'chai';
import { Registry } from 'prom-client';
import { signatureBackend } from '../../../core/wire/recover.js';
import { createGateway } from '../../../server/orders/engine.js';
import { createActionMeter } from '../../../server/ops/observed-actions.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { addressOf, signRequest } from '../../support/gateway.js';
import { limit, orderAction, until, withGateway } from '../../support/gateway-suite.js';

withGateway('the meter of actions', (suite) => {
  it('counts what became durable, times what was admitted, and the start says which library recovers signatures', async () => {
    const lines: unknown[][] = [];
    const log = (...line: unknown[]): void => void lines.push(line);
    const config = {
      sources: ['a', 'b'] as const,
      signatureChainIds: null,
      failuresPerMinute: 50,
      pollMs: 20,
      referencePrices: {},
      minOrderUnits: () => 0n,
    };
    const registry = new Registry();
    const writer = await acquireWriter(suite.db, 'order');
    let begun = false;
    let openGate: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (openGate = resolve));
    const gateway = createActionMeter(registry).timed(
      await createGateway({
        db: suite.db,
        writer: {
          ...writer,
          async tx(write) {
            begun = true;
            await gate;
            return writer.tx(write);
          },
        },
        config,
        readiness: () => ({ ready: true, reason: null }),
        clock: Date.now,
        logger: { info: log, warn: log, error: log },
      }),
    );
    expect(lines).to.deep.equal([[{ signatureBackend }, 'recovering signatures']]);
    const submit = (index: number, action: object) => gateway.submit(signRequest(action, index, suite.nextNonce()));
    const sent = [submit(1, orderAction(limit(true, '2000', '1')))];
    await until(() => begun);
    sent.push(submit(1, { type: 'noop' }));
    await until(() => gateway.queued() === 1);
    openGate();
    for (const { maker } of await Promise.all(sent)) expect(maker).to.equal(addressOf(1));
    expect(gateway.queued()).to.equal(0);
    expect((await submit(9, { type: 'noop' })).maker, 'nobody').to.equal(null);
    const text = await registry.metrics();
    expect(text).to.include('curvebook_order_rows_total{kind="order"} 1');
    expect(text).to.include('curvebook_order_rows_total{kind="noop"} 1');
    expect(text).to.include('curvebook_ack_seconds_count 2');
    await gateway.idle();
  });
});
