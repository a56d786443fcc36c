import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import Router from '@koa/router';
import { expect } from 'chai';
import { createApp } from '../../server/app.js';
import { clientAddress } from '../../server/rate-limit.js';
import { badRequest } from '../../server/errors.js';
import { listen, ListenError, type Listening } from '../../server/listen.js';

interface Logged {
  fields: unknown;
  text: string | undefined;
}

describe('HTTP application', () => {
  const logged: Logged[] = [];
  const record = (fields: unknown, text?: string): void => void logged.push({ fields, text });
  let listening: Listening;

  before(async () => {
    const router = new Router();
    router.get('/big', (ctx) => void (ctx.body = { units: 2n ** 100n, list: [1n] }));
    router.get('/text', (ctx) => void (ctx.body = 'plain'));
    router.get('/bad', () => {
      throw badRequest('no good');
    });
    router.get('/boom', () => {
      throw new Error('secret detail');
    });
    router.post('/exchange', () => {
      throw new Error('secret detail');
    });
    router.post('/info', () => {
      throw badRequest('no good');
    });
    listening = await listen(createApp({ routers: [router], logger: { info: record, error: record } }), 0, '127.0.0.1');
  });

  after(() => listening.close());

  const get = (path: string, init?: RequestInit): Promise<Response> => fetch(`${listening.url}${path}`, init);

  it('writes bigints as JSON integers of full precision', async () => {
    const response = await get('/big');
    expect(response.headers.get('content-type')).to.match(/^application\/json/);
    expect(await response.text()).to.equal('{"units":1267650600228229401496703205376,"list":[1]}');
  });

  it('leaves text alone', async () => {
    const response = await get('/text');
    expect(response.headers.get('content-type')).to.match(/^text\/plain/);
    expect(await response.text()).to.equal('plain');
  });

  it('answers refusals with the error envelope', async () => {
    const response = await get('/bad');
    expect(response.status).to.equal(400);
    expect(await response.json()).to.deep.equal({ error: { code: 'BAD_REQUEST', message: 'no good' } });
  });

  it('hides unexpected errors from the caller and logs them', async () => {
    logged.length = 0;
    const response = await get('/boom');
    expect(response.status).to.equal(500);
    expect(await response.json()).to.deep.equal({ error: { code: 'INTERNAL_ERROR', message: 'Internal error' } });
    expect(logged).to.have.length(1);
    expect((logged[0]?.fields as { err: Error }).err.message).to.equal('secret detail');
  });

  it('keeps an idle connection open for longer than balancers and clients do', async () => {
    const socket = connect(listening.port, '127.0.0.1');
    const [accepted] = (await once(listening.server, 'connection')) as [Socket];
    socket.setEncoding('latin1');
    const ask = async (): Promise<string> => {
      socket.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n');
      const [answer] = (await once(socket, 'data')) as [string];
      return answer;
    };
    const first = await ask();
    expect(first).to.match(/^HTTP\/1\.1 200 [\s\S]*\r\nKeep-Alive: timeout=65\r\n/);
    // What the server's timer was set to when the connection became idle.
    expect(accepted.timeout).to.be.within(65_000, 70_000);
    expect(await ask(), 'reused').to.match(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('serves clients that offer another protocol, such as Java and curl --http2, by this one', async () => {
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
    const ask = async (request: string): Promise<string> => {
      const socket = connect(listening.port, '127.0.0.1').setEncoding('latin1');
      socket.write(request);
      const [answer] = (await once(socket, 'data')) as [string];
      socket.destroy();
      return answer;
    };
    // As a server with a WebSocket endpoint has it.
    const refuse = (_request: unknown, socket: Socket): void => void socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
    listening.server.on('upgrade', refuse);
    try {
      expect(await ask(`GET /text HTTP/1.1\r\nHost: x\r\n${offer}\r\n`)).to.match(/^HTTP\/1\.1 200 [\s\S]*plain/);
      const body = 'Content-Length: 2\r\n\r\n{}';
      const posted = await ask(`POST /info HTTP/1.1\r\nHost: x\r\n${offer}${body}`);
      expect(posted).to.match(/^HTTP\/1\.1 400 [\s\S]*no good/);
      const socket = 'Connection: Upgrade\r\nUpgrade: WebSocket\r\n';
      expect(await ask(`GET /text HTTP/1.1\r\nHost: x\r\n${socket}\r\n`)).to.match(/^HTTP\/1\.1 404 /);
    } finally {
      listening.server.off('upgrade', refuse);
    }
  });

  it('answers the order interface in plain text', async () => {
    const boom = await get('/exchange', { method: 'POST' });
    expect([boom.status, await boom.text()]).to.deep.equal([500, 'Internal error']);
    const bad = await get('/info', { method: 'POST' });
    expect(bad.headers.get('content-type')).to.match(/^text\/plain/);
    expect([bad.status, await bad.text()]).to.deep.equal([400, 'no good']);
  });

  it('tells an unknown path from a wrong method', async () => {
    const unknown = await get('/nowhere');
    expect(unknown.status).to.equal(404);
    expect([unknown.headers.get('content-type'), await unknown.text()]).to.deep.equal([
      'text/plain; charset=utf-8',
      'No such resource: /nowhere',
    ]);
    for (const path of ['/v0/nowhere', '/api/v1/nowhere', '/v0']) {
      const json = (await (await get(path)).json()) as { error: { code: string } };
      expect(json.error.code, path).to.equal('NOT_FOUND');
    }
    for (const path of ['/exchange/', '/INFO', '/exchange/more', '/v00', '/']) {
      const response = await get(path, { method: 'DELETE' });
      expect(response.headers.get('content-type'), path).to.match(/^text\/plain/);
    }
    const wrong = await get('/big', { method: 'POST' });
    expect(wrong.status).to.equal(405);
    expect(wrong.headers.get('allow')).to.equal('HEAD, GET');
    expect(await wrong.text()).to.equal('POST is not allowed here');
  });

  it('lets other origins read answers, errors included, with the rate limit headers', async () => {
    for (const path of ['/big', '/bad', '/boom', '/nowhere']) {
      const response = await get(path, { headers: { origin: 'https://maker.example' } });
      expect(response.headers.get('access-control-allow-origin'), path).to.equal('*');
      expect(response.headers.get('access-control-expose-headers'), path).to.include('retry-after');
    }
  });

  it('lets other origins post JSON', async () => {
    const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
    const response = await get('/exchange', {
      method: 'OPTIONS',
      headers: { origin: 'https://maker.example', ...asked },
    });
    expect(response.status).to.equal(204);
    expect(response.headers.get('access-control-allow-origin')).to.equal('*');
    expect(response.headers.get('access-control-allow-methods')).to.include('POST');
    expect(response.headers.get('access-control-allow-headers')).to.equal('content-type');
  });

  it('takes the address of a client from the proxy in front, and never from the client', async () => {
    const cases: [boolean, string | undefined, string][] = [
      [false, '1.1.1.1', '127.0.0.1'],
      [true, undefined, '127.0.0.1'],
      [true, '', '127.0.0.1'],
      [true, '1.1.1.1', '1.1.1.1'],
      // What a client sent itself comes first; the proxy adds whom it saw.
      [true, '9.9.9.9, 1.1.1.1', '1.1.1.1'],
      [true, '9.9.9.9,8.8.8.8 , 2001:db8::1', '2001:db8::1'],
    ];
    for (const [trustProxy, header, expected] of cases) {
      const router = new Router();
      router.get('/ip', (ctx) => void (ctx.body = `${ctx.ip} ${clientAddress(ctx.req, trustProxy)}`));
      const app = createApp({ routers: [router], logger: { info: record, error: record }, trustProxy });
      const proxied = await listen(app, 0, '127.0.0.1');
      const headers: Record<string, string> = header === undefined ? {} : { 'x-forwarded-for': header };
      const response = await fetch(`${proxied.url}/ip`, { headers });
      expect(await response.text(), `${trustProxy} ${header}`).to.equal(`${expected} ${expected}`);
      await proxied.close();
    }
  });

  it('names the setting when the port is in use', async () => {
    const second = createApp({ routers: [], logger: { info: record, error: record } });
    const error: unknown = await listen(second, listening.port, '127.0.0.1', 'PORT').then(
      async (taken) => taken.close(),
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(ListenError);
    expect((error as ListenError).code).to.equal('PORT_IN_USE');
    expect((error as ListenError).message)
      .to.include(`Port ${listening.port}`)
      .and.to.include('PORT');
  });

  it('closes twice without complaint and frees the port', async () => {
    const app = createApp({ routers: [], logger: { info: record, error: record } });
    const first = await listen(app, 0, '127.0.0.1');
    await first.close();
    await first.close();
    const again = await listen(app, first.port, '127.0.0.1');
    await again.close();
  });
});
