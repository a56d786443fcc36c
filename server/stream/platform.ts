import type { FillJson } from '../read/fills.js';
import type { StatusBody } from '../read/status.js';
import type { GatewayLogger } from '../orders/types.js';
import { channelFrame, type SendQueue } from './send-queue.js';
import type { StreamLimits } from './limits.js';

/** Fills of a market, its newest curve, or where the whole platform stands. */
export type PlatformSubscription =
  { type: 'fills' | 'curves'; market: number; pair: string; key: string } | { type: 'status'; key: string };

/** What is told to everybody, as the read API has it. */
export interface PlatformFacts {
  /** At most so many of the newest fills of a market, newest last. */
  fills(market: number, limit: number): Promise<FillJson[]>;
  status(): Promise<StatusBody>;
}

/** Pushes of what is the same for everybody. Each read and each frame is made once, however many connections get it. */
export interface PlatformFeed {
  subscribe(subscription: PlatformSubscription, queue: SendQueue): void;
  unsubscribe(subscription: PlatformSubscription, queue: SendQueue): void;
  /** A generation became durable. */
  changed(): void;
  stop(): void;
}

/** Fills that a subscription begins with, and that are looked through for new ones. */
export const FIRST_FILLS = 50;
export const NEXT_FILLS = 256;
/** Pause between two looks at what changes without a generation: readiness, halts, keepers. */
const LOOK_MS = 1_000;

interface FillTopic {
  market: number;
  pair: string;
  /** Those that have the fills up to `lastSeq`. */
  queues: Set<SendQueue>;
  /** Those that wait for their first ones. */
  joining: Set<SendQueue>;
  lastSeq: number;
}

interface StateTopic {
  subscription: PlatformSubscription;
  queues: Set<SendQueue>;
  /** What was sent last, without what changes by the clock alone. */
  sent: string;
  sentMs: number;
  frame: Buffer | null;
}

export function createPlatformFeed(
  facts: PlatformFacts,
  { repeatMs }: Pick<StreamLimits, 'repeatMs'>,
  clock: () => number,
  logger: GatewayLogger,
): PlatformFeed {
  const fillTopics = new Map<string, FillTopic>();
  const stateTopics = new Map<string, StateTopic>();
  let isLooking = false;
  let isDue = false;
  let isStopped = false;

  /** One look at a time; what is asked for meanwhile is one more look. */
  async function look(): Promise<void> {
    isDue = true;
    if (isLooking) return;
    isLooking = true;
    try {
      while (isDue && !isStopped) {
        isDue = false;
        for (const topic of [...fillTopics.values()]) await pushFills(topic);
        if (stateTopics.size > 0) pushStates(await facts.status());
      }
    } catch (error) {
      // The next look finds what this one has missed.
      logger.error({ err: error }, 'what is pushed to everybody could not be read');
    } finally {
      isLooking = false;
    }
  }

  async function pushFills(topic: FillTopic): Promise<void> {
    const { market, pair, queues, joining } = topic;
    const rows = await facts.fills(market, NEXT_FILLS);
    const fresh = rows.filter(({ fill_seq }) => fill_seq > topic.lastSeq);
    topic.lastSeq = rows.at(-1)?.fill_seq ?? topic.lastSeq;
    if (fresh.length > 0 && queues.size > 0) {
      const frame = channelFrame('fills', { pair, fills: fresh });
      for (const queue of [...queues]) queue.reply(frame);
    }
    if (joining.size === 0) return;
    const first = channelFrame('fills', { isSnapshot: true, pair, fills: rows.slice(-FIRST_FILLS) });
    for (const queue of [...joining]) {
      joining.delete(queue);
      queues.add(queue);
      queue.reply(first);
    }
  }

  function pushStates(status: StatusBody): void {
    const nowMs = clock();
    for (const [key, topic] of stateTopics) {
      const { data, name } = stateOf(topic.subscription, status);
      if (data === null) continue;
      if (topic.frame !== null && topic.sent === name && nowMs - topic.sentMs < repeatMs) continue;
      topic.sent = name;
      topic.sentMs = nowMs;
      topic.frame = channelFrame(topic.subscription.type, data);
      for (const queue of topic.queues) queue.latest(key, topic.frame);
    }
  }

  const looking = setInterval(() => {
    if (fillTopics.size + stateTopics.size > 0) void look();
  }, LOOK_MS);
  looking.unref();

  function follow(subscription: PlatformSubscription & { type: 'fills' }, queue: SendQueue): void {
    const { key, market, pair } = subscription;
    const topic = fillTopics.get(key) ?? { market, pair, queues: new Set(), joining: new Set(), lastSeq: 0 };
    fillTopics.set(key, topic);
    topic.joining.add(queue);
    void look();
  }

  return {
    subscribe(subscription, queue) {
      if (isFills(subscription)) return follow(subscription, queue);
      const { key } = subscription;
      const topic = stateTopics.get(key) ?? { subscription, queues: new Set(), sent: '', sentMs: 0, frame: null };
      stateTopics.set(key, topic);
      topic.queues.add(queue);
      if (topic.frame === null) void look();
      else queue.latest(key, topic.frame);
    },
    unsubscribe(subscription, queue) {
      const { key } = subscription;
      const fills = fillTopics.get(key);
      fills?.queues.delete(queue);
      fills?.joining.delete(queue);
      if (fills?.queues.size === 0 && fills.joining.size === 0) fillTopics.delete(key);
      const states = stateTopics.get(key);
      states?.queues.delete(queue);
      if (states?.queues.size === 0) stateTopics.delete(key);
      queue.drop(key);
    },
    changed() {
      if (fillTopics.size + stateTopics.size > 0) void look();
    },
    stop() {
      isStopped = true;
      clearInterval(looking);
    },
  };
}

const isFills = (subscription: PlatformSubscription): subscription is PlatformSubscription & { type: 'fills' } =>
  subscription.type === 'fills';

/** What a state says, and what names it: equal names say the same but for the times that pass. */
function stateOf(subscription: PlatformSubscription, status: StatusBody): { data: object | null; name: string } {
  if (subscription.type !== 'status') {
    const row = status.curves.find(({ pair }) => pair === subscription.pair) ?? null;
    return { data: row, name: JSON.stringify(row) };
  }
  const { ready, reason, halt, ledger, tokens, curves, keepers, checkpoint, last_reversal } = status;
  const running = keepers.map(({ role, running: isRunning, waiting }) => [role, isRunning, waiting]);
  const { generation, holdings, suspense } = ledger;
  const lasting = { ready, reason, halt, generation, holdings, suspense, tokens, curves, running, checkpoint };
  return { data: status, name: JSON.stringify([lasting, last_reversal]) };
}
