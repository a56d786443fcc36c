/** What an edge has towards the sequencer: it knows which process that is, whether it answers, and hands actions over to it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { readEpoch } from '../../ledger/db/writers.js';
import type { Db } from '../../ledger/types.js';
import type { Logger } from 'pino';
import type { Forward } from '../orders/types.js';
import { createBatcher, type BatcherFacts, type Sent } from './batcher.js';
import type { Bus } from './bus.js';
import { decodeReply, encodeBatch, macOfMessage } from './codec.js';

interface LinkOptions {
  bus: Bus;
  db: Pick<Db, 'reads'>;
  secret: string;
  deploymentId: string;
  tickMs: number;
  timeoutMs: number;
  maxWaiting: number;
  /** Unix milliseconds. */
  clock(): number;
  monotonicMs(): number;
  logger: Logger;
}

export interface LinkFacts extends BatcherFacts {
  connected: boolean;
  /** Whether the sequencer has answered lately. */
  sequencer: boolean;
  /** Connections to NATS that ended. */
  lost: number;
}

export interface Link {
  forward: Forward;
  /** Why no action can be taken at the moment; null when the sequencer answers. */
  unready(): 'no_nats' | 'no_sequencer' | null;
  facts(): LinkFacts;
  /** Answers what waits, and ends what runs. The bus stays open. */
  close(): Promise<void>;
}

const PROBE_MS = 500;
const PROBE_TIMEOUT_MS = 1_000;
/** A look at the database is given up on after this: its connection may be dead, and the next look gets another one. */
const LOOK_LIMIT_MS = 5_000;
/** A sequencer that was not heard for longer counts as gone. */
const SILENCE_MS = 2_500;

/** Of the requests to the process that took the order log over by this epoch. No earlier owner of the log gets them. */
export const subjectOf = (deploymentId: string, epoch: number): string =>
  `curvebook.${deploymentId}.sequencer.${epoch}`;

/** Looks for the sequencer from now on. */
export function createLink(options: LinkOptions): Link {
  const { bus, db, secret, deploymentId, clock, monotonicMs, logger } = options;
  const edge = randomUUID();
  const stopping = new AbortController();
  let epoch = 0;
  let heardMs = -Infinity;
  let saidForeign = false;
  let wake = new AbortController();

  const isHeard = (): boolean => monotonicMs() - heardMs <= SILENCE_MS;

  async function ask(actions: readonly string[], timeoutMs: number): Promise<Sent> {
    const to = epoch;
    // What is published may be carried out, whatever is said of it; so actions wait until the sequencer is heard.
    if (to === 0 || (actions.length > 0 && !isHeard())) return { kind: 'undelivered' };
    const message = encodeBatch(secret, { deploymentId, edge, epoch: to, sentMs: clock() }, actions);
    const asked = await bus.request(subjectOf(deploymentId, to), message, timeoutMs);
    if (asked.kind !== 'reply') return asked;
    const reply = readReply(message, actions.length, asked.data);
    if (reply === null) {
      if (!saidForeign) logger.warn('a reply is not of the sequencer: is EDGE_SECRET the same everywhere?');
      saidForeign = true;
      return { kind: 'unknown' };
    }
    saidForeign = false;
    // A late reply of an earlier owner says nothing of the present one.
    if (to === epoch) heardMs = monotonicMs();
    return { kind: 'reply', reply };
  }

  function readReply(message: Uint8Array, actions: number, data: Uint8Array) {
    try {
      return decodeReply(secret, { mac: macOfMessage(message), actions }, data);
    } catch {
      return null;
    }
  }

  async function look(): Promise<void> {
    const newest = await readEpoch(db.reads, 'order');
    // A replica may be behind what another one said. A database that is restored to an earlier state needs edges that are started again.
    if (newest <= epoch) return;
    epoch = newest;
    heardMs = -Infinity;
  }

  async function follow(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      const limit = new AbortController();
      const silence = delay(LOOK_LIMIT_MS, undefined, { signal: AbortSignal.any([signal, limit.signal]) }).then(
        () => Promise.reject(new Error('the database does not say who takes actions')),
        () => undefined,
      );
      await Promise.race([look(), silence])
        .catch((error: unknown) => logger.warn({ err: error }, 'who takes actions can not be read'))
        .finally(() => limit.abort());
      await ask([], PROBE_TIMEOUT_MS);
      await delay(PROBE_MS, undefined, { signal: AbortSignal.any([signal, wake.signal]) }).catch(() => undefined);
      if (wake.signal.aborted) wake = new AbortController();
    }
  }

  /** An action that nobody took is a reason to look at once who the sequencer is now. */
  async function send(actions: readonly string[], timeoutMs: number): Promise<Sent> {
    const sent = await ask(actions, timeoutMs);
    if (sent.kind !== 'reply') wake.abort();
    return sent;
  }

  const following = follow();
  const batcher = createBatcher({
    send,
    tickMs: options.tickMs,
    timeoutMs: options.timeoutMs,
    maxWaiting: options.maxWaiting,
    nowMs: monotonicMs,
  });

  function unready(): ReturnType<Link['unready']> {
    if (!bus.isConnected()) return 'no_nats';
    return isHeard() ? null : 'no_sequencer';
  }

  return {
    forward: batcher,
    unready,
    facts: () => ({
      ...batcher.facts(),
      connected: bus.isConnected(),
      sequencer: unready() === null,
      lost: bus.lost(),
    }),
    async close() {
      batcher.close();
      stopping.abort();
      await following;
    },
  };
}
