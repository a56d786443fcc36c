/** How the order gateway follows the ledger: readiness, balances, reservations and fills. */
import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { limitsSchema } from '../../../server/read/limits.js';
import { startReadServer } from '../../support/api/read-server.js';
import { addGeneration, addressOf, clientOf, deposit, fillOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { USDC, WETH, WETH_USDC } from '../../support/markets.js';

const CLOID = '0xabcdef0123456789abcdef0123456789';

forEachGateway('inventory at the order gateway', (suite) => {
  const { start, act } = suite;

  it('refuses new orders while the ledger is not ready, and cancels', async () => {
    const { ready } = await start();
    await act(1, orderAction(limit(true, '2500', '0.1')));
    ready.reason = 'ledger_stale';
    const reply = await act(1, orderAction(limit(true, '2500', '0.1')));
    expect(reply.response.data.statuses).to.deep.equal([{ error: 'not_ready: The ledger is not ready: ledger_stale' }]);
    const canceled = await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
    expect(canceled.response.data.statuses).to.deep.equal(['success']);
  });

  it('takes an order that a deposit backs as soon as the limits of its maker show the deposit, however slowly it follows', async () => {
    const { gateway } = await start({ pollMs: 60_000 });
    await until(() => gateway.generation() === 1);
    const server = await startReadServer(suite.db, [...gateway.markets()], {
      inventoryRevision: gateway.generation,
      untilApplied: gateway.untilApplied,
    });
    try {
      await addGeneration(suite.db, { entries: deposit('more', addressOf(1), WETH.address, 10n ** 18n) });
      const { ledger } = limitsSchema.parse((await server.get(`/v0/makers/${addressOf(1)}/limits`)).body);
      expect(ledger.balances[0]).to.include({ token: 'WETH', available: '11' });
      expect([ledger.inventory_revision, ledger.durable_inventory_revision]).to.deep.equal([2, 2]);
      const reply = await act(1, orderAction(limit(false, '2600', '10.5')));
      expect(reply.response.data.statuses).to.deep.equal([{ resting: { oid: 1 } }]);
    } finally {
      await server.close();
    }
  });

  it('follows deposits, reservations and fills of durable generations', async () => {
    const { gateway, url } = await start();
    const { info, user } = clientOf(url, 1);
    const ask = limit(false, '2600', '10.5', { c: CLOID });
    expect((await act(1, orderAction(ask))).response.data.statuses[0].error).to.match(/^inventory_exceeded/);
    await addGeneration(suite.db, { entries: deposit('more', addressOf(1), WETH.address, 10n ** 18n) });
    gateway.onGeneration();
    await until(() => gateway.generation() === 2);
    expect((await act(1, orderAction(ask))).response.data.statuses).to.deep.equal([
      { resting: { oid: 1, cloid: CLOID } },
    ]);

    const order = gateway.book().order(1);
    if (order === undefined) throw new Error('no order');
    await addGeneration(suite.db, fillOf(WETH_USDC, order, 4n * 10n ** 18n + 5n, 1));
    await until(() => gateway.generation() === 3);
    expect((await info.openOrders({ user }))[0]).to.deep.include({ sz: '6.499999999999999995', origSz: '10.5' });
    expect((await info.l2Book({ coin: '@0' }))?.levels[1]).to.deep.equal([{ px: '2600.0', sz: '6.4999', n: 1 }]);
    expect((await act(1, orderAction(limit(false, '2600', '0.5001')))).response.data.statuses[0].error).to.match(
      /^inventory/,
    );
    expect((await act(1, orderAction(limit(false, '2600', '0.4999')))).status).to.equal('ok');
    const [fill] = await info.userFills({ user });
    expect(fill).to.deep.include({
      coin: '@0',
      px: '2600.0',
      sz: '4.000000000000000005',
      side: 'A',
      startPosition: '11.0',
      dir: 'Sell',
      oid: 1,
      crossed: false,
      fee: '0.0',
      feeToken: 'USDC',
      cloid: CLOID,
    });
    expect(fill?.tid).to.satisfy(Number.isSafeInteger);

    await addGeneration(suite.db, fillOf(WETH_USDC, order, 65n * 10n ** 17n - 5n, 2));
    await until(() => gateway.generation() === 4);
    const status = await info.orderStatus({ user, oid: 1 });
    expect(status).to.have.nested.property('order.status', 'filled');
    expect(status).to.have.nested.property('order.statusTimestamp', 1_700_000_000_002);
    expect(status).to.have.nested.property('order.order.sz', '0.0');
    await addGeneration(suite.db, {
      reservations: [{ account: addressOf(1), token: USDC.address, deltaUnits: 29_000n * 10n ** 6n }],
    });
    await until(() => gateway.generation() === 5);
    expect((await info.spotClearinghouseState({ user })).balances[1]).to.deep.include({
      total: '57299.999999',
      hold: '29000.0',
    });
    expect((await act(1, orderAction(limit(true, '2500', '11.32')))).response.data.statuses[0].error).to.match(
      /^inventory/,
    );
    expect((await act(1, orderAction(limit(true, '2500', '11.3199')))).response.data.statuses[0]).to.have.property(
      'resting',
    );
  });

  it('closes the worst orders that the inventory no longer backs, and reduces the last one', async () => {
    const { gateway, url } = await start();
    const dear = { ...limit(false, '2600', '2'), a: 10001 };
    await act(1, orderAction(limit(false, '2600', '3'), limit(false, '2700', '4'), dear, limit(true, '2500', '1')));
    await act(2, orderAction(limit(false, '2600', '9')));
    const reserve = (weth: bigint) =>
      addGeneration(suite.db, {
        reservations: [{ account: addressOf(1), token: WETH.address, deltaUnits: weth * 10n ** 18n }],
      });
    await reserve(1n);
    await until(() => gateway.generation() === 2);
    await gateway.idle();
    expect(gateway.book().openOrders(addressOf(1))).to.have.length(4);
    const left = () =>
      gateway
        .book()
        .openOrders(addressOf(1))
        .map((order) => [order.oid, order.sizeLots]);
    await reserve(3n);
    await until(() => gateway.book().order(2)?.sizeLots === 10_000n);
    expect(left()).to.deep.equal([
      [1, 30_000n],
      [2, 10_000n],
      [3, 20_000n],
      [4, 10_000n],
    ]);
    await reserve(5n);
    await until(() => gateway.book().openOrders(addressOf(1)).length === 2);
    expect(left()).to.deep.equal([
      [1, 10_000n],
      [4, 10_000n],
    ]);
    expect(gateway.book().openOrders(addressOf(2))).to.have.length(1);
    const { info, user } = clientOf(url, 1);
    expect(await info.orderStatus({ user, oid: 2 })).to.have.nested.property('order.status', 'canceled');
    const rows = await readOrderRows(suite.db.knex, { after: 2, limit: 10 });
    expect(rows.map((row) => [row.kind, row.signer, row.nonce])).to.deep.equal([
      ['close', null, null],
      ['close', null, null],
    ]);
  });
});
