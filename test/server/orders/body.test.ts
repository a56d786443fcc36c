import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { expect } from 'chai';
import { readJsonBody } from '../../../server/orders/body.js';
import { MAX_BODY_BYTES } from '../../../server/orders/limits.js';

const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

describe('the body of a request', () => {
  let server: Server;
  let read: Promise<unknown>;

  beforeEach(async () => {
    read = new Promise((resolve, reject) => {
      server = createServer((request, response) => {
        readJsonBody(request).then(resolve, reject);
        response.on('error', () => undefined);
      });
    });
    read.catch(() => undefined);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  async function client(text: string): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(text);
    return socket;
  }

  const outcome = (): Promise<unknown> => read.catch((error: unknown) => (error as Error).message);

  it('is read whole when it comes in parts', async () => {
    const socket = await client(`${HEAD}Content-Length: 10\r\n\r\n{"a":`);
    setTimeout(() => socket.write('"ü"}'), 20);
    expect(await outcome()).to.deep.equal({ a: 'ü' });
  });

  it('has ended early when the client goes away', async () => {
    const socket = await client(`${HEAD}Content-Length: 50\r\n\r\n{"a":`);
    await once(server, 'request');
    socket.resetAndDestroy();
    expect(await outcome()).to.equal('The request body ended early');
  });

  it('has ended early when its framing is broken', async () => {
    await client(`${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
    expect(await outcome()).to.equal('The request body ended early');
  });

  it('is refused at once when its length says that it is too long', async () => {
    await client(`${HEAD}Content-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`);
    expect(await outcome()).to.equal('The request body is longer than 1048576 bytes');
  });

  it('is read on beyond the limit, and cut off far beyond it', async () => {
    const socket = await client(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const part = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(MAX_BODY_BYTES, ' '), Buffer.from('\r\n')]);
    const send = (): Promise<unknown> => new Promise((resolve) => socket.write(part, resolve));
    for (let sent = 0; sent < 2; sent += 1) await send();
    expect(await outcome()).to.equal('The request body is longer than 1048576 bytes');
    for (let sent = 2; sent < 60; sent += 1) expect(await send()).to.be.oneOf([null, undefined]);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    for (let sent = 60; sent < 80; sent += 1) socket.write(part);
    await closed;
  });
});
