/** What hands over to a gateway that hangs, and to one at an IPv6 address. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createRelay } from '../../../server/relay.js';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const options = { timeoutMs: 1_000, maxWaiting: 10, monotonicMs: () => performance.now(), logger: silent };

const MAKER = '0x1111111111111111111111111111111111111111';
const body = (action: number) => ({ action, nonce: 1, x: 'is left out' });

describe('what a standby hands over, where the active gateway does not go by itself', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function serve(host: string, handle: (request: IncomingMessage, response: ServerResponse) => void) {
    const server = createServer(handle);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    const { port } = server.address() as AddressInfo;
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  it('goes to the next owner after one that hangs, whose connections the kernel still takes', async () => {
    let hangs = false;
    const hung = await serve('127.0.0.1', (asked, response) => {
      if (hangs) return;
      response.end(asked.url === '/active' ? '{}' : '{"status":"ok"}');
    });
    let took = false;
    const next = await serve('127.0.0.1', (asked, response) => {
      if (asked.url === '/active') response.statusCode = took ? 200 : 503;
      response.end('{"status":"ok","by":"next"}');
    });
    const relay = createRelay({ urls: [hung, next], ...options });
    await relay.action(body(1), MAKER, undefined);
    hangs = true;
    took = true;
    const said: string[] = [];
    for (let i = 0; i < 3; i += 1)
      said.push(
        await relay.action(body(2), MAKER, undefined).then(
          (reply) => JSON.stringify(reply),
          (error: { code?: string }) => String(error.code),
        ),
      );
    expect(said[0], 'the first may have been stored').to.equal('outcome_unknown');
    expect(said.slice(1), 'the others go to the one that took over').to.deep.equal(
      Array(2).fill('{"status":"ok","by":"next"}'),
    );
  });

  it('reaches a gateway by an IPv6 address', async () => {
    const url = await serve('::1', (_, response) => response.end('{"status":"ok"}'));
    const relay = createRelay({ urls: [new URL(url).origin], ...options });
    expect(await relay.action(body(1), MAKER, undefined)).to.deep.equal({ status: 'ok' });
  });
});
