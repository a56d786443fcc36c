import { CLOSE, type CloseReason, type StreamLimits } from './limits.js';
import { stringify } from '../../core/json.js';

/** What a send queue needs of a socket. */
interface OutSocket {
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
 * Frames of one connection, in their order. While the socket is full they wait here. A connection with too many waiting bytes, or with too
 * old ones, is closed; dropping frames would leave the client without knowing what it missed.
 */
export interface SendQueue {
  /** A frame for this connection alone. */
  reply(frame: Buffer): void;
  /** A frame that must not be dropped. */
  event(event: EventFrame): void;
  /** A state whose newest frame is enough: a later one replaces one of the same key that still waits. */
  latest(key: string, frame: Buffer): void;
  drop(key: string): void;
  /** Gives the connection up if its oldest waiting event is no longer retained, or if anything has waited for too long. Asked from time to time. */
  check(lastSeq: number): void;
}

/** A connection, as feeds see it. */
export interface UpdateListener {
  queue: SendQueue;
  /** Ends the connection, because updates of it were lost. */
  lost(): void;
}

interface Waiting {
  frame: Buffer;
  event: EventFrame | null;
  /** Since when it waits. */
  sinceMs: number;
}

type Limits = Pick<StreamLimits, 'highWaterBytes' | 'maxQueueBytes' | 'retainedEvents' | 'retainedMs'>;

const AS_TEXT = { binary: false } as const;

/**
 * A class instead of a factory with closures: an event goes to a thousand connections in a row, none of which is in the processor's cache,
 * and each closure would be another object to load.
 */
class SocketSendQueue implements SendQueue {
  private closed = false;
  private draining = false;
  /** While draining, when the frame that fills the socket was passed to it. */
  private filledMs = 0;
  private queuedBytes = 0;
  private readonly queue: Waiting[] = [];
  private readonly states = new Map<string, Buffer>();

  constructor(
    private readonly socket: OutSocket,
    private readonly limits: Limits,
    private readonly clock: () => number,
    private readonly close: (reason: CloseReason) => void,
  ) {}

  reply(frame: Buffer): void {
    this.push(frame, null);
  }

  event(event: EventFrame): void {
    this.push(event.frame, event);
  }

  latest(key: string, frame: Buffer): void {
    if (this.closed) return;
    if (this.draining) this.states.set(key, frame);
    else this.send(frame);
  }

  drop(key: string): void {
    this.states.delete(key);
  }

  check(lastSeq: number): void {
    if (this.closed || !this.draining) return;
    const { retainedEvents, retainedMs } = this.limits;
    const event = this.queue.find((waiting) => waiting.event !== null)?.event ?? null;
    // States that wait are replaced by newer ones, and wait no longer than the frame that fills the socket.
    const sinceMs = Math.min(this.filledMs, this.queue[0]?.sinceMs ?? Infinity);
    const isBehind = event !== null && lastSeq - event.seq >= retainedEvents;
    if (isBehind || this.clock() - sinceMs > retainedMs) this.fail(CLOSE.behind);
  }

  private push(frame: Buffer, event: EventFrame | null): void {
    if (this.closed) return;
    if (!this.draining) return this.send(frame);
    this.queue.push({ frame, event, sinceMs: event?.timeMs ?? this.clock() });
    this.queuedBytes += frame.length;
    if (this.queuedBytes > this.limits.maxQueueBytes) this.fail(CLOSE.queueFull);
    else if (event !== null) this.check(event.seq);
  }

  /** Passes a frame to the socket; for a frame that fills the socket, a callback continues once it is sent. */
  private send(frame: Buffer): void {
    const { socket } = this;
    if (socket.bufferedAmount + frame.length < this.limits.highWaterBytes) return socket.send(frame, AS_TEXT);
    this.draining = true;
    this.filledMs = this.clock();
    socket.send(frame, AS_TEXT, () => {
      this.draining = false;
      this.drain();
    });
  }

  private drain(): void {
    let sent = 0;
    while (!this.closed && !this.draining && sent < this.queue.length) {
      const { frame } = this.queue[sent]!;
      this.queuedBytes -= frame.length;
      sent += 1;
      this.send(frame);
    }
    if (!this.closed) this.queue.splice(0, sent);
    for (const [key, frame] of this.states) {
      if (this.closed || this.draining) return;
      this.states.delete(key);
      this.send(frame);
    }
  }

  private fail(reason: CloseReason): void {
    if (this.closed) return;
    this.closed = true;
    this.queue.length = 0;
    this.states.clear();
    this.close(reason);
  }
}

/** `close` is called at most once, when the connection is too slow; nothing is sent after it. */
export const createSendQueue = (
  socket: OutSocket,
  limits: Limits,
  clock: () => number,
  close: (reason: CloseReason) => void,
): SendQueue => new SocketSendQueue(socket, limits, clock, close);

/** A message as the bytes that are sent. */
const frameOf = (message: object): Buffer => Buffer.from(stringify(message));

/** A push, or an answer that carries a channel of its own. */
export const channelFrame = (channel: string, data: unknown): Buffer => frameOf({ channel, data });

export const PONG: Buffer = frameOf({ channel: 'pong' });

export const errorFrame = (text: string): Buffer => channelFrame('error', text);

/** Acknowledges a subscription exactly as it was sent: clients find their request by its own fields. */
export const acknowledgement = (method: 'subscribe' | 'unsubscribe', subscription: unknown): Buffer =>
  channelFrame('subscriptionResponse', { method, subscription });

export const postFrame = (id: number, response: { type: string; payload: unknown }): Buffer =>
  channelFrame('post', { id, response });
