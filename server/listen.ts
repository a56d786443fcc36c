import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type Koa from 'koa';
import { clientAddress, networkOf } from './rate-limit.js';

/**
 * How long an idle connection stays open: longer than load balancers and clients keep theirs, usually 60 s, because a client that reuses a
 * connection just as the server closes it sees a reset.
 */
const KEEP_ALIVE_MS = 65_000;

/** How long a closing server waits for requests in flight before it cuts them off. */
const CLOSE_GRACE_MS = 3_000;

/**
 * How long the bytes of an answer may wait in memory for a client to take them. The time in which an answer is made counts for nothing, so
 * that requests may be held and downloads read page by page.
 */
export interface AnswerLimits {
  /** How long the client may take nothing while bytes wait for it. */
  stallMs: number;
  /** How long it may take over what is left once an answer is complete, and the bytes for which it has a second more. */
  answerMs: number;
  bytesPerSec: number;
  /**
   * Bytes of answers that may wait for the clients of one address, of IPv6 of one network of 64 bits, over all its connections. An answer that
   * is longer by itself may wait alone.
   */
  networkBytes: number;
}

/** `answerMs` is more than the slowest download needs for the last pages that wait for it, which `row-stream.ts` lets go at 16 KiB in 30 s. */
export const ANSWER_LIMITS: AnswerLimits = {
  ...{ stallMs: 30_000, answerMs: 180_000, bytesPerSec: 64 * 1024 },
  networkBytes: 32 * 2 ** 20,
};

/**
 * How often answers that wait are looked at. What waits at one look alone may be on its way, so that what can be made between two may wait
 * beyond the limit.
 */
const LOOK_MS = 200;

/**
 * Whether a request wants a WebSocket. An offer of any other protocol is optional and not taken: the request is served as it is. Java's client and
 * `curl --http2` send one with each request; without this they would get the answer of the WebSocket endpoint.
 */
const asksForWebSocket = ({ headers }: IncomingMessage): boolean => /\bwebsocket\b/i.test(headers.upgrade ?? '');

/** The server could not take its address; `code` is PORT_IN_USE or LISTEN_FAILED. */
export class ListenError extends Error {
  constructor(
    readonly code: 'PORT_IN_USE' | 'LISTEN_FAILED',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ListenError';
  }
}

export interface Listening {
  /** For WebSocket upgrades. */
  server: Server;
  /** `http://host:port` with the real port, also when 0 was asked for. */
  url: string;
  port: number;
  /** Takes no new connection, lets requests in flight end within a grace period, then cuts them off. */
  close(): Promise<void>;
}

/**
 * Serves the application. `port` 0 takes any free port. Rejects with `ListenError`, whose message names the setting to change when another
 * program has the port.
 */
export async function listen(app: Koa, port: number, host: string, portSetting = 'PORT'): Promise<Listening> {
  const handle = app.callback();
  const place = { port, host, portSetting, trustProxy: app.proxy };
  return listenOn((request, response) => void handle(request, response), place);
}

/** Where to listen, the setting of the port, and whether a proxy in front writes client addresses to the end of X-Forwarded-For. */
interface Place {
  port: number;
  host: string;
  portSetting: string;
  trustProxy?: boolean;
}

/** The same for any handler of requests. */
export async function listenOn(
  handle: RequestListener,
  { port, host, portSetting, trustProxy = false, limits = ANSWER_LIMITS }: Place & { limits?: AnswerLimits },
): Promise<Listening> {
  const server = createServer({ shouldUpgradeCallback: asksForWebSocket });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // Before any other listener of requests.
  limitAnswers(server, limits, (request) => networkOf(clientAddress(request, trustProxy)));
  server.on('request', handle);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, port, host, portSetting)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new ListenError('LISTEN_FAILED', 'The server has no TCP port');
  const urlHost = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return { server, port: address.port, url: `http://${urlHost}:${address.port}`, close: () => closeServer(server) };
}

/** An answer that has not been sent. */
interface OpenAnswer {
  network: string;
  /** When it has to be sent; Infinity while it is being made, or one before it on its connection. */
  untilMs: number;
  /** Bytes of it waited at the last look. */
  waited: boolean;
}

/** Destroys connections whose client leaves bytes of answers waiting for too long, or too many of them. */
function limitAnswers(server: Server, limits: AnswerLimits, networkFor: (request: IncomingMessage) => string): void {
  const { stallMs } = limits;
  /** In the order of their requests, in which a connection sends them. */
  const open = new Map<ServerResponse, OpenAnswer>();
  server.on('request', (request, response) => {
    // The time begins anew with each byte that comes or goes, also of a write of which the client takes a part. Without bytes that wait
    // the answer is being made.
    response.setTimeout(stallMs, () => {
      if (response.writableLength > 0) response.destroy();
    });
    open.set(response, { network: networkFor(request), untilMs: Infinity, waited: false });
    response.once('close', () => open.delete(response));
  });
  // Nothing else ends a connection whose wish for a WebSocket was refused while the client keeps its own end open.
  server.on('upgrade', (_request, socket: Socket) => {
    if (server.listenerCount('upgrade') === 1) socket.destroy();
    else socket.setTimeout(stallMs, () => socket.destroy());
  });

  server.once('listening', () => {
    const looking = setInterval(() => {
      // An answer that waits behind another one on its connection has no socket of its own yet, and is not told of that one's end.
      for (const [response] of open) if (response.req.socket.destroyed) open.delete(response);
      endLate(open, limits);
      endLargest(open, limits);
    }, LOOK_MS);
    looking.unref();
    server.once('close', () => clearInterval(looking));
  });
}

/** Destroys connections with a complete answer that had to be sent by now. */
function endLate(open: Map<ServerResponse, OpenAnswer>, { answerMs, bytesPerSec }: AnswerLimits): void {
  const nowMs = performance.now();
  /** What the client has to take of each connection first; Infinity behind an answer that is still being made. */
  const ahead = new Map<Socket, number>();
  for (const [response, answer] of open) {
    const { socket } = response.req;
    const bytes = (ahead.get(socket) ?? 0) + (response.writableEnded ? response.writableLength : Infinity);
    ahead.set(socket, bytes);
    if (nowMs >= answer.untilMs) socket.destroy();
    else if (answer.untilMs === Infinity) answer.untilMs = nowMs + answerMs + (bytes / bytesPerSec) * 1_000;
  }
}

/** Destroys, of each network that leaves too much waiting, the connections that most waits for. */
function endLargest(open: ReadonlyMap<ServerResponse, OpenAnswer>, { networkBytes }: AnswerLimits): void {
  const waiting: { socket: Socket; network: string; bytes: number }[] = [];
  for (const [response, answer] of open) {
    const bytes = response.writableLength;
    if (answer.waited && bytes > 0) waiting.push({ socket: response.req.socket, network: answer.network, bytes });
    answer.waited = bytes > 0;
  }
  for (const [, answers] of Map.groupBy(waiting, ({ network }) => network)) {
    let bytes = bytesOf(answers);
    if (bytes <= networkBytes) continue;
    const connections = [...Map.groupBy(answers, ({ socket }) => socket)]
      .map(([socket, own]) => ({ socket, answers: own.length, bytes: bytesOf(own) }))
      .sort((a, b) => b.bytes - a.bytes);
    let left = answers.length;
    for (const one of connections) {
      if (bytes <= networkBytes || left === 1) break;
      one.socket.destroy();
      bytes -= one.bytes;
      left -= one.answers;
    }
  }
}

const bytesOf = (answers: readonly { bytes: number }[]): number => answers.reduce((sum, { bytes }) => sum + bytes, 0);

function listenError(error: NodeJS.ErrnoException, port: number, host: string, portSetting: string): ListenError {
  if (error.code !== 'EADDRINUSE') {
    return new ListenError('LISTEN_FAILED', `Can't listen on ${host}:${port}: ${error.message}`, { cause: error });
  }
  const message = `Port ${port} on ${host} is in use. Stop the other program or set ${portSetting} to a free port.`;
  return new ListenError('PORT_IN_USE', message, { cause: error });
}

/** Takes no new connection, lets requests in flight end within a grace period, then cuts them off. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const cutOff = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  cutOff.unref();
  try {
    await new Promise<void>((resolve, reject) => {
      server.close((error) => (error ? reject(error) : resolve()));
      server.closeIdleConnections();
    });
  } finally {
    clearTimeout(cutOff);
  }
}
