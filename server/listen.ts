import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type Koa from 'koa';

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
}

/** `answerMs` is more than the slowest download needs for the last pages that wait for it, which `row-stream.ts` lets go at 16 KiB in 30 s. */
export const ANSWER_LIMITS: AnswerLimits = { stallMs: 30_000, answerMs: 180_000, bytesPerSec: 64 * 1024 };

/** How often complete answers that still wait are looked at. */
const LOOK_MS = 1_000;

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
  return listenOn((request, response) => void handle(request, response), { port, host, portSetting });
}

/** Where to listen, and the setting of the port. */
interface Place {
  port: number;
  host: string;
  portSetting: string;
}

/** The same for any handler of requests. */
export async function listenOn(
  handle: RequestListener,
  { port, host, portSetting, limits = ANSWER_LIMITS }: Place & { limits?: AnswerLimits },
): Promise<Listening> {
  const server = createServer({ shouldUpgradeCallback: asksForWebSocket });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // Before any other listener of requests.
  limitAnswers(server, limits);
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

/** Destroys connections whose client leaves bytes of answers waiting for too long. */
function limitAnswers(server: Server, { stallMs, answerMs, bytesPerSec }: AnswerLimits): void {
  /** Answers that have not been sent, and when those that are complete have to be. */
  const open = new Map<ServerResponse, number>();
  server.on('request', (_request, response) => {
    // The time begins anew with each byte that comes or goes, also of a write of which the client takes a part. Without bytes that wait
    // the answer is being made.
    response.setTimeout(stallMs, () => {
      if (response.writableLength > 0) response.destroy();
    });
    open.set(response, Infinity);
    response.once('close', () => open.delete(response));
  });
  // Nothing else ends a connection whose wish for a WebSocket was refused while the client keeps its own end open.
  server.on('upgrade', (_request, socket: Socket) => {
    if (server.listenerCount('upgrade') === 1) socket.destroy();
    else socket.setTimeout(stallMs, () => socket.destroy());
  });

  const look = (): void => {
    const nowMs = performance.now();
    for (const [response, untilMs] of open) {
      const { socket } = response.req;
      // An answer that waits behind another one on its connection has no socket of its own yet, and is not told of that one's end.
      if (socket.destroyed) open.delete(response);
      else if (nowMs >= untilMs) socket.destroy();
      else if (response.writableEnded && response.socket !== null && untilMs === Infinity)
        open.set(response, nowMs + answerMs + (response.writableLength / bytesPerSec) * 1_000);
    }
  };
  server.once('listening', () => {
    const looking = setInterval(look, LOOK_MS);
    looking.unref();
    server.once('close', () => clearInterval(looking));
  });
}

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
