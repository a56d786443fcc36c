import { expect } from 'chai';
import { compactStep } from '../../../ledger/orders/compaction.js';
import { lastOrderSeq } from '../../../ledger/orders/order-log.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { MAX_CLOSED_ORDERS } from '../../../server/orders/limits.js';
import { addGeneration, addressOf, clientOf, fillOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import { connectWs } from '../../support/ws.js';

const CLOID = `0x${'c1'.repeat(16)}` as const;
const BATCH = 1_000;

forEachGateway('client order ids of fills', (suite) => {
  const user = addressOf(1);

  /** Everything that tells a maker of its fills, as oid, size and client order id, newest first. */
  async function told(): Promise<Record<string, [number, string, string | undefined][]>> {
    const { info } = clientOf(suite.running.url, 1);
    const client = await connectWs(suite.running.url);
    await client.subscribe({ type: 'userFills', user });
    const snapshot = await client.take(({ channel }) => channel === 'userFills');
    await client.close();
    const brief = (fills: { oid: number; sz: string; cloid?: string }[]): [number, string, string | undefined][] =>
      fills.map(({ oid, sz, cloid }) => [oid, sz, cloid]);
    return {
      userFills: brief(await info.userFills({ user })),
      userFillsByTime: brief(await info.userFillsByTime({ user, startTime: 0, reversed: true })),
      snapshot: brief(snapshot.data.fills),
    };
  }

  it('stay when the order is forgotten, compacted, and the gateway restarted', async function () {
    this.timeout(120_000);
    const { gateway, url } = await suite.start();
    await suite.act(
      1,
      orderAction(limit(true, '2500', '1', { c: CLOID }), limit(true, '2500', '1'), limit(true, '2500', '0.4')),
    );
    const [order, other, whole] = [1, 2, 3].map((oid) => gateway.order(oid)!.order);
    await addGeneration(suite.db, fillOf(WETH_USDC, order!, 10n ** 17n, 1));
    await suite.act(1, { type: 'cancel', cancels: [1, 2].map((o) => ({ a: 10000, o })) });
    // An earlier curve still had both.
    await addGeneration(suite.db, fillOf(WETH_USDC, order!, 2n * 10n ** 17n, 2));
    await addGeneration(suite.db, fillOf(WETH_USDC, other!, 3n * 10n ** 17n, 3));
    await addGeneration(suite.db, fillOf(WETH_USDC, whole!, 4n * 10n ** 17n, 4));
    gateway.onGeneration();
    await until(() => gateway.generation() === 5);
    const fills = [
      [3, '0.4', undefined],
      [2, '0.3', undefined],
      [1, '0.2', CLOID],
      [1, '0.1', CLOID],
    ];
    const everywhere = { userFills: fills, userFillsByTime: fills, snapshot: fills };
    expect(await told()).to.deep.equal(everywhere);

    const { info } = clientOf(url, 1);
    const ended = () => Promise.all([1, 2, 3, CLOID].map((oid) => info.orderStatus({ user, oid })));
    const remembered = await ended();
    expect(remembered.map((one) => one.status === 'order' && [one.order.status, one.order.order.sz])).to.deep.equal([
      ['canceled', '0.7'],
      ['canceled', '0.7'],
      ['filled', '0.0'],
      ['canceled', '0.7'],
    ]);
    for (let oid = 4; oid < 4 + 1.5 * MAX_CLOSED_ORDERS + BATCH; oid += BATCH) {
      const many = Array.from({ length: BATCH }, () => limit(true, '2400', '0.0001'));
      expect((await suite.act(1, orderAction(...many))).status).to.equal('ok');
      const cancels = many.map((_, index) => ({ a: 10000, o: oid + index }));
      expect((await suite.act(1, { type: 'cancel', cancels })).status).to.equal('ok');
    }
    expect(await ended(), 'forgotten').to.deep.equal(remembered);
    const unfilled = await info.orderStatus({ user, oid: 4 });
    expect(unfilled).to.have.nested.property('order.status', 'canceled');
    expect(unfilled).to.have.nested.property('order.order.sz', '0.0001');
    expect(await info.orderStatus({ user: addressOf(2), oid: 4 })).to.deep.equal({ status: 'unknownOid' });
    expect(await told()).to.deep.equal(everywhere);

    await suite.running.stop();
    const writer = await acquireWriter(suite.db, 'order');
    const bounds = { orderSeq: (await lastOrderSeq(suite.db.knex)) - 1, generation: 5, beforeMs: Date.now() + 1 };
    const limits = { effects: 20_000, generations: 10, closedOrders: MAX_CLOSED_ORDERS };
    const step = await writer.tx((tx) => compactStep(tx, bounds, limits));
    expect(step.orderRows).to.be.greaterThan(2);
    await writer.release();
    await suite.restart();
    const again = clientOf(suite.running.url, 1).info;
    for (const [i, oid] of [1, 2, 3, CLOID].entries())
      expect(await again.orderStatus({ user, oid }), `compacted ${oid}`).to.deep.equal(remembered[i]);
    // Nobody was ever paid for it.
    expect(await again.orderStatus({ user, oid: 4 })).to.deep.equal({ status: 'unknownOid' });
    expect(await told()).to.deep.equal(everywhere);
  });
});
