import { expect } from 'chai';
import { createSendQueue, type EventFrame, type SendQueue } from '../../../server/stream/send-queue.js';

const limits = { highWaterBytes: 10, maxQueueBytes: 20, retainedEvents: 5, retainedMs: 1_000 };

/** A socket that holds what it gets until it is told to let go. */
function createSocket() {
  const sent: string[] = [];
  const held: (() => void)[] = [];
  return {
    sent,
    bufferedAmount: 0,
    send(frame: Buffer, _options: { binary: false }, done?: () => void): void {
      sent.push(frame.toString());
      this.bufferedAmount += frame.length;
      if (done !== undefined) held.push(done);
    },
    drain(): void {
      this.bufferedAmount = 0;
      held.splice(0).forEach((done) => done());
    },
  };
}

describe('send queue of a connection', () => {
  let socket: ReturnType<typeof createSocket>;
  let queue: SendQueue;
  let closed: string[];
  let nowMs: number;
  let seq: number;

  beforeEach(() => {
    socket = createSocket();
    closed = [];
    nowMs = 0;
    seq = 0;
    queue = createSendQueue(
      socket,
      limits,
      () => nowMs,
      ({ code, reason }) => closed.push(`${code} ${reason}`),
    );
  });

  const event = (text: string): EventFrame => ({ frame: Buffer.from(text), seq: (seq += 1), timeMs: nowMs });
  const fill = (): void => queue.reply(Buffer.from('0123456789'));

  it('sends at once while the socket takes it, and in order once it takes it again', () => {
    queue.event(event('a'));
    queue.reply(Buffer.from('b'));
    expect(socket.sent).to.deep.equal(['a', 'b']);
    fill();
    queue.event(event('c'));
    queue.reply(Buffer.from('d'));
    expect(socket.sent).to.have.length(3);
    socket.drain();
    expect(socket.sent.slice(3)).to.deep.equal(['c', 'd']);
    queue.event(event('e'));
    expect(socket.sent.at(-1)).to.equal('e');
    expect(closed).to.deep.equal([]);
  });

  it('keeps only the newest of a state that waits, and none that was dropped', () => {
    fill();
    queue.latest('book', Buffer.from('1'));
    queue.latest('mids', Buffer.from('m'));
    queue.latest('gone', Buffer.from('g'));
    queue.latest('book', Buffer.from('2'));
    queue.event(event('e'));
    queue.drop('gone');
    socket.drain();
    expect(socket.sent.slice(1)).to.deep.equal(['e', '2', 'm']);
  });

  it('gives a connection up whose queue is full', () => {
    fill();
    queue.event(event('x'.repeat(20)));
    expect(closed).to.deep.equal([]);
    queue.reply(Buffer.from('y'));
    queue.reply(Buffer.from('z'));
    expect(closed).to.deep.equal(['4001 output queue full']);
    socket.drain();
    expect(socket.sent).to.have.length(1);
  });

  it('gives a connection up that is behind what is retained, by number or by age', () => {
    fill();
    queue.event(event('a'));
    queue.check(5);
    expect(closed).to.deep.equal([]);
    queue.check(6);
    expect(closed).to.deep.equal(['4002 behind retained events']);

    socket = createSocket();
    queue = createSendQueue(
      socket,
      limits,
      () => nowMs,
      ({ code }) => closed.push(`${code}`),
    );
    fill();
    queue.event(event('b'));
    nowMs = 1_000;
    queue.check(seq);
    expect(closed).to.have.length(1);
    nowMs = 1_001;
    queue.check(seq);
    expect(closed).to.deep.equal(['4002 behind retained events', '4002']);
  });

  it('gives a connection up in which anything has waited for too long, whatever it is', () => {
    const waiting = [
      () => queue.reply(Buffer.from('a')),
      () => queue.latest('book', Buffer.from('1')),
      // The frame that fills the socket waits itself.
      () => undefined,
    ];
    for (const wait of waiting) {
      socket = createSocket();
      closed = [];
      nowMs = 0;
      queue = createSendQueue(
        socket,
        limits,
        () => nowMs,
        ({ code, reason }) => closed.push(`${code} ${reason}`),
      );
      nowMs = 5_000;
      fill();
      wait();
      nowMs = 6_000;
      queue.check(seq);
      expect(closed).to.deep.equal([]);
      nowMs = 6_001;
      queue.check(seq);
      expect(closed).to.deep.equal(['4002 behind retained events']);
    }
  });

  it('keeps a connection that takes what waits for it in time, and none that takes it too slowly', () => {
    for (nowMs = 0; nowMs < 10_000; nowMs += 500) {
      fill();
      queue.reply(Buffer.from('a'));
      queue.check(seq);
      socket.drain();
    }
    nowMs = 20_000;
    queue.check(seq);
    for (let i = 0; i < 3; i += 1) fill();
    nowMs += 600;
    socket.drain();
    queue.check(seq);
    expect(closed).to.deep.equal([]);
    nowMs += 600;
    queue.check(seq);
    expect(closed).to.deep.equal(['4002 behind retained events']);
  });
});
