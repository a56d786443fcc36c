/**
 * New heads that endpoints push over WebSocket. They are only hints to scan now: no number or hash in them is trusted. Without such an
 * endpoint the watcher polls.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { WebSocket, type RawData } from 'ws';
import { toSafeInt } from '../../core/amounts.js';

export interface HeadFeedFacts {
  /** The endpoint's host. */
  name: string;
  connected: boolean;
  /** Since the start. */
  heads: number;
  failures: number;
}

export interface HeadFeed {
  facts(): HeadFeedFacts[];
  /** Resolves when all connections are closed, after the signal. */
  readonly done: Promise<void>;
}

interface HeadFeedOptions {
  urls: readonly string[];
  /** The number that an endpoint claims. */
  onHead(number: number): void;
  signal: AbortSignal;
  logger: Logger;
  /** Times that tests shorten. */
  paces?: Partial<typeof PACES>;
}

const PACES = {
  /** A silent connection is pinged after half of it and closed after all of it. */
  silenceMs: 30_000,
  firstPauseMs: 500,
  longestPauseMs: 60_000,
  windowMs: 10_000,
};
/**
 * Most messages, pings and pongs per window: far more than chains produce, and cheap to read; a connection that sends more is closed for a
 * while.
 */
const MOST_MESSAGES = 400;
/** A header is some kB. */
const MOST_BYTES = 64 * 1_024;
const FLOODS = 'it floods';
const HANDSHAKE_TIMEOUT_MS = 5_000;

/** Follows all endpoints at once, each on a connection of its own, until the signal stops it. Never rejects. */
export function startHeadFeed(options: HeadFeedOptions): HeadFeed {
  const followed = options.urls.map((url) => followHeads(url, options));
  return {
    facts: () => followed.map(({ facts }) => ({ ...facts })),
    done: Promise.all(followed.map(({ done }) => done)).then(() => undefined),
  };
}

function followHeads(url: string, { onHead, signal, logger, paces }: HeadFeedOptions) {
  const { silenceMs, firstPauseMs, longestPauseMs, windowMs } = { ...PACES, ...paces };
  const facts: HeadFeedFacts = { name: new URL(url).host, connected: false, heads: 0, failures: 0 };

  /** Resolves with why the connection ended, once it has. */
  function follow(): Promise<string> {
    const socket = new WebSocket(url, {
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MOST_BYTES,
      perMessageDeflate: false,
    });
    let problem = 'the endpoint closed the connection';
    let messages = 0;
    let isSilent = false;
    const give = (why: string): void => {
      problem = why;
      socket.terminate();
    };
    /** Counts a message; false when there are too many, and the connection is closed. */
    const count = (): boolean => {
      messages += 1;
      if (messages <= MOST_MESSAGES) return true;
      give(FLOODS);
      return false;
    };
    const stop = (): void => socket.terminate();
    signal.addEventListener('abort', stop, { once: true });
    const counting = setInterval(() => (messages = 0), windowMs);
    const watching = setInterval(() => {
      if (isSilent) return give('it fell silent');
      isSilent = true;
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    }, silenceMs / 2);

    socket.on('open', () => {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }));
    });
    socket.on('ping', () => void count());
    socket.on('pong', () => {
      isSilent = false;
      count();
    });
    socket.on('message', (data) => {
      isSilent = false;
      if (!count()) return;
      const message = readMessage(data);
      if (message === null) return;
      if ('refused' in message) return give(`it refuses the subscription: ${message.refused}`);
      facts.connected = true;
      if (message.head === null) return;
      facts.heads += 1;
      onHead(message.head);
    });
    socket.on('error', (error) => (problem = error.message));
    return new Promise((resolve) => {
      socket.on('close', () => {
        facts.connected = false;
        clearInterval(counting);
        clearInterval(watching);
        signal.removeEventListener('abort', stop);
        resolve(problem);
      });
    });
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      const headsBefore = facts.heads;
      const problem = await follow();
      if (signal.aborted) return;
      // A flooding endpoint may have sent heads, too; it must not reconnect at once.
      if (facts.heads > headsBefore && problem !== FLOODS) failures = 0;
      facts.failures += 1;
      logger.warn({ endpoint: facts.name, problem }, 'new heads are not told; they are polled for');
      const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(failures, 16), longestPauseMs);
      failures += 1;
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  return { facts, done: run() };
}

/** A head's number, `head: null` for another message; null for what is no JSON-RPC. */
function readMessage(data: RawData): { head: number | null } | { refused: string } | null {
  try {
    const message = JSON.parse((data as Buffer).toString()) as {
      error?: { message?: unknown };
      params?: { result?: { number?: unknown } };
    };
    if (message.error !== undefined) return { refused: String(message.error.message).slice(0, 200) };
    const number = message.params?.result?.number;
    return {
      head: typeof number === 'string' && /^0x[0-9a-f]{1,12}$/i.test(number) ? toSafeInt(BigInt(number)) : null,
    };
  } catch {
    return null;
  }
}
