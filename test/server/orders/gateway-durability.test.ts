/** What the order gateway says before, after and without a commit, after a restart, and beside another process. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { collectOrders, restartOrderLog } from '../../../ledger/orders/restore.js';
import type { Writer } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import {
  addGeneration,
  addressOf,
  fillOf,
  post,
  signRequest,
  startGateway,
  type RunningGateway,
} from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import { connectWs } from '../../support/ws.js';

const CLOID = '0xabcdef0123456789abcdef0123456789';

forEachGateway('durability of the order gateway', (suite) => {
  const { start, act } = suite;

  it('comes to the same state after a restart', async () => {
    const { gateway } = await start();
    await act(
      1,
      orderAction(limit(true, '2500', '1', { c: CLOID }), limit(false, '2600', '2'), limit(true, '2400', '0.5')),
    );
    await act(2, orderAction(limit(true, '2500', '0.7'), { ...limit(true, '2300', '1'), a: 10001 }));
    await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 3 }] });
    const order = gateway.book().order(2);
    if (order === undefined) throw new Error('no order');
    await addGeneration(suite.db, fillOf(WETH_USDC, order, 10n ** 18n + 1n, 1));
    await until(() => gateway.generation() === 2);
    const view = ({ gateway: one }: RunningGateway) => ({
      orders: [1, 2].map((index) => one.book().openOrders(addressOf(index))),
      levels: [0, 1].flatMap((market) => [one.book().levels(market, 'bid'), one.book().levels(market, 'ask')]),
      exposure: [1, 2].map((index) => [...one.book().exposureUnits(addressOf(index))].sort()),
      nonces: [1, 2].map((index) => [...one.book().nonces(addressOf(index))].sort()),
      oid: one.book().lastOid(),
      seq: one.book().lastOrderSeq(),
      statuses: [1, 2, 3, 4].map((oid) => one.order(oid)),
      lastActionMs: one.lastActionMs(addressOf(2)),
    });
    const before = view(suite.running);
    expect(before.orders[0]).to.have.length(2);
    expect(before.levels[0]).to.deep.equal([{ priceTicks: 250_000n, lots: 17_000n, orders: 2 }]);
    expect(view(await suite.restart())).to.deep.equal(before);
    expect((await act(1, orderAction(limit(true, '2400', '0.5')))).response.data.statuses).to.deep.equal([
      { resting: { oid: before.oid + 1 } },
    ]);
  });

  it('begins anew behind what a lost database knew: new numbers, no open orders, no old nonces', async () => {
    await start();
    const open = await act(1, orderAction(limit(true, '2500', '1', { c: CLOID })));
    const { oid } = open.response.data.statuses[0].resting as { oid: number };
    await suite.running.stop();
    const writer = await acquireWriter(suite.db, 'order');
    const nowMs = Date.now() + 1_000;
    const highs = { orderSeq: 40, oid: 70 };
    const restart = { highs, orders: collectOrders(), operator: addressOf(9), nowMs, closedOrders: 10 };
    expect(await restartOrderLog(writer, restart)).to.deep.equal({ closed: 1, makers: 1 });
    await writer.release();
    const { gateway, url } = await suite.restart();
    expect(gateway.book().lastOrderSeq()).to.equal(43);
    expect(gateway.order(oid)?.state).to.equal('canceled');
    // It was acknowledged in the part that is lost, so that nothing but its time tells.
    const replayed = await post(`${url}/exchange`, signRequest(orderAction(limit(true, '2400', '1')), 1, nowMs));
    expect(JSON.stringify(replayed.json)).to.match(/nonce too low/);
    expect(gateway.book().openOrders(addressOf(1))).to.deep.equal([]);
    const reply = await act(1, orderAction(limit(true, '2400', '1')), { nonce: nowMs + 1 });
    expect(reply.response.data.statuses[0].resting.oid).to.be.greaterThan(70 + oid);
  });

  it('acknowledges after the commit and shows nothing before', async () => {
    let commit: () => void = () => undefined;
    let arrived = 0;
    const held = (writer: Writer): Writer => ({
      ...writer,
      tx: (write) =>
        writer.tx(async (tx) => {
          const result = await write(tx);
          arrived += 1;
          await new Promise<void>((resolve) => {
            commit = resolve;
          });
          return result;
        }),
    });
    // Books that did not change are not pushed again meanwhile, however long this takes.
    const { gateway, url } = await start({}, { repeatMs: 600_000 }, held);
    const client = await connectWs(url);
    for (const type of ['orderUpdates', 'l2Book']) await client.subscribe({ type, coin: '@0', user: addressOf(1) });
    await client.take(({ channel }) => channel === 'l2Book');
    let answered = false;
    const reply = act(1, orderAction(limit(true, '2500', '1'))).then((json) => {
      answered = true;
      return json;
    });
    await until(() => arrived === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(answered).to.equal(false);
    const pushed = () => client.frames.map(({ channel }) => channel).filter((one) => one !== 'subscriptionResponse');
    expect(pushed()).to.deep.equal(['l2Book']);
    expect((await post(`${url}/info`, { type: 'openOrders', user: addressOf(1) })).json).to.deep.equal([]);
    expect(gateway.book().levels(0, 'bid')).to.deep.equal([]);
    commit();
    expect((await reply).status).to.equal('ok');
    expect(gateway.book().openOrders(addressOf(1))).to.have.length(1);
    await until(() => pushed().length === 3);
    expect(pushed()).to.deep.equal(['l2Book', 'orderUpdates', 'l2Book']);
    await client.close();
  });

  it('acknowledges nothing that a failed commit lost, and goes on', async () => {
    let failures = 0;
    await start({}, {}, (writer) => ({
      ...writer,
      tx: (write) =>
        writer.tx(async (tx) => {
          const result = await write(tx);
          if (failures-- > 0) throw new Error('disk full');
          return result;
        }),
    }));
    await act(1, orderAction(limit(true, '2500', '1')));
    failures = 1;
    const request = signRequest(orderAction(limit(false, '2600', '1')), 1, suite.nextNonce());
    const failed = await post(`${suite.running.url}/exchange`, request);
    expect([failed.status, failed.text]).to.deep.equal([503, 'write_failed: Nothing of the action was stored']);
    expect(suite.running.gateway.book().openOrders(addressOf(1))).to.have.length(1);
    expect((await post(`${suite.running.url}/exchange`, request)).json.response.data.statuses).to.deep.equal([
      { resting: { oid: 2 } },
    ]);
    failures = 1;
    const replies = await Promise.all([1, 2, 3].map(() => act(1, orderAction(limit(false, '2700', '0.1')))));
    expect(replies.filter((reply) => reply?.status === 'ok').length).to.be.greaterThan(1);
    const rows = await readOrderRows(suite.db.knex, { after: 0, limit: 100 });
    expect(rows.map((row) => row.orderSeq)).to.deep.equal(rows.map((_, index) => index + 1));
    expect(suite.running.gateway.book().lastOrderSeq()).to.equal(rows.length);
  });

  it('gives concurrent requests distinct ids in the order of the log', async () => {
    await start();
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, index) => act(1 + (index % 2), orderAction(limit(true, '2500', '0.01')))),
    );
    const oids = replies.map((reply) => reply.response.data.statuses[0].resting.oid as number);
    expect([...oids].sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 60 }, (_, index) => index + 1));
    const rows = await readOrderRows(suite.db.knex, { after: 0, limit: 100 });
    expect(rows.flatMap((row) => row.effects.map((effect) => effect.type === 'open' && effect.oid))).to.deep.equal(
      [...oids].sort((a, b) => a - b),
    );
  });

  it('serves what another process accepts while on standby, and sends actions away', async () => {
    await start();
    const own = await suite.open();
    const standby = await startGateway(own, null);
    try {
      const url = `${standby.url}/info`;
      const ask = async () => (await post(url, { type: 'openOrders', user: addressOf(1) })).json as { oid: number }[];
      expect(await ask()).to.deep.equal([]);
      await act(1, orderAction(limit(true, '2500', '1')));
      const deadlineMs = performance.now() + 20_000;
      while ((await ask()).length === 0 && performance.now() < deadlineMs) await delay(10);
      expect((await ask()).map(({ oid }) => oid)).to.deep.equal([1]);
      const order = signRequest(orderAction(limit(true, '2500', '1')), 1, suite.nextNonce());
      const answer = await post(`${standby.url}/exchange`, order);
      expect([answer.status, answer.text.split(':')[0]]).to.deep.equal([503, 'standby']);
      expect(standby.gateway.isActive()).to.equal(false);
      expect((await post(`${standby.url}/exchange`, { action: 1 })).status).to.equal(422);
      expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.have.length(1);
      await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
      while ((await ask()).length > 0 && performance.now() < deadlineMs) await delay(10);
      expect(await ask()).to.deep.equal([]);
    } finally {
      await standby.stop();
      await own.close();
    }
  });

  it('accepts nothing once another process owns the log', async function () {
    const { gateway, url } = await start();
    await act(1, orderAction(limit(true, '2500', '1')));
    if (suite.kind === 'pg') {
      await suite.db.knex('writers').where({ log: 'order' }).increment('epoch', 1);
    } else {
      const other = await suite.open();
      await acquireWriter(other, 'order');
      await other.close();
    }
    const answer = await post(
      `${url}/exchange`,
      signRequest(orderAction(limit(true, '2500', '1')), 1, suite.nextNonce()),
    );
    expect([answer.status, answer.text.split(':')[0]]).to.deep.equal([503, 'standby']);
    expect(gateway.isActive()).to.equal(false);
    expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.have.length(1);
  });
});
