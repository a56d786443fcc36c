/** A connection to NATS that comes back by itself. Core NATS delivers at most once: no reply says nothing. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  connect,
  credsAuthenticator,
  type Msg,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node';
import type { GatewayLogger } from '../orders/types.js';

export interface BusOptions {
  /** `nats://` or `tls://` with host and port. */
  servers: readonly string[];
  user?: string | undefined;
  password?: string | undefined;
  /** Contents of a credentials file. */
  credentials?: Uint8Array | undefined;
  /** Files in PEM. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string } | undefined;
  /** Shown by the server's monitoring. */
  name: string;
  logger: Pick<GatewayLogger, 'info' | 'warn'>;
}

/** `undelivered`: the request never left. That nobody listens on a subject anybody can say, so it is `unknown`, at once. */
export type Asked = { kind: 'reply'; data: Uint8Array } | { kind: 'undelivered' } | { kind: 'unknown' };

export interface Bus {
  isConnected(): boolean;
  /** Connections that ended, since the start. */
  lost(): number;
  /** Never rejects. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Asked>;
  /**
   * Answers requests on the subject, on this connection and those that follow it, until the returned function is called. Where `handle`
   * says null, or rejects, nothing is answered.
   */
  serve(subject: string, handle: (data: Uint8Array) => Promise<Uint8Array | null>): () => void;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 2_000;
const PAUSE_MS = 500;
const RECONNECT_MS = 200;
/** Pause before a subscription is tried again that was refused. */
const REFUSED_MS = 2_000;
const DRAIN_MS = 1_000;
/** A server that does not answer two pings is gone. */
const PING_MS = 1_000;

interface Service {
  subject: string;
  handle(data: Uint8Array): Promise<Uint8Array | null>;
  unsubscribe(): void;
}

/** Connects in the background, as often as it takes. */
export function createBus(options: BusOptions): Bus {
  const { logger } = options;
  const closing = new AbortController();
  const { signal } = closing;
  const services = new Set<Service>();
  let connection: NatsConnection | null = null;
  let isUp = false;
  let lost = 0;

  function attach(service: Service, to: NatsConnection): void {
    const subscription = to.subscribe(service.subject, {
      callback(error, message: Msg) {
        if (error !== null) {
          logger.warn({ err: error, subject: service.subject }, 'NATS refuses a subscription; it will be tried again');
          void attachAgain(service, to);
          return;
        }
        // A request that nobody waits for is not worth an answer, but may be one whose reply was lost.
        answer(service, message, to).catch((failure: unknown) =>
          logger.warn({ err: failure }, 'a request over NATS could not be answered'),
        );
      },
    });
    service.unsubscribe = () => subscription.unsubscribe();
  }

  /** NATS forgets a subscription that its server refuses, also one that it allows later, and keeps the connection. */
  async function attachAgain(service: Service, to: NatsConnection): Promise<void> {
    await delay(REFUSED_MS, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted && services.has(service) && connection === to && !to.isClosed()) attach(service, to);
  }

  /** Rejects when the reply can't be sent: it is too long, or the connection has ended meanwhile. */
  async function answer({ handle }: Service, message: Msg, to: NatsConnection): Promise<void> {
    const reply = await handle(message.data);
    if (reply !== null && message.reply !== undefined && message.reply !== '' && !to.isClosed()) message.respond(reply);
  }

  async function follow(one: NatsConnection): Promise<void> {
    for await (const status of one.status()) {
      if (status.type === 'disconnect') {
        if (isUp) lost += 1;
        isUp = false;
        logger.warn({}, 'the connection to NATS is lost; connecting again');
      } else if (status.type === 'reconnect') {
        isUp = true;
        logger.info({}, 'connected to NATS again');
      }
    }
  }

  async function run(): Promise<void> {
    let said = '';
    while (!signal.aborted) {
      try {
        connection = await connect(connectionOptions(options));
        said = '';
        if (signal.aborted) {
          await connection.close();
          break;
        }
        isUp = true;
        logger.info({ server: connection.getServer() }, 'connected to NATS');
        for (const service of services) attach(service, connection);
        void follow(connection);
        const error = await connection.closed();
        isUp = false;
        if (!signal.aborted) logger.warn({ err: error ?? null }, 'the connection to NATS ended; connecting again');
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== said) logger.warn({ err: error }, 'NATS can not be reached; it will be tried again');
        said = message;
      }
      connection = null;
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  const running = run();

  async function request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Asked> {
    // While it connects again the library keeps messages, and sends them later.
    if (connection === null || !isUp || connection.isClosed()) return { kind: 'undelivered' };
    try {
      const message = await connection.request(subject, data, { timeout: timeoutMs });
      return { kind: 'reply', data: message.data };
    } catch {
      return { kind: 'unknown' };
    }
  }

  return {
    isConnected: () => isUp,
    lost: () => lost,
    request,
    serve(subject, handle) {
      const service: Service = { subject, handle, unsubscribe: () => undefined };
      services.add(service);
      if (connection !== null && !connection.isClosed()) attach(service, connection);
      return () => {
        services.delete(service);
        service.unsubscribe();
      };
    },
    async close() {
      closing.abort();
      // What was answered is still sent; a server that does not answer is not waited for.
      if (isUp) await Promise.race([connection?.drain().catch(() => undefined), delay(DRAIN_MS)]);
      await connection?.close().catch(() => undefined);
      await running;
    },
  };
}

/** Connects to NATS once, with a login that must be taken, and leaves again. Rejects with what stands in the way, within seconds. */
export async function tryBus(options: Omit<BusOptions, 'logger'>): Promise<void> {
  const connection = await connect({ ...connectionOptions(options), reconnect: false });
  try {
    await connection.flush();
  } finally {
    await connection.close();
  }
}

function connectionOptions({
  servers,
  user,
  password,
  credentials,
  tls,
  name,
}: Omit<BusOptions, 'logger'>): NodeConnectionOptions {
  return {
    servers: [...servers],
    name,
    timeout: CONNECT_TIMEOUT_MS,
    reconnectTimeWait: RECONNECT_MS,
    maxReconnectAttempts: -1,
    pingInterval: PING_MS,
    maxPingOut: 2,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(credentials) }),
    ...(tls === undefined ? {} : { tls }),
  };
}
