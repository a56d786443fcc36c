import { WebSocketTransport, ExchangeClient, InfoClient, SubscriptionClient } from '@nktkas/hyperliquid';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { ethers } from 'ethers';
import { WebSocket } from 'ws';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { addressOf, keyOf, signRequest } from '../../support/gateway.js';
import { limit, orderAction, until, withGateway } from '../../support/gateway-suite.js';
import type { WsClient } from '../../support/ws.js';
import { ETHER, socketsOf } from '../../support/api/stream-clients.js';

withGateway('WebSocket', (suite) => {
  const { clients, connect, on, place, fill } = socketsOf(suite);

  it('answers pings, queries and actions, and greets nobody', async () => {
    await suite.start();
    const client = await connect();
    client.send({ method: 'ping' });
    expect(await client.take(() => true)).to.deep.equal({ channel: 'pong' });
    expect(await client.post('info', { type: 'perpDexs' })).to.deep.equal({
      type: 'info',
      payload: { type: 'perpDexs', data: [null] },
    });
    const action = signRequest(orderAction(limit(true, '2500', '0.1')), 1, suite.nextNonce(), { source: 'b' });
    expect(await client.post('action', action)).to.deep.equal({
      type: 'action',
      payload: { status: 'ok', response: { type: 'order', data: { statuses: [{ resting: { oid: 1 } }] } } },
    });
    expect(await client.post('action', action)).to.have.nested.property('payload.status', 'err');
    expect((await client.post('info', { type: 'nothing' })).type).to.equal('error');
    expect((await client.post('action', { nonce: 1 })).type).to.equal('error');
    expect((await client.post('query' as 'info', {})).type).to.equal('error');
  });

  it('refuses actions as actions, also when it can not serve them', async () => {
    const { time } = await suite.start({ failuresPerMinute: 1 });
    time.nowMs = () => 1_700_000_000_000;
    const client = await connect();
    const noop = () => signRequest({ type: 'noop' }, 40, suite.nextNonce());
    expect(await client.post('action', noop()))
      .to.have.nested.property('payload.response')
      .that.matches(/^unknown_sig/);
    expect(await client.post('action', noop())).to.deep.equal({
      type: 'action',
      payload: {
        status: 'err',
        response: 'rate_limited: Too many failed signature recoveries, try again in 60 s',
      },
    });
  });

  it('answers what is no request, and stays', async () => {
    await suite.start();
    const client = await connect();
    for (const text of ['', '{', '[]', '"x"', '{"method":7}', '{"method":"dance"}', '{"method":"post","id":"x"}']) {
      client.send(text);
      expect((await client.take(on('error'))).data).to.equal(
        `Error parsing JSON into valid websocket request: ${text}`,
      );
    }
    client.socket.send(Buffer.from([1, 2, 3]));
    expect((await client.take(on('error'))).data).to.match(/^Error parsing JSON .*: binary message$/);
    // Deeper than a serialiser follows: nothing of it may be echoed whole.
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    for (const method of ['subscribe', 'unsubscribe']) {
      for (const subscription of [deep, `{"type":"allMids","more":${deep}}`]) {
        client.send(`{"method":"${method}","subscription":${subscription}}`);
        expect((await client.take(on('error'))).data).to.match(/^Error parsing JSON .*: \{"method":"(un)?subscribe"/);
      }
    }
    client.send({ method: 'ping' });
    await client.take(on('pong'));
  });

  it('gives a fast book its best five levels, gathered or not, beside a whole one', async () => {
    await suite.start();
    const bids = Array.from({ length: 7 }, (_, i) => limit(true, `${2490 - i}.5`, '1'));
    await suite.act(1, orderAction(...bids, limit(false, '2600', '1')));
    const levelsOf = async (subscription: object) => {
      const client = await connect();
      await client.subscribe({ type: 'l2Book', coin: '@0', ...subscription });
      const { fast, levels } = (await client.take(on('l2Book'))).data;
      return [fast, levels.map((side: { px: string }[]) => side.map(({ px }) => px))];
    };
    const best = ['2490.5', '2489.5', '2488.5', '2487.5', '2486.5'];
    expect(await levelsOf({ fast: true })).to.deep.equal([true, [best, ['2600.0']]]);
    expect(await levelsOf({ fast: false })).to.deep.equal([undefined, [[...best, '2485.5', '2484.5'], ['2600.0']]]);
    const gathered = ['2490.0', '2489.0', '2488.0', '2487.0', '2486.0'];
    expect(await levelsOf({ fast: true, nSigFigs: 4 })).to.deep.equal([true, [gathered, ['2600.0']]]);
    const client = await connect();
    expect((await client.subscribe({ type: 'l2Book', coin: '@0', fast: 5 })).data).to.match(/^Invalid subscription/);
  });

  it('acknowledges subscriptions as they were sent, before their data, and each once', async () => {
    await suite.start();
    const client = await connect();
    const user = addressOf(1).toUpperCase().replace('0X', '0x');
    const requests = [
      { type: 'l2Book', coin: '@0', nSigFigs: null, mantissa: null, fast: false },
      { type: 'userFills', user, aggregateByTime: false },
      { type: 'orderUpdates', user, anything: 1 },
      { type: 'allMids' },
    ];
    for (const subscription of requests) {
      expect(client.frames.filter(on(subscription.type)), 'data before the subscription').to.deep.equal([]);
      const acknowledged = await client.subscribe(subscription);
      expect(acknowledged).to.deep.equal({
        channel: 'subscriptionResponse',
        data: { method: 'subscribe', subscription },
      });
      const dataAt = client.frames.findIndex(on(subscription.type));
      expect(dataAt === -1 || dataAt > client.frames.indexOf(acknowledged), 'data before the answer').to.equal(true);
      expect((await client.subscribe(subscription)).data).to.equal(
        `Already subscribed: ${JSON.stringify(subscription)}`,
      );
    }
    expect((await client.subscribe({ type: 'l2Book', coin: '@0' })).data).to.match(/^Already subscribed/);
    expect((await client.take(on('allMids'))).data).to.deep.equal({ mids: {} });
    expect((await client.take(on('userFills'))).data).to.deep.equal({
      isSnapshot: true,
      user: addressOf(1),
      fills: [],
    });
    const unsubscribed = { type: 'userFills', user: addressOf(1) };
    expect((await client.unsubscribe(unsubscribed)).data).to.deep.equal({
      method: 'unsubscribe',
      subscription: unsubscribed,
    });
    expect((await client.unsubscribe(unsubscribed)).data).to.equal(
      `Already unsubscribed: ${JSON.stringify(unsubscribed)}`,
    );
    const invalid = [
      { type: 'l2Book', coin: '@0', nSigFigs: 6 },
      { type: 'l2Book', coin: '@0', nSigFigs: 4, mantissa: 2 },
      { type: 'l2Book', coin: '@0', mantissa: 2 },
      { type: 'l2Book', coin: '@7' },
      { type: 'webData2', user },
      { type: 'orderUpdates', user: '0x1' },
      { type: 'allMids', dex: 'other' },
      { type: 'candle', coin: '@0', interval: '6h' },
      { type: 'trades', coin: '@7' },
      { type: 5 },
    ];
    for (const subscription of invalid) {
      expect((await client.subscribe(subscription)).data).to.equal(
        `Invalid subscription ${JSON.stringify(subscription)}`,
      );
    }
  });

  it('pushes the whole book and the mids after a change, and again from time to time', async () => {
    await suite.start({}, { repeatMs: 100 });
    const client = await connect();
    await client.subscribe({ type: 'l2Book', coin: '@0' });
    await client.subscribe({ type: 'allMids' });
    expect((await client.take(on('l2Book'))).data.levels).to.deep.equal([[], []]);
    const orders = Array.from({ length: 25 }, (_, index) => limit(true, `${2500 - index}`, '0.1'));
    await place(1, ...orders, limit(false, '2600', '1'));
    const filled = await client.take((frame) => frame.channel === 'l2Book' && frame.data.levels[0].length > 0);
    expect(filled.data.coin).to.equal('@0');
    expect(filled.data.levels[0]).to.have.length(20);
    expect(filled.data.levels[0][19]).to.deep.equal({ px: '2481.0', sz: '0.1', n: 1 });
    expect(filled.data.levels[1]).to.deep.equal([{ px: '2600.0', sz: '1.0', n: 1 }]);
    expect((await client.take((frame) => frame.channel === 'allMids' && '@0' in frame.data.mids)).data).to.deep.equal({
      mids: { '@0': '2550.0' },
    });
    const again = await client.take((frame) => frame.channel === 'l2Book' && frame.data.time > filled.data.time);
    expect(again.data.levels).to.deep.equal(filled.data.levels);
    await client.unsubscribe({ type: 'l2Book', coin: '@0' });
    const count = client.frames.filter(on('l2Book')).length;
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(client.frames.filter(on('l2Book')).length).to.equal(count);
  });

  it('holds its limits, each with its own answer', async () => {
    await suite.start({}, { maxConnections: 2, maxPendingPosts: 2 });
    const client = await connect();
    for (let index = 100; index < 132; index += 1) {
      expect((await client.subscribe({ type: 'orderUpdates', user: addressOf(index) })).channel).to.equal(
        'subscriptionResponse',
      );
    }
    const more = { type: 'orderUpdates', user: addressOf(150) };
    expect((await client.subscribe(more)).data).to.equal(`Invalid subscription ${JSON.stringify(more)}`);
    await client.unsubscribe({ type: 'orderUpdates', user: addressOf(100) });
    expect((await client.subscribe(more)).channel).to.equal('subscriptionResponse');

    for (const id of [1, 2, 3]) {
      client.send({
        method: 'post',
        id,
        request: { type: 'info', payload: { type: 'userFills', user: addressOf(1) } },
      });
    }
    expect((await client.take(on('error'))).data).to.equal('too many pending post requests id=3');

    const second = await connect();
    const third = new WebSocket(`${suite.running.url.replace('http', 'ws')}/ws`);
    const refused = await new Promise<string>((resolve) => third.on('error', (error) => resolve(error.message)));
    expect(refused).to.contain('503');
    const elsewhere = new WebSocket(`${suite.running.url.replace('http', 'ws')}/other`);
    expect(await new Promise<string>((resolve) => elsewhere.on('error', (error) => resolve(error.message)))).to.contain(
      '404',
    );
    second.send(' '.repeat(1024 * 1024 + 1));
    expect((await second.closed).code).to.equal(1009);
  });

  it('closes who says nothing, and counts protocol pings', async () => {
    const { time } = await suite.start();
    const nowMs = Date.now();
    const silent = await connect();
    const pinging = await connect();
    time.nowMs = () => nowMs + 59_000;
    pinging.socket.ping();
    await new Promise((resolve) => pinging.socket.once('pong', resolve));
    time.nowMs = () => nowMs + 61_000;
    expect(await silent.closed).to.deep.equal({ code: 4000, reason: 'no message for too long' });
    expect(pinging.socket.readyState).to.equal(WebSocket.OPEN);
  });

  /** Lets the server write until it gives up the client, which has a feed session and does not read. */
  async function stall(client: WsClient): Promise<void> {
    await place(1, ...Array.from({ length: 500 }, () => limit(true, '2500', '0.0001')));
    await client.post('action', signRequest({ type: 'noop' }, 1, suite.nextNonce()));
    client.socket.pause();
    const request = { type: 'info', payload: { type: 'frontendOpenOrders', user: addressOf(1) } };
    // One after the other, so that the buffers of both ends are full, too.
    await until(() => {
      client.send({ method: 'post', id: 1_000, request });
      return !suite.running.sessions.isOpen(addressOf(1));
    });
  }
  const SMALL = { highWaterBytes: 65_536, maxQueueBytes: 262_144 };

  it('tells a client that did not read in time so, and does nothing more for it', async () => {
    await suite.start({}, SMALL);
    const client = await connect();
    const reading = await connect();
    await stall(client);
    const rows = await readOrderRows(suite.db.knex, { after: 0, limit: 10 });
    client.send({
      method: 'post',
      id: 1,
      request: { type: 'action', payload: signRequest({ type: 'noop' }, 1, suite.nextNonce()) },
    });
    await delay(1_500);
    client.socket.resume();
    expect(await client.closed).to.deep.equal({ code: 4001, reason: 'output queue full' });
    expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.deep.equal(rows);
    reading.send({ method: 'ping' });
    await reading.take(on('pong'));
  });

  it('cuts off a client that goes on not reading', async () => {
    const { stream } = await suite.start({}, { ...SMALL, farewellMs: 200 });
    const client = await connect();
    await stall(client);
    await until(() => stream.connections() === 0);
    client.socket.resume();
    expect((await client.closed).code).to.equal(1006);
  });

  it('holds a feed session for as long as a connection lives over which the maker acted', async () => {
    const { sessions } = await suite.start();
    const client = await connect();
    expect(sessions.isOpen(addressOf(1))).to.equal(false);
    await client.post('action', signRequest({ type: 'noop' }, 40, suite.nextNonce()));
    await client.post('action', signRequest({ type: 'noop' }, 1, suite.nextNonce()));
    expect([sessions.isOpen(addressOf(1)), sessions.isOpen(addressOf(40))]).to.deep.equal([true, false]);
    await client.close();
    await until(() => !sessions.isOpen(addressOf(1)));
  });

  it('serves a published client', async () => {
    const { url, stream } = await suite.start();
    const transport = new WebSocketTransport({ url: `${url.replace('http', 'ws')}/ws` });
    clients.push({ close: async () => transport.close() });
    await transport.ready();
    const exchange = new ExchangeClient({ transport, wallet: new ethers.Wallet(keyOf(1)) });
    const info = new InfoClient({ transport });
    const live = new SubscriptionClient({ transport });
    const user = addressOf(1);
    const events: Record<string, unknown[]> = { orders: [], fills: [], book: [], mids: [] };
    const subscriptions = [
      await live.orderUpdates({ user }, (data) => events.orders!.push(...data)),
      await live.userFills({ user }, (data) => events.fills!.push(data)),
      await live.l2Book({ coin: '@0' }, (data) => events.book!.push(data)),
      await live.allMids((data) => events.mids!.push(data)),
    ];
    const { response } = await exchange.order({
      orders: [limit(true, '2500', '1'), limit(false, '2600', '1')],
      grouping: 'na',
    });
    expect(response.data.statuses).to.deep.equal([{ resting: { oid: 1 } }, { resting: { oid: 2 } }]);
    expect(await info.openOrders({ user })).to.have.length(2);
    await fill(1, ETHER, 1);
    await until(() => events.orders!.length >= 3 && events.fills!.length >= 2 && events.mids!.length >= 2);
    expect(events.fills!.map((one) => (one as { fills: unknown[] }).fills.length)).to.deep.equal([0, 1]);
    await until(() => events.book!.length >= 2);
    let refusal = '';
    await live.l2Book({ coin: '@9' }, () => undefined).catch((error: Error) => (refusal = error.message));
    expect(refusal).to.match(/^Invalid subscription/);
    await exchange.cancel({ cancels: [{ a: 10000, o: 7 }] }).catch((error: Error) => (refusal = error.message));
    expect(refusal).to.contain('order_not_found');
    for (const subscription of subscriptions) await subscription.unsubscribe();
    expect(stream.connections()).to.equal(1);
  });
});
