import { CLOSE } from './limits.js';
import type { CloseReason, StreamLimits } from './limits.js';

/** What an outbox needs of a socket. */
export interface OutSocket {
  readonly bufferedAmount: number;
  send(frame: Buffer, options: { binary: false }, done?: () => void): void;
}

/** A frame that many connections share; it was serialised once. */
export interface EventFrame {
  frame: Buffer;
  /** Counts events of this process, from 1. */
  seq: number;
  timeMs: number;
}

/**
 * Frames of one connection, in their order. While the socket is full they wait here; a connection that lets too much wait, or waits
 * too long, is closed, because a client can't know what it missed otherwise.
 */
export interface Outbox {
  /** A frame for this connection alone. */
  reply(frame: Buffer): void;
  /** A frame that may not be left out. */
  event(event: EventFrame): void;
  /** A state whose newest frame is enough: a later one replaces one of the same key that still waits. */
  latest(key: string, frame: Buffer): void;
  drop(key: string): void;
  /** Whether the oldest waiting event is still within what is retained. Asked from time to time. */
  check(lastSeq: number): void;
}

interface Waiting {
  frame: Buffer;
  event: EventFrame | null;
}

type Limits = Pick<StreamLimits, 'highWaterBytes' | 'maxQueueBytes' | 'retainedEvents' | 'retainedMs'>;

/** `close` is called at most once, when the connection is too slow; nothing is sent after it. */
export function createOutbox(
  socket: OutSocket,
  limits: Limits,
  clock: () => number,
  close: (reason: CloseReason) => void,
): Outbox {
  const queue: Waiting[] = [];
  const states = new Map<string, Buffer>();
  let queuedBytes = 0;
  let draining = false;
  let closed = false;

  function fail(reason: CloseReason): void {
    if (closed) return;
    closed = true;
    queue.length = 0;
    states.clear();
    close(reason);
  }

  /** Hands a frame to the socket; a frame that fills it asks to be told when it is gone. */
  function send(frame: Buffer): void {
    if (socket.bufferedAmount + frame.length < limits.highWaterBytes) return socket.send(frame, { binary: false });
    draining = true;
    socket.send(frame, { binary: false }, () => {
      draining = false;
      drain();
    });
  }

  function drain(): void {
    let sent = 0;
    while (!closed && !draining && sent < queue.length) {
      const { frame } = queue[sent]!;
      queuedBytes -= frame.length;
      sent += 1;
      send(frame);
    }
    if (!closed) queue.splice(0, sent);
    for (const [key, frame] of states) {
      if (closed || draining) return;
      states.delete(key);
      send(frame);
    }
  }

  function push(frame: Buffer, event: EventFrame | null): void {
    if (closed) return;
    if (!draining) return send(frame);
    queue.push({ frame, event });
    queuedBytes += frame.length;
    if (queuedBytes > limits.maxQueueBytes) fail(CLOSE.queueFull);
    else if (event !== null) check(event.seq);
  }

  function check(lastSeq: number): void {
    const oldest = queue.find((waiting) => waiting.event !== null)?.event;
    if (oldest === undefined || oldest === null) return;
    const behind = lastSeq - oldest.seq >= limits.retainedEvents || clock() - oldest.timeMs > limits.retainedMs;
    if (behind) fail(CLOSE.behind);
  }

  return {
    reply: (frame) => push(frame, null),
    event: (event) => push(event.frame, event),
    latest(key, frame) {
      if (closed) return;
      if (draining) states.set(key, frame);
      else send(frame);
    },
    drop: (key) => states.delete(key),
    check,
  };
}
