/** When a subscription counts as taken, with a socket whose server is the test. */
import { expect } from 'chai';
import { createStream } from '../../sdk/src/stream.js';
import { streamSockets, type StreamSocket } from '../support/api/stream-sockets.js';

const USER = `0x${'1'.repeat(40)}`;
const SUBSCRIPTION = { type: 'orderUpdates', user: USER } as const;

describe('a subscription of the stream client', () => {
  function begin() {
    const { opened, WebSocket } = streamSockets();
    const stream = createStream('http://server', { WebSocket });
    const calls: string[] = [];
    const listen = (name: string) =>
      stream.subscribe(
        SUBSCRIPTION,
        () => calls.push(`${name} data`),
        () => calls.push(`${name} resumes`),
        () => calls.push(`${name} is lost`),
      );
    return { opened, stream, calls, listen };
  }

  it('resumes once the server has taken it, and not when it was sent', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    expect(calls, 'sent').to.deep.equal([]);
    socket.acknowledge();
    socket.say({ channel: 'orderUpdates', data: [] });
    expect(calls).to.deep.equal(['a resumes', 'a data']);
    stream.close();
  });

  it('tells of the loss of a connection, and not of one that was closed', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    socket.acknowledge();
    socket.close();
    expect(calls).to.deep.equal(['a resumes', 'a is lost']);
    stream.close();
    expect(calls).to.have.length(2);
  });

  it('resumes for every listener when it is sent again for a second one', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    // The first is not answered yet: what happens before the last one is taken may be missed.
    listen('b');
    socket.acknowledge();
    expect(calls, 'the first').to.deep.equal([]);
    socket.acknowledge();
    socket.acknowledge();
    expect(calls).to.deep.equal(['a resumes', 'b resumes']);
    stream.close();
  });

  /** Waits until something is sent. */
  async function sentOver(socket: Pick<StreamSocket, 'unanswered'>): Promise<void> {
    while (socket.unanswered.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  it('resumes for whoever subscribes again after the server refused it by name', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    socket.refuse('Invalid subscription');
    listen('b');
    expect(socket.unanswered.map(({ method }) => method)).to.deep.equal(['subscribe']);
    socket.acknowledge();
    expect(calls).to.deep.equal(['a resumes', 'b resumes']);
    stream.close();
  });

  it('asks again for what the budget of messages refused, and resumes then', async () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    socket.refuse(null);
    expect(calls).to.deep.equal([]);
    await sentOver(socket);
    socket.acknowledge();
    expect(calls).to.deep.equal(['a resumes']);
    expect(socket.unanswered).to.deep.equal([]);
    stream.close();
  });

  it('asks again, from the beginning, for what the server had already', async () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    socket.acknowledge();
    listen('b');
    socket.refuse(null);
    socket.refuse('Already subscribed:');
    expect(calls).to.deep.equal(['a resumes']);
    await sentOver(socket);
    expect(socket.unanswered.map(({ method }) => method)).to.deep.equal(['unsubscribe', 'subscribe']);
    socket.acknowledge();
    socket.acknowledge();
    expect(calls).to.deep.equal(['a resumes', 'a resumes', 'b resumes']);
    stream.close();
  });

  it('goes on after frames that are none', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    const channel = 'subscriptionResponse';
    const data = { method: 'subscribe', subscription: null };
    const frames = [null, 1, [], {}, { channel }, { channel, data: null }, { channel, data }, { channel: 'error' }];
    for (const frame of [...frames, { channel: 'error', data: 'Invalid subscription {' }])
      expect(() => socket.say(frame), JSON.stringify(frame)).not.to.throw();
    socket.acknowledge();
    expect(calls).to.deep.equal(['a resumes']);
    stream.close();
  });

  it('ignores answers to others, and those of an earlier connection', () => {
    const { opened, stream, calls, listen } = begin();
    listen('a');
    const socket = opened[0]!;
    socket.onopen?.();
    const late = socket.onmessage;
    const answer = (subscription: object, method = 'subscribe'): string =>
      JSON.stringify({ channel: 'subscriptionResponse', data: { method, subscription } });
    late?.({ data: answer({ type: 'allMids' }) });
    late?.({ data: answer(SUBSCRIPTION, 'unsubscribe') });
    socket.close();
    late?.({ data: answer(SUBSCRIPTION) });
    expect(calls).to.deep.equal(['a is lost']);
    stream.close();
  });
});
