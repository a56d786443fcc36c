import type { FillJson } from '../read/fills.js';
import type { StatusBody } from '../read/status.js';
import type { GatewayLogger } from '../orders/types.js';
import { channelFrame, type SendQueue } from './send-queue.js';
import type { StreamLimits } from './limits.js';

/** Fills of a market, its newest curve, or the status of the platform. */
export type PlatformSubscription =
  { type: 'fills' | 'curves'; market: number; pair: string; key: string } | { type: 'status'; key: string };

/** Public facts, as in the read API. */
export interface PlatformFacts {
  /** At most so many of the newest fills of a market, or of those before one, newest last. */
  fills(market: number, limit: number, before?: number): Promise<FillJson[]>;
  status(): Promise<StatusBody>;
}

/** Pushes public facts. Each read and each frame is made once, however many connections get it. */
export interface PlatformFeed {
  subscribe(subscription: PlatformSubscription, queue: SendQueue): void;
  unsubscribe(subscription: PlatformSubscription, queue: SendQueue): void;
  /** A generation became durable. */
  changed(): void;
  stop(): void;
}

/** Fills that a subscription begins with, and that are read and sent at a time. */
export const FIRST_FILLS = 50;
export const NEXT_FILLS = 256;
/** Most pages of fills that are sent to catch up; a subscription that lacks more begins again with the newest. */
const MAX_PAGES = 40;
/** Pause between two reads of what changes without a generation: readiness, halts, keepers. */
const LOOK_MS = 1_000;

interface FillTopic {
  market: number;
  pair: string;
  /** Those that have the fills up to `last`. */
  queues: Set<SendQueue>;
  /** Those that wait for their first ones. */
  joining: Set<SendQueue>;
  /** The newest fill that was sent; null when there was none. */
  last: FillJson | null;
}

interface StateTopic {
  subscription: PlatformSubscription;
  queues: Set<SendQueue>;
  /** The last state that was sent, without values that only change with time. */
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

  /** One read at a time; any requests meanwhile cause one more. */
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
      // The next read finds what this one has missed.
      logger.error({ err: error }, 'what is pushed to everybody could not be read');
    } finally {
      isLooking = false;
    }
  }

  /**
   * The newest fills, back to those that were sent, newest last. After a reversal the fills sent before may no longer exist. That is seen
   * by the block of the newest fill that was sent: a block's content, and all before it, never changes.
   */
  async function readNews({ market, queues, last }: FillTopic): Promise<{ rows: FillJson[]; isNext: boolean }> {
    const pages = [await facts.fills(market, NEXT_FILLS)];
    const reaches = (): boolean => pages[0]!.length < NEXT_FILLS || pages[0]![0]!.fill_seq <= (last?.fill_seq ?? 0);
    while (queues.size > 0 && !reaches() && pages.length < MAX_PAGES)
      pages.unshift(await facts.fills(market, NEXT_FILLS, pages[0]![0]!.fill_seq));
    const rows = pages.flat();
    const told = last === null ? null : rows.find(({ fill_seq }) => fill_seq === last.fill_seq);
    return { rows, isNext: reaches() && (last === null || told?.block_hash === last.block_hash) };
  }

  async function pushFills(topic: FillTopic): Promise<void> {
    const { pair, queues, joining, last } = topic;
    const { rows, isNext } = await readNews(topic);
    const first = (): Buffer => channelFrame('fills', { isSnapshot: true, pair, fills: rows.slice(-FIRST_FILLS) });
    const fresh = rows.filter(({ fill_seq }) => fill_seq > (last?.fill_seq ?? 0));
    topic.last = rows.at(-1) ?? null;
    if (queues.size > 0) {
      const frames: Buffer[] = isNext ? [] : [first()];
      for (let at = 0; isNext && at < fresh.length; at += NEXT_FILLS)
        frames.push(channelFrame('fills', { pair, fills: fresh.slice(at, at + NEXT_FILLS) }));
      for (const frame of frames) for (const queue of [...queues]) queue.reply(frame);
    }
    if (joining.size === 0) return;
    const frame = first();
    for (const queue of [...joining]) {
      joining.delete(queue);
      queues.add(queue);
      queue.reply(frame);
    }
  }

  function pushStates(status: StatusBody): void {
    const nowMs = clock();
    for (const [key, topic] of stateTopics) {
      const { data, name } = stateOf(topic.subscription, status);
      if (data === null) continue;
      if (topic.frame !== null && topic.sent === name && Math.abs(nowMs - topic.sentMs) < repeatMs) continue;
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
    const topic = fillTopics.get(key) ?? { market, pair, queues: new Set(), joining: new Set(), last: null };
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

/** A state's content and its key: states with equal keys differ only in times. */
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
