/** No address has all connections to itself. */
import { once } from 'node:events';
import { connect as connectTo, type Socket } from 'node:net';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { listenOn, type Listening } from '../../../server/listen.js';
import { STREAM_LIMITS } from '../../../server/stream/limits.js';
import { serveStream, type Stream } from '../../../server/stream/server.js';
import { createSessions } from '../../../server/stream/sessions.js';
import { until } from '../../support/gateway-suite.js';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe('WebSocket connections of an address', () => {
  let listening: Listening;
  let stream: Stream;
  const clients: WebSocket[] = [];

  beforeEach(async () => {
    listening = await listenOn((_request, response) => void response.end(), {
      port: 0,
      host: '127.0.0.1',
      portSetting: 'PORT',
    });
    const gateway = { listen: () => () => undefined, markets: () => [], generation: () => 0 };
    const clock = Date.now;
    stream = serveStream({
      server: listening.server,
      ...{
        gateway,
        info: { gateway, clock },
        platform: {},
        swapOrders: null,
        sessions: createSessions(),
        logger: silent,
      },
      ...{ clock, trustProxy: true, limits: { maxConnections: 5, maxConnectionsPerAddress: 2 } },
    } as unknown as Parameters<typeof serveStream>[0]);
  });

  afterEach(async () => {
    clients.splice(0).forEach((client) => client.terminate());
    await stream.close();
    await listening.close();
  });

  /** Connects as a proxy does for a client; the status of the answer, 101 for a connection. */
  async function connect(address: string): Promise<{ client: WebSocket; status: number; text: string }> {
    const url = `${listening.url.replace('http', 'ws')}/ws`;
    const client = new WebSocket(url, { headers: { 'x-forwarded-for': `203.0.113.9, ${address}` } });
    clients.push(client);
    client.on('error', () => undefined);
    return new Promise((resolve) => {
      client.once('open', () => resolve({ client, status: 101, text: '' }));
      client.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ client, status: response.statusCode ?? 0, text }));
      });
    });
  }

  it('are a part of all, and others still get theirs', async () => {
    expect(STREAM_LIMITS.maxConnectionsPerAddress * 4).to.equal(STREAM_LIMITS.maxConnections);
    const first = await connect('2001:db8::1');
    expect([first.status, (await connect('2001:db8::2')).status]).to.deep.equal([101, 101]);
    const { status, text } = await connect('2001:db8::3');
    expect([status, text]).to.deep.equal([503, 'More than 2 connections of one address']);
    expect((await connect('198.51.100.1')).status).to.equal(101);
    first.client.close();
    await once(first.client, 'close');
    await until(() => stream.connections() === 2);
    expect((await connect('2001:db8::3')).status).to.equal(101);
    expect((await connect('2001:db8::4')).status).to.equal(503);
    expect((await connect('2001:db8:0:1::1')).status).to.equal(101);
    expect((await connect('198.51.100.2')).status).to.equal(101);
    expect((await connect('198.51.100.3')).text).to.equal('More than 5 connections');
  });

  /** A wish for a connection by hand, whose client keeps its own end open. */
  function wish(address: string, ...headers: string[]): Socket {
    const socket = connectTo({ port: listening.port, host: '127.0.0.1', allowHalfOpen: true });
    const all = ['Host: here', 'Connection: Upgrade', 'Upgrade: websocket', `X-Forwarded-For: ${address}`, ...headers];
    socket.write(`GET /ws HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n`);
    return socket;
  }

  it('are given back by handshakes that fail', async () => {
    for (let i = 0; i < 5; i += 1) {
      const socket = wish('198.51.100.1');
      expect(String(await once(socket, 'data'))).to.match(/^HTTP\/1\.1 400 /);
      socket.destroy();
    }
    await until(async () => (await connect('198.51.100.1')).status === 101);
  });

  it('that are refused end, also when the client keeps its end open', async () => {
    for (let i = 0; i < 2; i += 1) await connect('198.51.100.1');
    const arriving = once(listening.server, 'connection') as Promise<[Socket]>;
    const refused = wish('198.51.100.1');
    const [served] = await arriving;
    const closed = once(served, 'close');
    expect(String(await once(refused, 'data'))).to.match(/^HTTP\/1\.1 503 /);
    await closed;
    refused.destroy();
  });
});
