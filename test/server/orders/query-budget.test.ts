/** What nobody signs is bounded by address, and no signed action is refused for it. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { expect } from 'chai';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';
import { addressOf, post, signRequest } from '../../support/gateway.js';
import { connectWs, type Frame } from '../../support/ws.js';

const PER_MINUTE = 40;

withGateway('Queries and messages that nobody signs', (suite) => {
  const on = (channel: string) => (frame: Frame) => frame.channel === channel;
  const isLimited = (frame: Frame): boolean => /^rate_limited: .* in \d+ s$/.test(String(frame.data));
  const start = () => suite.start({}, {}, undefined, PER_MINUTE);
  const query = (url: string) => post(`${url}/info`, { type: 'meta' });
  const order = (price: string) => signRequest(orderAction(limit(true, price, '0.01')), 1, suite.nextNonce());

  async function spend(url: string): Promise<void> {
    for (let i = 0; i < PER_MINUTE; i++) expect((await query(url)).status).to.equal(200);
  }

  it('are refused beyond the budget of their address until its window ends, and orders are not', async () => {
    const { url, time } = await start();
    const startMs = Date.now();
    time.nowMs = () => startMs;
    await spend(url);
    const refused = await fetch(`${url}/info`, {
      method: 'POST',
      body: '{"type":"meta"}',
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

  it('cost more when the answer is long', async () => {
    const { url } = await start();
    for (let i = 0; i < 33; i++) await post(`${url}/exchange`, order(`${2400 - i}`));
    // Each over a connection of its own: what a maker has signed over is not counted.
    const ask = async (): Promise<{ status: number; length: number }> => {
      const asked = request(`${url}/info`, {
        agent: false,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      asked.end(JSON.stringify({ type: 'frontendOpenOrders', user: addressOf(1) }));
      const [response] = (await once(asked, 'response')) as [AsyncIterable<Buffer> & { statusCode: number }];
      let length = 0;
      for await (const chunk of response) length += chunk.length;
      return { status: response.statusCode, length };
    };
    const first = await ask();
    expect(first.length).to.be.within(8 * 1024, 16 * 1024);
    let answered = 1;
    while (answered < PER_MINUTE && (await ask()).status === 200) answered += 1;
    expect(answered).to.equal(PER_MINUTE / 2);
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
    expect(await client.post('info', { type: 'meta' })).to.have.property('type', 'info');
    // One for the ping, twenty for the fills, one or two for each of those.
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
