import { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import { expect } from 'chai';
import type { Context } from 'koa';
import { createRowStreams } from '../../server/read/row-stream.js';

describe('Downloads', () => {
  let nowMs: number;
  let looks: Set<() => void>;
  let waits: (() => void)[];
  const timers = {
    nowMs: () => nowMs,
    every(_ms: number, look: () => void) {
      looks.add(look);
      return () => void looks.delete(look);
    },
    wait: () => new Promise<void>((resolve) => void waits.push(resolve)),
  };

  beforeEach(() => {
    nowMs = 0;
    looks = new Set();
    waits = [];
  });

  async function pass(ms: number): Promise<void> {
    nowMs += ms;
    for (const look of [...looks]) look();
    for (const goOn of waits.splice(0)) goOn();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** A client with so many requests a minute. */
  function client(requests = 6_000) {
    const socket = { bytesWritten: 0, writableLength: 0 };
    let destroyed = 0;
    const res = Object.assign(new EventEmitter(), { socket, destroy: () => (destroyed += 1) });
    const ctx = {
      ip: '10.0.0.1',
      path: '/v0/fills',
      query: {},
      set: () => undefined,
      response: { get: () => `${requests}` },
      res,
      body: null as Readable | null,
    };
    return { ctx: ctx as unknown as Context, socket, destroyed: () => destroyed };
  }

  const LEAST = 64 * 1024;
  const pace = { spanMs: 30_000, leastBytes: LEAST, totalMs: 600_000 };
  const streams = () => createRowStreams({ perAddress: 2, total: 8 }, pace, timers);
  const page = async () => ({ rows: [{ a: 'x'.repeat(100_000) }], next: 1 });

  it('of which nothing is taken end, and give their place free', async () => {
    const all = streams();
    const [stalled, slow] = [client(), client()];
    for (const { ctx } of [stalled, slow]) all.send(ctx, 'ndjson', ['a'], page);
    expect(() => all.send(client().ctx, 'ndjson', ['a'], page)).to.throw('downloads');
    for (let i = 0; i < 3; i += 1) {
      // What is only held for the client is not taken.
      stalled.socket.bytesWritten += 10;
      stalled.socket.writableLength += 10;
      slow.socket.bytesWritten += LEAST / 3 + 1;
      await pass(10_000);
    }
    expect([stalled.destroyed(), slow.destroyed(), all.running()]).to.deep.equal([1, 0, 1]);
    all.send(client().ctx, 'ndjson', ['a'], page);
    expect(all.running()).to.equal(2);
  });

  it('end that are taken more slowly than any line is, however steadily, and go on at the least pace', async () => {
    const [dripping, slow, jerky] = [client(), client(), client()];
    const all = createRowStreams({ perAddress: 3, total: 8 }, pace, timers);
    for (const { ctx } of [dripping, slow, jerky]) all.send(ctx, 'ndjson', ['a'], page);
    for (let i = 0; i < 59; i += 1) {
      dripping.socket.bytesWritten += LEAST / 4;
      slow.socket.bytesWritten += LEAST / 2;
      // As a link that is gone for a while: much at once, then nothing.
      if (i % 2 === 0) jerky.socket.bytesWritten += LEAST;
      await pass(10_000);
      expect(dripping.destroyed(), `after ${i + 1} times 10 s`).to.equal(i < 2 ? 0 : 1);
    }
    expect([slow.destroyed(), jerky.destroyed(), all.running()]).to.deep.equal([0, 0, 2]);
  });

  it('of an address get its rows of a minute, and go on in the next one', async () => {
    const all = streams();
    const [one, other, elsewhere] = [client(100), client(100), client(100)];
    elsewhere.ctx.ip = '10.0.0.2';
    const rows = { rows: Array.from({ length: 500 }, () => ({ a: 'x' })), next: 1 };
    const read: string[] = [];
    for (const [name, { ctx }] of Object.entries({ one, other, elsewhere })) {
      all.send(ctx, 'ndjson', ['a'], async () => {
        read.push(name);
        return rows;
      });
      (ctx.body as Readable).resume();
    }
    const pagesOf = (name: string): number => read.filter((of) => of === name).length;
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 500; i += 1) await new Promise((resolve) => setImmediate(resolve));
    };
    await settle();
    // Twenty rows for each request: 2,000 a minute. Pages that are being read when they are spent come whole.
    expect(pagesOf('one') + pagesOf('other')).to.be.within(4, 5);
    expect(pagesOf('elsewhere')).to.equal(4);
    for (let i = 0; i < 59; i += 1) {
      one.socket.bytesWritten += LEAST;
      await pass(1_000);
      await settle();
    }
    expect(pagesOf('elsewhere'), 'and no sooner').to.equal(4);
    expect([one.destroyed(), elsewhere.destroyed()], 'while they wait nothing has to be read').to.deep.equal([0, 0]);
    // One that its client has left gives its place free, also while it waits.
    (other.ctx.body as Readable).destroy();
    await pass(1_000);
    await settle();
    expect(pagesOf('elsewhere')).to.equal(8);
    expect(pagesOf('one')).to.be.at.least(6);
    expect(all.running()).to.equal(2);
  });

  it('that wait for the next minute leave their places to others, and go before new ones then', async () => {
    const all = createRowStreams({ perAddress: 2, total: 2 }, pace, timers);
    const begin = (ip: string, readPage = page) => {
      const one = client(100);
      one.ctx.ip = ip;
      all.send(one.ctx, 'ndjson', ['a'], readPage);
      return one;
    };
    const read = (ip: string): void => void (begin(ip, many).ctx.body as Readable).resume();
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 100; i += 1) await new Promise((resolve) => setImmediate(resolve));
    };
    let pages = 0;
    const many = async () => {
      pages += 1;
      return { rows: Array.from({ length: 500 }, () => ({ a: 'x' })), next: 1 };
    };
    read('10.0.0.1');
    read('10.0.0.1');
    await settle();
    expect(pages, 'the rows of the minute are spent').to.be.within(4, 5);
    const before = pages;
    expect(() => begin('10.0.0.1', many), 'of the same address').to.throw('downloads');
    const others = [begin('10.0.0.2'), begin('10.0.0.3')];
    expect(() => begin('10.0.0.4')).to.throw('downloads');
    expect(all.running()).to.equal(4);
    for (let i = 0; i < 61; i += 1) {
      for (const { socket } of others) socket.bytesWritten += LEAST;
      await pass(1_000);
    }
    await settle();
    expect(pages, 'without a place').to.equal(before);
    const [first, second] = others.map(({ ctx }) => ctx.body as Readable);
    first!.destroy();
    await settle();
    expect(() => begin('10.0.0.4'), 'which others wait for').to.throw('downloads');
    await pass(1_000);
    await settle();
    expect(pages - before, 'one after the other').to.be.within(4, 5);
    second!.destroy();
    await pass(1_000);
    await settle();
    begin('10.0.0.4');
    begin('10.0.0.5');
    expect(all.running()).to.equal(4);
  });

  it('wait for a page, and end after their time however much is taken', async () => {
    const all = streams();
    const [waiting, eager] = [client(), client()];
    all.send(waiting.ctx, 'csv', ['a'], () => new Promise(() => undefined));
    all.send(eager.ctx, 'ndjson', ['a'], page);
    (waiting.ctx.body as Readable).resume();
    await pass(1_000);
    for (let i = 0; i < 59; i += 1) {
      eager.socket.bytesWritten += LEAST;
      await pass(10_000);
    }
    expect([waiting.destroyed(), eager.destroyed()]).to.deep.equal([0, 0]);
    await pass(9_000);
    expect([waiting.destroyed(), eager.destroyed(), looks.size]).to.deep.equal([1, 1, 0]);
  });
});
