import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { addGeneration, addressOf, clientOf, fillOf, operateMarket } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import { connectWs } from '../../support/ws.js';

forEachGateway('delisting', (suite) => {
  const elsewhere = (order: object): object => ({ ...order, a: 10001 });
  const open = (index: number): number[] =>
    suite.running.gateway
      .book()
      .openOrders(addressOf(index))
      .map(({ oid }) => oid);
  const delisted = { error: 'market_delisted: Asset is delisted. asset=10000' };

  it('closes all orders of the market and no others, and takes no more of them until it is listed again', async () => {
    const { gateway, url } = await suite.start();
    const { info, user } = clientOf(url, 1);
    const listed = await info.spotMeta();
    await suite.act(1, orderAction(limit(true, '2500', '1'), elsewhere(limit(false, '2600', '1'))));
    await suite.act(2, orderAction(limit(true, '2400', '1'), limit(false, '2600', '1')));
    const order = gateway.order(1)!.order;
    const client = await connectWs(url);
    await client.subscribe({ type: 'orderUpdates', user });

    await operateMarket(suite.db, 'delist', 0);
    const refused = await suite.act(1, orderAction(limit(true, '2500', '0.1'), elsewhere(limit(false, '2700', '1'))));
    expect(refused.response.data.statuses).to.deep.equal([delisted, { resting: { oid: 5 } }]);
    await until(() => open(1).length === 2 && open(2).length === 0);
    expect([...gateway.delisted()]).to.deep.equal([0]);
    expect(open(1)).to.deep.equal([2, 5]);
    const rows = await readOrderRows(suite.db.knex, { after: 0, limit: 100 });
    const closed = rows.filter(({ kind }) => kind === 'close').flatMap(({ effects }) => effects);
    expect(closed).to.have.deep.members(
      [1, 3, 4].map((oid) => ({ type: 'close' as const, oid, reason: 'delisted' as const })),
    );
    const told = (): string[] =>
      client.frames
        .filter(({ channel }) => channel === 'orderUpdates')
        .flatMap(({ data }) => data as { order: { oid: number }; status: string }[])
        .map(({ order: { oid }, status }) => `${oid} ${status}`);
    await until(() => told().length === 2);
    expect(told()).to.have.members(['1 delistedCanceled', '5 open']);
    await client.close();
    expect(await info.orderStatus({ user, oid: 1 })).to.have.nested.property('order.status', 'delistedCanceled');
    // Its last curve may still be hit, and its index stays.
    await addGeneration(suite.db, fillOf(WETH_USDC, order, 10n ** 17n, 1));
    gateway.onGeneration();
    await until(async () => (await info.userFills({ user })).length === 1);
    expect(await info.spotMeta()).to.deep.equal(listed);

    await suite.restart();
    const moved = { type: 'modify', oid: 2, order: limit(true, '2500', '0.1'), a: true };
    expect((await suite.act(1, moved)).status).to.equal('err');
    expect((await suite.act(1, orderAction(limit(true, '2500', '0.1')))).response.data.statuses).to.deep.equal([
      delisted,
    ]);
    await operateMarket(suite.db, 'relist', 0);
    expect((await suite.act(1, orderAction(limit(true, '2500', '0.1')))).response.data.statuses).to.deep.equal([
      { resting: { oid: 6 } },
    ]);
    expect(open(1)).to.deep.equal([2, 5, 6]);
  });
});
