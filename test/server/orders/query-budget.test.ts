/** What nobody signs is bounded by address, and no signed action is refused for it. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { answerWeight, queryWeight } from '../../../server/orders/info/weights.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';
import { addressOf, post, signRequest } from '../../support/gateway.js';
import { connectWs, type Frame, type WsClient } from '../../support/ws.js';

const PER_MINUTE = 40;
/** Weighs two points. */
const SHORT = { type: 'exchangeStatus' };

withGateway('Queries and messages that nobody signs', (suite) => {
  const on = (channel: string) => (frame: Frame) => frame.channel === channel;
  const isLimited = (frame: Frame): boolean => /^rate_limited: .* in \d+ s$/.test(String(frame.data));
  const start = (perMinute = PER_MINUTE) => suite.start({}, {}, undefined, perMinute);
  const query = (url: string) => post(`${url}/info`, SHORT);
  const order = (price: string) => signRequest(orderAction(limit(true, price, '0.01')), 1, suite.nextNonce());

  /** Each over a connection of its own: what comes over one that a maker has signed over is not counted. */
  async function ask(url: string, body: object): Promise<number> {
    const headers = { 'content-type': 'application/json' };
    const asked = request(`${url}/info`, { agent: false, method: 'POST', headers });
    asked.end(JSON.stringify(body));
    const [response] = (await once(asked, 'response')) as [AsyncIterable<Buffer> & { statusCode: number }];
    for await (const chunk of response) expect(chunk.length).to.be.greaterThan(0);
    return response.statusCode;
  }

  async function spend(url: string): Promise<void> {
    for (let i = 0; i < PER_MINUTE / 2; i++) expect((await query(url)).status).to.equal(200);
  }

  it('are refused beyond the budget of their address until its window ends, and orders are not', async () => {
    const { url, time } = await start();
    const startMs = Date.now();
    time.nowMs = () => startMs;
    await spend(url);
    const refused = await fetch(`${url}/info`, {
      method: 'POST',
      body: JSON.stringify(SHORT),
      headers: { 'content-type': 'application/json' },
    });
    expect([refused.status, await refused.text(), refused.headers.get('retry-after')]).to.deep.equal([
      429,
      'null',
      '60',
    ]);
    const placed = await post(`${url}/exchange`, order('2500'));
    expect(placed.json).to.have.nested.property('response.data.statuses[0].resting');
    time.nowMs = () => startMs + 60_000;
    expect((await query(url)).status).to.equal(200);
  });

  it('weigh what the venue of this wire documents, and their rows on top', async () => {
    const listed = (type: string, rows: number): number[] => [
      queryWeight({ type }),
      answerWeight({ type }, Array<object>(rows).fill({})),
    ];
    for (const type of [
      'l2Book',
      'allMids',
      'clearinghouseState',
      'orderStatus',
      'spotClearinghouseState',
      'exchangeStatus',
    ])
      expect(listed(type, 2_000), type).to.deep.equal([2, 0]);
    expect(listed('userRole', 2_000)).to.deep.equal([60, 0]);
    const counted = [
      'recentTrades',
      'historicalOrders',
      'userFills',
      'userFillsByTime',
      'fundingHistory',
      'userFunding',
    ];
    counted.push('userNonFundingLedgerUpdates', 'twapHistory', 'userTwapSliceFills');
    for (const type of counted) {
      expect(listed(type, 2_000), type).to.deep.equal([20, 100]);
      expect(listed(type, 19), type).to.deep.equal([20, 0]);
    }
    expect(listed('candleSnapshot', 5_000)).to.deep.equal([20, 83]);
    const weighed = new Set(['l2Book', 'userRole', 'candleSnapshot', ...counted]);
    for (const type of INFO_TYPES.filter((one) => !weighed.has(one) && queryWeight({ type: one }) !== 2))
      expect(listed(type, 2_000), type).to.deep.equal([20, 0]);
    for (const body of [null, 5, {}, { type: {} }]) expect(queryWeight(body)).to.equal(20);

    // Twenty, and one for each full twenty rows of 39 orders.
    const { url } = await start(4 * 21);
    for (let i = 0; i < 39; i++) await post(`${url}/exchange`, order(`${2400 - i}`));
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push(await ask(url, { type: 'historicalOrders', user: addressOf(1) }));
    expect(statuses).to.deep.equal([200, 200, 200, 200, 429]);
  });

  it('weigh more when an order has to be searched for, and an order in memory does not', async () => {
    const { url } = await start();
    await post(`${url}/exchange`, order('2400'));
    const status = { type: 'orderStatus', user: addressOf(1) };
    const missing = `0x${'7'.repeat(32)}`;
    const statuses: number[] = [];
    for (const oid of [9_999, missing, missing]) statuses.push(await ask(url, { ...status, oid }));
    // In memory, of whomever.
    for (const user of [1, 2, 1, 2, 1]) statuses.push(await ask(url, { ...status, user: addressOf(user), oid: 1 }));
    expect(statuses).to.deep.equal(Array<number>(8).fill(200));
    expect(await ask(url, { ...status, oid: 1 })).to.equal(429);
  });

  it('over a connection whose last signature was a maker’s are its own, whoever shares the address', async () => {
    const { url } = await start();
    await spend(url);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = async (path: string, body: object): Promise<number> => {
      const asked = request(`${url}${path}`, {
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      asked.end(JSON.stringify(body));
      const [response] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }];
      response.resume();
      await once(response as never, 'end');
      return response.statusCode;
    };
    expect(await send('/info', { type: 'meta' })).to.equal(429);
    expect(await send('/exchange', order('2500'))).to.equal(200);
    expect(await send('/info', { type: 'meta' })).to.equal(200);
    agent.destroy();

    const client = await connectWs(url);
    client.send({ method: 'ping' });
    await client.take(isLimited);
    expect(await client.post('action', order('2400'))).to.have.nested.property('payload.status', 'ok');
    for (let i = 0; i < 2 * PER_MINUTE; i++) {
      client.send({ method: 'ping' });
      await client.take(on('pong'));
    }
    expect(await client.post('info', { type: 'meta' })).to.have.property('type', 'info');
    await client.close();
  });

  it('short messages are counted, too, of whatever kind, and a connection that goes on is read more slowly', async () => {
    const { url } = await start();
    const client = await connectWs(url);
    client.send({ method: 'ping' });
    await client.take(on('pong'));
    await client.subscribe({ type: 'userFills', user: addressOf(1) });
    for (const message of ['x', '{}', '[]', '{"method":"dance"}']) {
      client.send(message);
      await client.take((frame) => /^Error parsing/.test(String(frame.data)));
    }
    expect(await client.post('info', SHORT)).to.have.property('type', 'info');
    // One for the ping, twenty for the fills, one or two for each of those, two for the query.
    let pongs = 0;
    for (;;) {
      client.send({ method: 'ping' });
      const frame = await client.take((one) => on('pong')(one) || isLimited(one));
      if (isLimited(frame)) break;
      pongs += 1;
    }
    expect(pongs).to.be.within(PER_MINUTE - 30, PER_MINUTE - 24);
    const before = performance.now();
    client.send({ method: 'ping' });
    await client.take(isLimited);
    expect(performance.now() - before, 'a bound from below').to.be.greaterThan(500);
    expect(await client.post('info', { type: 'meta' })).to.deep.include({ type: 'error' });
    const answer = await client.post('action', order('2500'));
    expect(answer).to.have.nested.property('payload.status', 'ok');
    await client.close();
  });

  describe('of every kind', () => {
    const TIMES = 10;
    const isError = (frame: Frame): boolean =>
      on('error')(frame) || (on('post')(frame) && frame.data.response.type !== 'info');
    const request = (value: unknown) => (client: WsClient) => {
      client.send({ method: 'post', id: 7, request: value });
      return client.take(isError);
    };
    const stranger = (action: object) =>
      request({ type: 'action', payload: signRequest(action, 40, suite.nextNonce()) });
    const noop = (index: number) => signRequest({ type: 'noop' }, index, suite.nextNonce());
    const kinds: Record<string, (client: WsClient) => Promise<unknown>> = {
      'a binary message': (client) => {
        client.socket.send(Buffer.from([1, 2, 3]));
        return client.take(isError);
      },
      'a ping of the protocol': (client) => {
        client.socket.ping();
        return once(client.socket, 'pong');
      },
      'a pong of the protocol': async (client) => client.socket.pong(),
      'a post of nothing': request(5),
      'a post of an unknown type': request({ type: 'query', payload: {} }),
      'a query that is no object': request({ type: 'info', payload: 5 }),
      'a query that is too long': request({ type: 'info', payload: { ...SHORT, more: 'x'.repeat(16 * 1024) } }),
      'an action of another shape': request({ type: 'action', payload: { nonce: 1 } }),
      'an action that is not served': stranger({ type: 'usdSend' }),
      'an action of nobody': stranger({ type: 'noop' }),
    };

    /** How many pings an address has left. */
    async function left(client: WsClient): Promise<number> {
      for (let pongs = 0; ; pongs += 1) {
        client.send({ method: 'ping' });
        if (isLimited(await client.take((frame) => on('pong')(frame) || isLimited(frame)))) return pongs;
      }
    }

    it('take one point each', async () => {
      const { url, time } = await start();
      let nowMs = Date.now();
      time.nowMs = () => nowMs;
      const closing: Promise<void>[] = [];
      for (const [kind, send] of Object.entries(kinds)) {
        const client = await connectWs(url);
        for (let i = 0; i < TIMES; i += 1) await send(client);
        expect(await left(client), kind).to.equal(PER_MINUTE - TIMES);
        closing.push(client.close());
        nowMs += 60_000;
      }
      await Promise.all(closing);
    });

    it('take nothing over a maker’s own connection, until a signature over it is nobody’s', async () => {
      const { url } = await start();
      const client = await connectWs(url);
      expect(await client.post('action', noop(1))).to.have.nested.property('payload.status', 'ok');
      const [others, nobodys] = ['of another shape', 'of nobody'].map((what) => kinds[`an action ${what}`]!);
      for (const send of Object.values(kinds))
        if (send !== others && send !== nobodys) for (let i = 0; i < TIMES; i += 1) await send(client);
      const other = await connectWs(url);
      other.send({ method: 'ping' });
      await other.take(on('pong'));
      await nobodys!(client);
      await others!(client);
      expect(await left(other)).to.equal(PER_MINUTE - 3);
      await Promise.all([client.close(), other.close()]);
    });

    it('take the points of a query once, also when its fields are wrong', async () => {
      const { url } = await start();
      const client = await connectWs(url);
      expect(await client.post('info', { type: 'userFills', user: 5 })).to.have.property('type', 'error');
      expect(await left(client)).to.equal(PER_MINUTE - 20);
      await client.close();
    });

    it('take one point when too many posts wait for their answers', async () => {
      const { url } = await suite.start({}, { maxPendingPosts: 0 }, undefined, PER_MINUTE);
      const client = await connectWs(url);
      for (let i = 0; i < TIMES; i += 1) {
        client.send({ method: 'post', id: 7, request: { type: 'info', payload: SHORT } });
        expect((await client.take(on('error'))).data).to.equal('too many pending post requests id=7');
      }
      expect(await left(client)).to.equal(PER_MINUTE - TIMES);
      await client.close();
    });

    it('close their connection when too many of them come at once, but not a maker’s', async () => {
      const { url } = await suite.start({}, { farewellMs: 200 }, undefined, PER_MINUTE);
      const flood = (client: WsClient): void => {
        const raw = (client.socket as unknown as { _socket: Socket })._socket;
        raw.cork();
        for (let i = 0; i < PER_MINUTE + 500; i += 1) client.socket.send('{"method":"ping"}');
        raw.uncork();
      };
      const maker = await connectWs(url);
      expect(await maker.post('action', noop(1))).to.have.nested.property('payload.status', 'ok');
      const client = await connectWs(url);
      flood(client);
      flood(maker);
      expect(await client.closed).to.deep.equal({ code: 4003, reason: 'too many messages beyond the budget' });
      expect(client.frames.filter(isLimited)).to.have.length(1);
      expect(await maker.post('action', order('2500'))).to.have.nested.property('payload.status', 'ok');
      expect(maker.frames.filter(on('pong'))).to.have.length(PER_MINUTE + 500);
      await maker.close();
    });

    it('are told so, and read more slowly, beyond the budget', async () => {
      const { url } = await start();
      const client = await connectWs(url);
      await left(client);
      const sends = [
        () => client.socket.ping(),
        () => client.socket.send(Buffer.from([1, 2, 3])),
        () => client.send({ method: 'post', id: 7, request: 5 }),
      ];
      for (const send of sends) {
        const before = performance.now();
        send();
        await client.take(isLimited);
        expect(performance.now() - before, 'a bound from below').to.be.greaterThan(500);
      }
      // Once for all that had come by then.
      for (let i = 0; i < TIMES; i += 1) client.socket.ping();
      client.send({ method: 'ping' });
      await client.take(isLimited);
      expect(client.frames.filter(isLimited).length).to.be.within(5, 6);
      await client.close();
    });
  });
});
