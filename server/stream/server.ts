import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { clientAddress } from '../rate-limit.js';
import type { Gateway } from '../orders/engine.js';
import type { InfoDeps } from '../orders/info/types.js';
import type { GatewayLogger } from '../orders/types.js';
import { createAccountFeed, type SwapOrdersSource } from './account-feed.js';
import { createBookFeed } from './books.js';
import { createConnection } from './connection.js';
import { createSendQueue, type SendQueue } from './send-queue.js';
import { CLOSE, STREAM_LIMITS, type CloseReason, type StreamLimits } from './limits.js';
import { createQuota } from './quota.js';
import { createPlatformFeed, type PlatformFacts } from './platform.js';
import { createMarketFeed } from './market-feed.js';
import type { Sessions } from './sessions.js';
import { createUpdateFeed } from './updates.js';

interface StreamDeps {
  /** Emits `upgrade`: an HTTP server, or what a door has for an application. */
  server: EventEmitter;
  gateway: Gateway;
  info: InfoDeps;
  /** Public facts that are pushed. */
  platform: PlatformFacts;
  /** Null where the swap API is not served. */
  swapOrders: SwapOrdersSource | null;
  sessions: Sessions;
  logger: GatewayLogger;
  /** Unix milliseconds. */
  clock: () => number;
  /** Takes the client address from the end of X-Forwarded-For. */
  trustProxy?: boolean;
  limits?: Partial<StreamLimits>;
  /** Why no connection is accepted at the moment; null otherwise. Default: always null. */
  refusal?: () => string | null;
}

export interface Stream {
  connections(): number;
  /** Closes every connection that is open now for this reason. */
  disconnect(why: CloseReason): void;
  /** Closes every connection with code 1001, and cuts off clients that don't answer. */
  close(): Promise<void>;
}

const PATH = '/ws';
/** How long a closing handshake may take, unless the connection is closed for slowness (`farewellMs`). */
const CLOSE_GRACE_MS = 1_000;
const SWEEP_MS = 1_000;

interface Client {
  socket: WebSocket;
  queue: SendQueue;
  heardMs: number;
}

/** Serves WebSocket connections on /ws of the HTTP server. Nothing is sent before a client's first message. */
export function serveStream(deps: StreamDeps): Stream {
  const { server, gateway, clock, logger } = deps;
  const limits: StreamLimits = { ...STREAM_LIMITS, ...deps.limits };
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxMessageBytes,
    // One compressor per connection costs more than the bytes it saves.
    perMessageDeflate: false,
    clientTracking: false,
  });
  const books = createBookFeed(gateway, limits, clock);
  const updates = createUpdateFeed({ gateway, db: deps.info.db, clock, logger });
  const platform = createPlatformFeed(deps.platform, limits, clock, logger);
  const market = createMarketFeed({ ...deps.info, limits, logger, nextSeq: updates.nextSeq });
  const accounts = createAccountFeed({ ...deps.info, limits, logger, swapOrders: deps.swapOrders });
  const accountQuota = createQuota(limits.maxAccountSubscriptions);
  const connectionQuota = createQuota(limits.maxConnectionsPerAddress);
  const feeds = { books, market, accounts, updates, platform };
  const clients = new Set<Client>();
  const unlisten = gateway.listen((event) => {
    books.changed(event.markets);
    updates.onEvent(event);
    if (event.type === 'generations') platform.changed();
    market.onEvent(event);
    accounts.onEvent(event);
  });

  function onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => undefined);
    const path = (request.url ?? '').split('?')[0];
    if (path !== PATH) return refuseUpgrade(socket, '404 Not Found', 'WebSocket connections are served on /ws');
    const refusal = deps.refusal?.() ?? null;
    if (refusal !== null) return refuseUpgrade(socket, '503 Service Unavailable', refusal);
    if (clients.size >= limits.maxConnections)
      return refuseUpgrade(socket, '503 Service Unavailable', `More than ${limits.maxConnections} connections`);
    if (socket.destroyed) return;
    const address = clientAddress(request, deps.trustProxy ?? false);
    const most = limits.maxConnectionsPerAddress;
    if (!connectionQuota.take(address))
      return refuseUpgrade(socket, '503 Service Unavailable', `More than ${most} connections of one address`);
    // Also of a socket whose handshake fails.
    socket.once('close', () => connectionQuota.give(address));
    sockets.handleUpgrade(request, socket, head, (accepted) => accept(accepted, address));
  }

  function accept(socket: WebSocket, address: string): void {
    let ended = false;
    /** Stops serving the client, because it could not get the answers; it can still read the socket's buffer and the close code. */
    const end = ({ code, reason }: CloseReason): void => {
      if (ended) return;
      ended = true;
      logger.warn({ address, code, reason }, 'gave a connection up');
      connection.onClose();
      socket.close(code, reason);
      setTimeout(() => socket.terminate(), limits.farewellMs).unref();
    };
    const queue = createSendQueue(socket, limits, clock, end);
    const client: Client = { socket, queue, heardMs: clock() };
    const connection = createConnection({ ...deps, ...feeds, accountQuota, limits }, queue, {
      address,
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      lost: () => end(CLOSE.internal),
      flooded: () => end(CLOSE.flood),
    });
    clients.add(client);
    const heard = (): void => {
      client.heardMs = clock();
    };
    const probed = (): void => {
      heard();
      if (!ended) connection.onProbe();
    };
    socket.on('ping', probed);
    socket.on('pong', probed);
    socket.on('message', (data, isBinary) => {
      heard();
      if (ended) return;
      try {
        if (isBinary) connection.onBinary();
        else connection.onMessage((data as Buffer).toString('utf8'));
      } catch (error) {
        logger.error({ err: error }, 'a message could not be served');
        end(CLOSE.internal);
      }
    });
    // The library has already closed the connection with the protocol's own code; nothing is left to do.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clients.delete(client);
      connection.onClose();
    });
  }

  const sweeping = setInterval(() => {
    const nowMs = clock();
    for (const { socket, queue, heardMs } of clients) {
      queue.check(updates.lastSeq());
      if (nowMs - heardMs < limits.idleMs) continue;
      socket.close(CLOSE.idle.code, CLOSE.idle.reason);
      if (nowMs - heardMs >= limits.idleMs + CLOSE_GRACE_MS) socket.terminate();
    }
  }, SWEEP_MS);
  sweeping.unref();

  server.on('upgrade', onUpgrade);
  return {
    connections: () => clients.size,
    disconnect({ code, reason }) {
      for (const { socket } of clients) {
        socket.close(code, reason);
        setTimeout(() => socket.terminate(), limits.farewellMs).unref();
      }
    },
    async close() {
      server.off('upgrade', onUpgrade);
      clearInterval(sweeping);
      unlisten();
      books.stop();
      platform.stop();
      market.stop();
      accounts.stop();
      const closed = [...clients].map(({ socket }) => goodbye(socket));
      await Promise.all(closed);
    },
  };
}

async function goodbye(socket: WebSocket): Promise<void> {
  const cutOff = setTimeout(() => socket.terminate(), CLOSE_GRACE_MS);
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.close(1001, 'the server goes away');
  });
  clearTimeout(cutOff);
}

function refuseUpgrade(socket: Duplex, status: string, message: string): void {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(message)}\r\n`;
  socket.end(`${head}Connection: close\r\n\r\n${message}`);
  // The client may keep its own end open.
  setTimeout(() => socket.destroy(), CLOSE_GRACE_MS).unref();
}
