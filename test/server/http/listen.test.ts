/** Clients that don't take their answers. */
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { listenOn, type AnswerLimits, type Listening } from '../../../server/listen.js';

const HOST = '127.0.0.1';
/** More than the buffers of both ends hold. */
const LARGE = Buffer.alloc(16 * 2 ** 20, 'x');
const PATIENT: AnswerLimits = { stallMs: 60_000, answerMs: 60_000, bytesPerSec: 64 * 1024, networkBytes: 2 ** 40 };

describe('An answer', () => {
  let listening: Listening | null = null;
  const clients: Socket[] = [];

  afterEach(async () => {
    clients.splice(0).forEach((client) => client.destroy());
    await listening?.close();
    listening = null;
  });

  async function serve(handle: RequestListener, limits: Partial<AnswerLimits>, trustProxy = false): Promise<void> {
    const where = { port: 0, host: HOST, portSetting: 'PORT', trustProxy };
    listening = await listenOn(handle, { ...where, limits: { ...PATIENT, ...limits } });
  }

  /** A client that has sent a request, or several at once, and reads nothing yet, and the other end of its connection. */
  async function ask(headers = '', times = 1): Promise<{ client: Socket; served: Socket }> {
    const client = connect({ port: listening!.port, host: HOST });
    clients.push(client);
    client.on('error', () => undefined);
    client.pause();
    const [served] = (await once(listening!.server, 'connection')) as [Socket];
    client.write(`GET / HTTP/1.1\r\nHost: here\r\n${headers}\r\n`.repeat(times));
    return { client, served };
  }

  /** Whether it happens within these milliseconds. */
  const within = (ms: number, happens: Promise<unknown>): Promise<boolean> =>
    Promise.race([happens.then(() => true), delay(ms, false)]);

  const large: RequestListener = (_request, response) => void response.end(LARGE);

  /** Reads so many bytes at a time, with a pause after each; resolves with all of them, or what came before the end. */
  async function readSlowly(
    client: Socket,
    { bytes, pauseMs }: { bytes: number; pauseMs: number },
    most = LARGE.length,
  ): Promise<number> {
    let read = 0;
    client.resume().pause();
    while (!client.destroyed && !client.readableEnded && read < most) {
      const chunk = (client.read(bytes) ?? client.read()) as Buffer | null;
      read += chunk?.length ?? 0;
      await delay(pauseMs);
    }
    return read;
  }

  it('of which nothing is taken is given up with its connection', async () => {
    await serve(large, { stallMs: 200 });
    const { served } = await ask();
    expect(await within(10_000, once(served, 'close'))).to.equal(true);
  });

  it('that is taken slowly is sent whole, if no part of it takes too long', async () => {
    await serve(large, { stallMs: 1_500 });
    const { client } = await ask();
    expect(await readSlowly(client, { bytes: 64 * 1024, pauseMs: 10 })).to.be.at.least(LARGE.length);
  });

  it('of which next to nothing is taken is given up after the time that its length may take', async () => {
    await serve(large, { answerMs: 500, bytesPerSec: 2 ** 30 });
    const { client, served } = await ask();
    const closed = once(served, 'close');
    const reading = readSlowly(client, { bytes: 64 * 1024, pauseMs: 100 });
    expect(await within(10_000, closed)).to.equal(true);
    client.destroy();
    expect(await reading).to.be.lessThan(LARGE.length);
  });

  it('that is long in the making, or is made piece by piece, is waited for', async () => {
    await serve(
      (_request, response) => {
        void (async () => {
          await delay(700);
          response.write('first ');
          await delay(2_500);
          response.end('last');
        })();
      },
      { stallMs: 200, answerMs: 200 },
    );
    const { client } = await ask('Connection: close\r\n');
    let text = '';
    client.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await once(client.resume(), 'end');
    expect(text).to.contain('first ').and.to.contain('last');
  });

  it('that waits behind others on its connection has the time of all of them, and no more', async () => {
    const part = LARGE.subarray(0, 256 * 1024);
    await serve((_request, response) => void response.end(part), { answerMs: 500, bytesPerSec: 2 ** 30 });
    const { client, served } = await ask('', 400);
    const closed = once(served, 'close');
    const reading = readSlowly(client, { bytes: 64 * 1024, pauseMs: 10 }, 400 * part.length);
    expect(await within(10_000, closed)).to.equal(true);
    client.destroy();
    expect(await reading).to.be.lessThan(400 * part.length);
  });

  it('that waits behind one that is long in the making is waited for', async () => {
    let asked = 0;
    const handle: RequestListener = (_request, response) => {
      asked += 1;
      if (asked > 1) response.end(LARGE);
      else setTimeout(() => response.end('first'), 2_000);
    };
    await serve(handle, { answerMs: 500, bytesPerSec: 64 * 2 ** 20 });
    const { client, served } = await ask('', 2);
    const closed = once(served, 'close');
    expect(await within(1_500, closed)).to.equal(false);
    expect(await readSlowly(client, { bytes: 2 ** 20, pauseMs: 1 })).to.be.at.least(LARGE.length);
  });

  it('is given up when too much waits for the same network, that of which most waits first', async () => {
    await serve(large, { networkBytes: 8 * 2 ** 20 });
    const one = await ask();
    expect(await within(1_000, once(one.served, 'close')), 'alone it may be longer').to.equal(false);
    const many = await ask('', 3);
    expect(await within(10_000, once(many.served, 'close'))).to.equal(true);
    expect(one.served.destroyed).to.equal(false);
    expect(await readSlowly(one.client, { bytes: 2 ** 20, pauseMs: 1 })).to.be.at.least(LARGE.length);
    const both = [await ask(), await ask()];
    const closed = both.map(({ served }) => once(served, 'close'));
    expect(await within(10_000, Promise.race(closed))).to.equal(true);
    expect(both.filter(({ served }) => served.destroyed)).to.have.length(1);
  });

  it('counts to the network that a proxy in front names', async () => {
    await serve(large, { networkBytes: 8 * 2 ** 20 }, true);
    const from = (address: string): string => `X-Forwarded-For: ${address}\r\n`;
    const [one, other] = [await ask(from('198.51.100.1')), await ask(from('198.51.100.2'))];
    expect(await within(1_000, Promise.race([one, other].map(({ served }) => once(served, 'close'))))).to.equal(false);
    await ask(from('198.51.100.1, 198.51.100.2'), 2);
    await delay(1_000);
    expect([one.served.destroyed, other.served.destroyed]).to.deep.equal([false, false]);
  });

  it('leaves an idle connection open for the next request', async () => {
    await serve((_request, response) => void response.end('done'), { stallMs: 100, answerMs: 100 });
    const { client, served } = await ask();
    client.resume();
    expect(await within(2_500, once(served, 'close'))).to.equal(false);
  });

  it('to a wish for a WebSocket that nobody hears or that is refused closes its connection', async () => {
    await serve(large, { stallMs: 200 });
    const wish = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    const unheard = await ask(wish);
    expect(await within(10_000, once(unheard.served, 'close'))).to.equal(true);
    listening!.server.on('upgrade', (_request, socket) => void socket.end('HTTP/1.1 404 Not Found\r\n\r\n'));
    const refused = await ask(wish);
    expect(await within(10_000, once(refused.served, 'close'))).to.equal(true);
  });
});
