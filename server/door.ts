import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { createApp, type AppLogger } from './app.js';
import { ApiError } from './errors.js';
import { closeServer, listenOn, type Listening } from './listen.js';
import { probeRoutes } from './ops/probes.js';
import { clientAddress, networkOf } from './rate-limit.js';

/** How long a request waits for the next application before it is refused: about as long as most clients wait. */
const HOLD_MS = 10_000;
/** How many requests may wait; further ones are refused at once. */
const MAX_HELD = 1_000;
/** How many of them may come from one address, so that no client can use up all places. */
const MAX_HELD_PER_ADDRESS = 100;
/** How long an application that leaves waits for its requests in flight before it cuts them off. */
const LEAVE_GRACE_MS = 3_000;
const RETRY_AFTER_SEC = '1';
/** Probes are answered at once and never wait. */
const PROBE = /^\/(?:live|ready|active)\/?(?:\?|$)/;

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/** An application that answers at a door. */
export interface Answering {
  /** `http://host:port` with the real port, also when 0 was asked for. */
  url: string;
  port: number;
  /** Emits `upgrade` as an HTTP server does. */
  upgrades: EventEmitter;
  /** Takes no new request: new ones wait for the next application. Requests in flight end within a grace period. */
  leave(): Promise<void>;
}

/** A listening address that stays open while one application replaces another, so that no connection is refused in between. */
export interface Door {
  /** Takes the address before there is an application; liveness probes then succeed. Rejects as `answer` does. */
  open(): Promise<void>;
  /**
   * Hands requests to this application from now on. The first one takes the address, and the address stays taken until `close`. Rejects
   * with `ListenError`; it may then be called again.
   */
  answer(app: Koa): Promise<Answering>;
  /** Closes the address; requests that wait are refused with 503. */
  close(): Promise<void>;
}

interface DoorOptions {
  /** 0 takes any free port, and keeps it. */
  port: number;
  host: string;
  /** Setting that is named in the error when another program has the port. */
  portSetting?: string;
  logger: AppLogger;
  /** Takes client addresses from the end of X-Forwarded-For, where a proxy in front writes them. Default: no. */
  trustProxy?: boolean;
  holdMs?: number;
}

interface Application {
  handle: Handle;
  upgrades: EventEmitter;
  inFlight: Set<ServerResponse>;
}

/** Creates a door without an application: it takes no address before it is opened or the first application comes. */
export function createDoor(options: DoorOptions): Door {
  const { port, host, portSetting = 'PORT', logger, trustProxy = false, holdMs = HOLD_MS } = options;
  let listening: Promise<Listening> | null = null;
  let current: Application | null = null;
  let held = 0;
  const heldOf = new Map<string, number>();
  let isClosed = false;
  const arrivals = new EventEmitter();
  arrivals.setMaxListeners(0);
  const nobody = nobodyAnswers(logger).callback();

  /** Waits for an application; null when none comes in time, or the client disconnects first. */
  async function next(request: IncomingMessage): Promise<Application | null> {
    if (current !== null || isClosed || held >= MAX_HELD) return current;
    const network = networkOf(clientAddress(request, trustProxy));
    const others = heldOf.get(network) ?? 0;
    if (others >= MAX_HELD_PER_ADDRESS) return null;
    held += 1;
    heldOf.set(network, others + 1);
    const over = new AbortController();
    const gone = (): void => over.abort();
    request.socket.once('close', gone);
    const { signal } = over;
    const quietly = (wait: Promise<unknown>): Promise<unknown> => wait.catch(() => undefined);
    try {
      await Promise.race([
        quietly(once(arrivals, 'change', { signal })),
        quietly(delay(holdMs, undefined, { signal, ref: false })),
      ]);
      return current;
    } finally {
      request.socket.off('close', gone);
      over.abort();
      held -= 1;
      const left = (heldOf.get(network) ?? 1) - 1;
      if (left > 0) heldOf.set(network, left);
      else heldOf.delete(network);
    }
  }

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const app = current ?? (PROBE.test(request.url ?? '') ? null : await next(request));
    // Nothing is executed for a client that has disconnected; above all no order is placed.
    if (response.destroyed) return;
    if (app === null) {
      if (isClosed) response.setHeader('Connection', 'close');
      return void nobody(request, response);
    }
    app.inFlight.add(response);
    response.once('close', () => app.inFlight.delete(response));
    app.handle(request, response);
  }

  async function onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => undefined);
    const app = current ?? (await next(request));
    if (socket.destroyed) return;
    if (app === null || app.upgrades.listenerCount('upgrade') === 0) return refuse(socket);
    app.upgrades.emit('upgrade', request, socket, head);
  }

  async function listen(): Promise<Listening> {
    const opened = await listenOn((request, response) => void onRequest(request, response), {
      port,
      host,
      portSetting,
      trustProxy,
    });
    opened.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      void onUpgrade(request, socket, head);
    });
    return opened;
  }

  function address(): Promise<Listening> {
    listening ??= listen();
    return listening.catch((error: unknown) => {
      listening = null;
      throw error;
    });
  }

  function take(app: Koa): Application {
    const taken: Application = { handle: app.callback(), upgrades: new EventEmitter(), inFlight: new Set() };
    current = taken;
    // Waiting requests are served in the next turn of the event loop, after a WebSocket server could attach its listener.
    setImmediate(() => arrivals.emit('change'));
    return taken;
  }

  return {
    async open() {
      await address();
    },
    async answer(app) {
      const opened = await address();
      const taken = take(app);
      return {
        url: opened.url,
        port: opened.port,
        upgrades: taken.upgrades,
        async leave() {
          if (current === taken) current = null;
          await untilIdle(taken.inFlight);
        },
      };
    },
    async close() {
      isClosed = true;
      current = null;
      arrivals.emit('change');
      const opened = await listening?.catch(() => null);
      if (opened !== null && opened !== undefined) await closeServer(opened.server);
    },
  };
}

/** Resolves when every response has ended; those that have not in time are cut off. */
async function untilIdle(inFlight: ReadonlySet<ServerResponse>): Promise<void> {
  const ends = [...inFlight].map((response) => new Promise<void>((resolve) => response.once('close', resolve)));
  if (ends.length === 0) return;
  const cutOff = setTimeout(() => inFlight.forEach((response) => response.destroy()), LEAVE_GRACE_MS);
  await Promise.all(ends);
  clearTimeout(cutOff);
}

/** Answers while there is no application: the process is alive and serves nothing. */
function nobodyAnswers(logger: AppLogger): Koa {
  const probes = probeRoutes({
    failure: () => null,
    ready: () => ({ ready: false, reason: 'starting' }),
    active: () => ({ active: false, reason: 'starting' }),
  });
  return createApp({
    routers: [probes],
    logger,
    unmatched: (ctx) => {
      ctx.set('Retry-After', RETRY_AFTER_SEC);
      throw new ApiError(503, 'NOT_READY', 'standby: the server is starting, nothing was stored; try again');
    },
  });
}

function refuse(socket: Duplex): void {
  const message = 'starting: try again';
  const head = `HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: ${message.length}\r\n`;
  socket.end(`${head}Retry-After: ${RETRY_AFTER_SEC}\r\nConnection: close\r\n\r\n${message}`);
}
