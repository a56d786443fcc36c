/** When a subscription counts as taken, with a socket whose server is the test. */
import { expect } from 'chai';
import { createStream } from '../../sdk/src/stream.js';

const USER = `0x${'1'.repeat(40)}`;
const SUBSCRIPTION = { type: 'orderUpdates', user: USER } as const;

interface Sent {
  method: string;
  subscription: object;
}

/** Sockets in the order in which they were opened, and what each was sent. */
function sockets() {
  const opened: Socket[] = [];
  class Socket {
    onopen: (() => void) | null = null;
    onmessage: ((message: { data: string }) => void) | null = null;
    onclose: (() => void) | null = null;
    readonly sent: Sent[] = [];
    constructor() {
      opened.push(this);
    }
    send(text: string): void {
      this.sent.push(JSON.parse(text) as Sent);
    }
    close(): void {
      this.onclose?.();
    }
    /** Answers the next message that was not answered. */
    acknowledge(): void {
      const next = this.sent.shift();
      this.onmessage?.({ data: JSON.stringify({ channel: 'subscriptionResponse', data: next }) });
    }
    tell(): void {
      this.onmessage?.({ data: JSON.stringify({ channel: 'orderUpdates', data: [] }) });
    }
  }
  return { opened, WebSocket: Socket as unknown as typeof globalThis.WebSocket };
}

describe('a subscription of the stream client', () => {
  function begin() {
    const { opened, WebSocket } = sockets();
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
    socket.tell();
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
