import { EventEmitter, once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import Router from '@koa/router';
import { expect } from 'chai';
import { WebSocket, WebSocketServer } from 'ws';
import { createApp } from '../../server/app.js';
import { createDoor, type Answering, type Door } from '../../server/door.js';
import { ListenError } from '../../server/listen.js';

const silent = { info: () => undefined, error: () => undefined };
const HOST = '127.0.0.1';

describe('an address that outlives the applications behind it', () => {
  const doors: Door[] = [];
  const seen: string[] = [];
  let release: () => void = () => undefined;

  afterEach(async () => {
    release();
    await Promise.all(doors.splice(0).map((door) => door.close()));
    seen.length = 0;
  });

  function open(options: { port?: number; holdMs?: number; trustProxy?: boolean } = {}): Door {
    const door = createDoor({ port: 0, host: HOST, logger: silent, ...options });
    doors.push(door);
    return door;
  }

  /** Says its name, and keeps whoever asks for /slow until `release`. */
  function answer(door: Door, name: string): Promise<Answering> {
    const router = new Router();
    router.get('/name', (ctx) => void (ctx.body = { name }));
    router.post('/act', (ctx) => {
      seen.push(name);
      ctx.body = { name };
    });
    router.get('/slow', async (ctx) => {
      seen.push('slow');
      await new Promise<void>((resolve) => (release = resolve));
      ctx.body = { name };
    });
    return door.answer(createApp({ routers: [router], logger: silent }));
  }

  const nameAt = async (url: string): Promise<string> =>
    ((await (await fetch(`${url}/name`)).json()) as { name: string }).name;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) await turn();
  }

  it('hands over from one to the next, and nobody is refused a connection', async () => {
    const door = open();
    const first = await answer(door, 'first');
    let isOver = false;
    const names: string[] = [];
    const asking = (async () => {
      // A connection of its own each time, which a port that closes for a moment would refuse.
      while (!isOver || names.at(-1) !== 'second') {
        const asked = request(`${first.url}/name`, { agent: false }).end();
        const [response] = (await once(asked, 'response')) as [NodeJS.ReadableStream];
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk as Buffer);
        names.push((JSON.parse(Buffer.concat(chunks).toString()) as { name: string }).name);
      }
    })();
    await until(() => names.length > 3);
    await first.leave();
    for (let i = 0; i < 20; i++) await turn();
    const second = await answer(door, 'second');
    isOver = true;
    await asking;
    expect(second.url).to.equal(first.url);
    expect(names.indexOf('second'), 'in this order').to.equal(names.lastIndexOf('first') + 1);
  });

  it('waits for requests in flight, and cuts them off when they take too long', async () => {
    const door = open();
    const first = await answer(door, 'first');
    const slow = fetch(`${first.url}/slow`);
    await until(() => seen.length === 1);
    const leaving = first.leave();
    release();
    await leaving;
    expect(await (await slow).json()).to.deep.equal({ name: 'first' });

    const second = await answer(door, 'second');
    const endless = fetch(`${second.url}/slow`).then(
      () => 'answered',
      () => 'cut off',
    );
    await until(() => seen.length === 2);
    await second.leave();
    expect(await endless).to.equal('cut off');
  });

  it('says that the process lives before there is any application', async () => {
    const earlier = open();
    const { port } = await answer(earlier, 'earlier');
    await earlier.close();
    const door = open({ port });
    await door.open();
    const statusOf = async (path: string) => (await fetch(`http://${HOST}:${port}${path}`)).status;
    expect([await statusOf('/live'), await statusOf('/ready')]).to.deep.equal([200, 503]);
    const { url } = await answer(door, 'first');
    expect(await nameAt(url)).to.equal('first');
  });

  it('says at once that the process lives and is not ready, and refuses when nobody comes in time', async () => {
    const door = open({ holdMs: 50 });
    const first = await answer(door, 'first');
    await first.leave();
    const probes = await Promise.all(['/live', '/ready', '/active'].map((path) => fetch(`${first.url}${path}`)));
    expect(probes.map(({ status }) => status)).to.deep.equal([200, 503, 503]);
    expect(await probes[1]!.json()).to.deep.equal({ ready: false, reason: 'starting' });
    const read = await fetch(`${first.url}/v0/pairs`);
    expect([read.status, read.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(await read.json()).to.have.nested.property('error.code', 'NOT_READY');
    const action = await fetch(`${first.url}/exchange`, { method: 'POST', body: '{}' });
    expect([action.status, await action.text()]).to.deep.equal([
      503,
      'standby: the server is starting, nothing was stored; try again',
    ]);
  });

  it('hands over nothing of a client that has gone', async () => {
    const door = open();
    const first = await answer(door, 'first');
    await first.leave();
    const gone = connect(first.port, HOST);
    gone.write('POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
    await once(gone, 'connect');
    // Whoever asks later is served later, so the first one's request has come.
    await (await fetch(`${first.url}/live`)).text();
    gone.destroy();
    await (await fetch(`${first.url}/live`)).text();
    const stays = fetch(`${first.url}/act`, { method: 'POST' });
    await answer(door, 'second');
    expect(await (await stays).json()).to.deep.equal({ name: 'second' });
    expect(seen).to.deep.equal(['second']);
  });

  it('lets WebSocket connections wait, too', async () => {
    const door = open({ holdMs: 2_000 });
    const first = await answer(door, 'first');
    await first.leave();
    const socket = new WebSocket(`${first.url.replace('http', 'ws')}/ws`);
    await (await fetch(`${first.url}/live`)).text();
    const second = await answer(door, 'second');
    const sockets = new WebSocketServer({ noServer: true });
    second.upgrades.on('upgrade', (request, stream, head) =>
      sockets.handleUpgrade(request, stream, head, () => undefined),
    );
    await once(socket, 'open');
    socket.terminate();
  });

  it('takes the address with the first application, and says whose setting to change when it is taken', async () => {
    const first = await answer(open(), 'first');
    const second = open({ port: first.port });
    const refused: unknown = await answer(second, 'second').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ListenError).with.property('code', 'PORT_IN_USE');
    await doors.shift()!.close();
    expect((await answer(second, 'second')).port).to.equal(first.port);
    expect(await nameAt(first.url)).to.equal('second');
  });

  it('lets no address take the room of others, and gives a place back when its client goes', async () => {
    const door = open({ trustProxy: true });
    const first = await answer(door, 'first');
    await first.leave();
    const from = (address: string, path = '/name') =>
      request(`${first.url}${path}`, { agent: false, headers: { 'x-forwarded-for': address } }).end();
    const statusOf = async (asked: ReturnType<typeof request>): Promise<number> => {
      const [response] = (await once(asked, 'response')) as [NodeJS.ReadableStream & { statusCode: number }];
      response.resume();
      return response.statusCode;
    };
    const settled = new Set<number>();
    // One network of IPv6 is one client, whichever of its addresses it takes.
    const asked = Array.from({ length: 101 }, (_, i) => from(`2001:db8::${i.toString(16)}`));
    const answers = asked.map((one, i) => statusOf(one).finally(() => settled.add(i)));
    for (const one of answers) one.catch(() => undefined);
    await until(() => settled.size > 0);
    const [refused] = [...settled];
    expect(await answers[refused!]).to.equal(503);
    const other = statusOf(from('192.0.2.7'));
    asked.find((_, i) => i !== refused)!.destroy();
    await until(() => settled.size >= 2);
    // Whoever asks later is heard later: the one that has gone was noticed, and its place is free.
    for (let i = 0; i < 20; i++) await (await fetch(`${first.url}/live`)).text();
    const late = statusOf(from('2001:db8::ffff'));
    await (await fetch(`${first.url}/live`)).text();
    await answer(door, 'second');
    expect(await Promise.all([other, late])).to.deep.equal([200, 200]);
    const rest = await Promise.allSettled(answers);
    expect(rest.filter((one) => one.status === 'fulfilled' && one.value === 200)).to.have.length(99);
  });

  it('keeps nothing of a request that waited in vain', async () => {
    const made: EventEmitter[] = [];
    const { setMaxListeners } = EventEmitter.prototype;
    EventEmitter.prototype.setMaxListeners = function (count) {
      made.push(this);
      return setMaxListeners.call(this, count);
    };
    let door: Door;
    try {
      door = open({ holdMs: 20 });
    } finally {
      EventEmitter.prototype.setMaxListeners = setMaxListeners;
    }
    const first = await answer(door, 'first');
    await first.leave();
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => (await fetch(`${first.url}/name`)).status),
    );
    expect(new Set(statuses)).to.deep.equal(new Set([503]));
    expect(made.reduce((sum, one) => sum + one.listenerCount('change'), 0)).to.equal(0);
  });

  it('refuses what waits when it closes', async () => {
    const door = open();
    const first = await answer(door, 'first');
    await first.leave();
    const waiting = fetch(`${first.url}/name`);
    await (await fetch(`${first.url}/live`)).text();
    await door.close();
    expect((await waiting).status).to.equal(503);
  });
});
