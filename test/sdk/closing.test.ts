/** What goes on after a stream was closed or a subscription ended, also when a listener did that; and what listeners that throw stop. */
import { expect } from 'chai';
import { createStream } from '../../sdk/src/stream.js';
import type { Stream } from '../../sdk/src/stream.js';
import { streamSockets } from '../support/api/stream-sockets.js';

const USER = `0x${'1'.repeat(40)}`;
const ORDERS = { type: 'orderUpdates', user: USER } as const;
const MIDS = { type: 'allMids' } as const;
const STATUS = { type: 'status' } as const;
const nothing = () => undefined;

/** Timers that would keep a program running. */
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

describe('a stream that ends', () => {
  it('leaves no timer and calls nothing more when it is closed while it tells of a loss', () => {
    for (const closesAt of ['onState', 'onLoss']) {
      const before = timers();
      const { opened, WebSocket } = streamSockets();
      const calls: string[] = [];
      const stream: Stream = createStream('http://server', {
        WebSocket,
        onState: (state) => {
          calls.push(state);
          if (state === 'connecting' && closesAt === 'onState') stream.close();
        },
      });
      const lost = (name: string) => () => {
        calls.push(name);
        if (closesAt === 'onLoss') stream.close();
      };
      stream.subscribe(ORDERS, nothing, undefined, lost('orders'));
      stream.subscribe(MIDS, nothing, undefined, lost('mids'));
      opened[0]!.onopen?.();
      opened[0]!.close();
      const wanted = ['open', 'connecting', ...(closesAt === 'onLoss' ? ['orders'] : []), 'closed'];
      expect([calls, timers() - before], closesAt).to.deep.equal([wanted, 0]);
    }
  });

  it('calls nothing more when it is closed while it tells of a frame or of an answer', () => {
    const { opened, WebSocket } = streamSockets();
    const calls: string[] = [];
    const stream = createStream('http://server', { WebSocket, onError: () => calls.push('error') });
    const closing = (name: string) => () => {
      calls.push(name);
      stream.close();
    };
    for (const name of ['a', 'b']) stream.subscribe(MIDS, closing(name));
    const socket = opened[0]!;
    socket.onopen?.();
    socket.say({ channel: 'allMids', data: { mids: {} } });
    expect(calls).to.deep.equal(['a']);

    const other = streamSockets();
    const resuming = createStream('http://server', { WebSocket: other.WebSocket });
    const resumes: string[] = [];
    for (const name of ['a', 'b'])
      resuming.subscribe(MIDS, nothing, () => {
        resumes.push(name);
        resuming.close();
      });
    other.opened[0]!.onopen?.();
    other.opened[0]!.take(MIDS);
    expect(resumes).to.deep.equal(['a']);
  });

  it('calls no listener whose subscription another one has just ended', () => {
    const { opened, WebSocket } = streamSockets();
    const calls: string[] = [];
    const stream = createStream('http://server', { WebSocket });
    const ends: (() => void)[] = [];
    for (const name of ['a', 'b']) {
      const call = (what: string) => () => {
        calls.push(`${name} ${what}`);
        ends[1]?.();
      };
      ends.push(stream.subscribe(MIDS, call('data'), undefined, call('loss')));
    }
    stream.subscribe(STATUS, nothing);
    opened[0]!.onopen?.();
    opened[0]!.say({ channel: 'allMids', data: { mids: {} } });
    opened[0]!.close();
    stream.close();
    expect(calls).to.deep.equal(['a data', 'a loss']);
  });

  it('waits for no retry when its last subscription has ended, and connects for the next one', () => {
    const before = timers();
    const { opened, WebSocket } = streamSockets();
    const stream = createStream('http://server', { WebSocket });
    const end = stream.subscribe(MIDS, nothing);
    opened[0]!.close();
    expect(timers(), 'it waits').to.equal(before + 1);
    end();
    expect(timers(), 'it waits no more').to.equal(before);
    stream.subscribe(MIDS, nothing);
    expect(opened).to.have.length(2);
    stream.close();
    expect(timers()).to.equal(before);
  });

  it('connects again although a listener throws, and that of errors, too', () => {
    const before = timers();
    const { opened, WebSocket } = streamSockets();
    const fail = () => {
      throw new Error('of a listener');
    };
    const stream = createStream('http://server', { WebSocket, onState: fail, onError: fail });
    stream.subscribe(MIDS, fail, fail, fail);
    const socket = opened[0]!;
    socket.onopen?.();
    socket.take(MIDS);
    socket.say({ channel: 'allMids', data: { mids: {} } });
    socket.say({ channel: 'error', data: 'of the server' });
    socket.onmessage?.({ data: 'no frame' });
    expect(socket.sent).to.have.length(1);
    socket.close();
    expect(timers(), 'it waits to connect').to.equal(before + 1);
    stream.close();
    expect(timers()).to.equal(before);
  });

  it('tells of a listener whose promise fails, and does not end with it', async () => {
    const { opened, WebSocket } = streamSockets();
    const errors: string[] = [];
    const stream = createStream('http://server', { WebSocket, onError: ({ message }) => errors.push(message) });
    // eslint-disable-next-line @typescript-eslint/no-misused-promises -- what is tested: types allow it
    stream.subscribe(MIDS, () => Promise.reject(new Error('of its promise')));
    opened[0]!.onopen?.();
    opened[0]!.say({ channel: 'allMids', data: { mids: {} } });
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).to.deep.equal(['of its promise']);
    stream.close();
  });

  it('asks once for what is subscribed to when it has just opened', () => {
    const { opened, WebSocket } = streamSockets();
    const stream: Stream = createStream('http://server', {
      WebSocket,
      onState: (state) => {
        if (state === 'open') stream.subscribe(STATUS, nothing);
      },
    });
    stream.subscribe(MIDS, nothing);
    opened[0]!.onopen?.();
    const asked = opened[0]!.sent.map(({ subscription }) => subscription);
    expect(asked.map(({ type }) => type).sort()).to.deep.equal(['allMids', 'status']);
    stream.close();
  });

  it('sends nothing over a socket that was let go when it had just opened', () => {
    const { opened, WebSocket } = streamSockets();
    let isFirst = true;
    let end = nothing as () => void;
    const stream: Stream = createStream('http://server', {
      WebSocket,
      onState: (state) => {
        if (state !== 'open' || !isFirst) return;
        isFirst = false;
        end();
        stream.subscribe(STATUS, nothing);
      },
    });
    end = stream.subscribe(MIDS, nothing);
    opened[0]!.onopen?.();
    opened[1]!.onopen?.();
    expect(opened.map(({ sent }) => sent.length)).to.deep.equal([1, 1]);
    stream.close();
  });
});
