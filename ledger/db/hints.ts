/**
 * PostgreSQL notifies of commits: a hint without content that a log has grown, sent by the transaction that appended to it. Hints may be
 * lost with a connection, and may repeat; so receivers read the log after a hint, and also from time to time without one.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import pg from 'pg';
import type { Db } from '../types.js';
import { PG_SESSION_SQL, pgConnectionOf, schemaOf } from './db.js';

/** What has grown: the ledger log, deposits and withdrawals in it, the order log, the operator log, accepted swap orders. */
export const HINT_TOPICS = ['ledger', 'claims', 'orders', 'operator', 'swaps'] as const;
export type HintTopic = (typeof HINT_TOPICS)[number];

interface HintFacts {
  connected: boolean;
  /** Since the start. */
  received: number;
  lost: number;
}

export interface Hints {
  /** Calls back after each hint of the topic, and whenever one may have been missed. Returns a function that stops that. */
  on(topic: HintTopic, listener: () => void): () => void;
  /** Null where the database gives no hints. */
  facts(): HintFacts | null;
  /** Resolves when listening has ended, after the signal. */
  readonly done: Promise<void>;
}

/** For databases that give no hints, and for processes that are to poll. */
export const NO_HINTS: Hints = { on: () => () => undefined, facts: () => null, done: Promise.resolve() };

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** How often a silent connection is probed, and how long it may take to answer. */
const KEEPALIVE_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5_000;
const GOODBYE_MS = 1_000;

const channelPrefix = (db: Db): string => `curvebook_${createHash('md5').update(schemaOf(db)).digest('hex')}_`;

/**
 * Listens on a connection of its own until the signal stops it, and connects again when that is lost; meanwhile followers poll. Never
 * rejects.
 */
export function listenForHints(db: Db, { signal, logger }: { signal: AbortSignal; logger: Logger }): Hints {
  if (db.kind !== 'pg') return NO_HINTS;
  const listeners = new Map<HintTopic, Set<() => void>>(HINT_TOPICS.map((topic) => [topic, new Set()]));
  const prefix = channelPrefix(db);
  const facts: HintFacts = { connected: false, received: 0, lost: 0 };
  const tell = (topic: HintTopic): void => listeners.get(topic)?.forEach((listener) => listener());

  /** Resolves with why the connection ended, or null when the signal did that. */
  async function listen(): Promise<Error | null> {
    const client = new pg.Client({
      ...pgConnectionOf(db),
      query_timeout: ANSWER_TIMEOUT_MS,
      application_name: 'curvebook hints',
    });
    const over = new AbortController();
    const ended = new Promise<Error | null>((resolve) => {
      client.on('error', resolve);
      client.on('end', () => resolve(new Error('the connection ended')));
      signal.addEventListener('abort', () => resolve(null), { once: true, signal: over.signal });
    });
    client.on('notification', ({ channel }) => {
      facts.received += 1;
      tell(channel.slice(prefix.length) as HintTopic);
    });

    async function stayConnected(): Promise<Error | null> {
      await client.connect();
      await client.query(PG_SESSION_SQL);
      for (const topic of HINT_TOPICS) await client.query(`listen ${client.escapeIdentifier(prefix + topic)}`);
      if (over.signal.aborted) return null;
      facts.connected = true;
      // Commits before this point sent no hint to this connection.
      for (const topic of HINT_TOPICS) tell(topic);
      for (;;) {
        await delay(KEEPALIVE_MS, undefined, { signal: over.signal });
        await client.query('select 1');
      }
    }

    const asking = stayConnected().catch((error: unknown) => error as Error);
    const why = await Promise.race([ended, asking]);
    over.abort();
    facts.connected = false;
    // Does not wait for a server that does not answer.
    await Promise.race([client.end().catch(() => undefined), delay(GOODBYE_MS)]);
    return why;
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      const startedMs = performance.now();
      const error = await listen();
      if (signal.aborted) return;
      if (performance.now() - startedMs > LONGEST_PAUSE_MS) failures = 0;
      facts.lost += 1;
      logger.warn({ err: error }, 'commits of other processes are not told; they are polled for');
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 16), LONGEST_PAUSE_MS);
      failures += 1;
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    on(topic, listener) {
      const set = listeners.get(topic)!;
      set.add(listener);
      return () => void set.delete(listener);
    },
    facts: () => ({ ...facts }),
    done: run(),
  };
}
