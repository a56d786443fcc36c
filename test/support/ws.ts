import { once } from 'node:events';
import { WebSocket } from 'ws';
import { conformFrame } from './api/asyncapi.js';

export interface Frame {
  channel: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests read frames of every shape
  data: any;
}

/** A raw client of /ws that keeps everything it received, and holds each frame against the AsyncAPI document. */
export interface WsClient {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  /** Set once the connection is closed. */
  readonly closed: Promise<{ code: number; reason: string }>;
  send(message: object | string): void;
  /** The first frame, received or to come, that nobody took yet and that fits. */
  take(fits: (frame: Frame) => boolean): Promise<Frame>;
  /** Subscribes and waits for the acknowledgement, or the error. */
  subscribe(subscription: object): Promise<Frame>;
  unsubscribe(subscription: object): Promise<Frame>;
  /** Posts and waits for the answer. */
  post(type: 'action' | 'info', payload: unknown): Promise<{ type: string; payload: unknown }>;
  close(): Promise<void>;
}

/** A bound, not an expectation: machines that run tests are busy. */
const WAIT_MS = 30_000;

/** Connects to the gateway at an HTTP URL. */
export async function connectWs(url: string): Promise<WsClient> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`);
  const frames: Frame[] = [];
  const taken = new Set<Frame>();
  const arrivals = new EventTarget();
  /** The first frame that the AsyncAPI document does not describe; whoever takes a frame next gets it as an error. */
  let strange: Error | undefined;
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame;
    try {
      conformFrame(frame);
    } catch (error) {
      strange ??= error as Error;
    }
    frames.push(frame);
    arrivals.dispatchEvent(new Event('frame'));
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  socket.on('error', () => undefined);
  await once(socket, 'open');
  let id = 0;

  const send = (message: object | string): void =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message));

  async function take(fits: (frame: Frame) => boolean): Promise<Frame> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      if (strange !== undefined) throw strange;
      const frame = frames.find((one) => !taken.has(one) && fits(one));
      if (frame !== undefined) {
        taken.add(frame);
        return frame;
      }
      if (Date.now() > deadline) throw new Error(`no such frame among ${JSON.stringify(frames).slice(0, 2_000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        arrivals.addEventListener('frame', () => (clearTimeout(timer), resolve()), { once: true });
      });
    }
  }

  const request = (method: string) => (subscription: object) => {
    send({ method, subscription });
    return take(({ channel }) => channel === 'subscriptionResponse' || channel === 'error');
  };

  return {
    socket,
    frames,
    closed,
    send,
    take,
    subscribe: request('subscribe'),
    unsubscribe: request('unsubscribe'),
    async post(type, payload) {
      id += 1;
      const mine = id;
      send({ method: 'post', id: mine, request: { type, payload } });
      return (await take(({ channel, data }) => channel === 'post' && data.id === mine)).data.response;
    },
    async close() {
      socket.close();
      await closed;
      if (strange !== undefined) throw strange;
    },
  };
}
