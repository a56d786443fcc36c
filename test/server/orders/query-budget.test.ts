/** What nobody signs is bounded by address, and no signed action is refused for it. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { expect } from 'chai';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { answerWeight, queryWeight } from '../../../server/orders/info/weights.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';
import { addressOf, post, signRequest } from '../../support/gateway.js';
import { connectWs, type Frame } from '../../support/ws.js';

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
});
