import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type Koa from 'koa';

/**
 * How long an idle connection stays open: longer than load balancers and clients keep theirs, usually 60 s, because a client that reuses a
 * connection just as the server closes it sees a reset.
 */
const KEEP_ALIVE_MS = 65_000;

/** How long a closing server waits for requests in flight before it cuts them off. */
const CLOSE_GRACE_MS = 3_000;

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

/** The same for any handler of requests. */
export async function listenOn(
  handle: RequestListener,
  { port, host, portSetting }: { port: number; host: string; portSetting: string },
): Promise<Listening> {
  const server = createServer({ shouldUpgradeCallback: asksForWebSocket }, handle);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
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
