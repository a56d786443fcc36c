/**
 * Hands actions over in batches, one message for all that arrive in a tick, and follows each one until its outcome is known or its time is up.
 * An action is sent again only as it is, so that the sequencer sees by signer and nonce whether it was carried out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { GatewayUnavailableError, REFUSALS, refuse } from '../orders/refusals.js';
import type { Address } from '../../core/types.js';
import type { Forward, ForwardedAction, ExchangeReply } from '../orders/types.js';
import { MAX_ACTION_BYTES, MAX_BATCH_ACTIONS, encodeAction, type Answer, type BatchReply } from './codec.js';

/**
 * What became of a message. `undelivered`: it never left; `unknown`: it may have been carried out, also when somebody says that nobody
 * listens, which is no word of the sequencer.
 */
export type Sent = { kind: 'reply'; reply: BatchReply } | { kind: 'undelivered' } | { kind: 'unknown' };

export interface BatcherOptions {
  /** Sends actions, as `encodeAction` made them, to the sequencer, if one is known. Never rejects. */
  send(actions: readonly string[], timeoutMs: number): Promise<Sent>;
  /** From the first action of a batch until it is sent. */
  tickMs: number;
  /** How long an action may take, until it is answered that its outcome is unknown, or that nothing was stored. */
  timeoutMs: number;
  /** Most actions, and most bytes of them, that are waiting or sent; a quarter of each for one maker. */
  maxWaiting: number;
  maxWaitingBytes?: number;
  /** Longest message without its head. */
  maxBytes?: number;
  /** Monotonic milliseconds. */
  nowMs?: () => number;
}

interface Forwarded {
  reply: ExchangeReply;
  orderSeq: number;
}

export interface Batcher extends Forward {
  facts(): BatcherFacts;
  /** Answers all that waits, and takes no more. */
  close(): void;
}

export interface BatcherFacts {
  waiting: number;
  batches: number;
  actions: number;
  /** Messages that were sent again, since no reply came. */
  resent: number;
  /** Actions that were answered `outcome_unknown`. */
  unknown: number;
}

interface Waiting {
  text: string;
  entries: number;
  deadlineMs: number;
  /** It was sent without an answer that says what became of it. */
  mayBeStored: boolean;
  resolve(forwarded: Forwarded): void;
  reject(error: Error): void;
}

/** Batches that are sent and not answered; what arrives meanwhile waits, and makes larger batches. */
const MAX_IN_FLIGHT = 4;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Entries of one message at most, so that the statuses of all fit into a reply. */
const MAX_BATCH_ENTRIES = 4_000;
/** Part of the bounds that one maker may use up. */
const SHARE = 4;
/** A commit takes milliseconds. After this the message is sent again, which does no harm. */
const ATTEMPT_MS = 1_500;
const RETRY_PAUSE_MS = 100;

const UNKNOWN = 'The action may or may not have been stored; look by client order id before sending it again';
const NOBODY = 'No process that takes actions answers this edge; nothing was stored';
const FULL = 'Too many actions wait at this edge; nothing of the action was stored';
const SHARE_FULL = 'Too many actions of this maker wait at this edge; nothing of the action was stored';

/** Statuses that the reply to an action has. */
function entriesOf({ request: { action } }: ForwardedAction): number {
  const lists = [action.orders, action.cancels, action.modifies];
  return lists.reduce<number>((most, list) => (Array.isArray(list) ? Math.max(most, list.length) : most), 1);
}

export function createBatcher(options: BatcherOptions): Batcher {
  const { send, tickMs, timeoutMs, maxWaiting } = options;
  const { maxWaitingBytes = MAX_WAITING_BYTES, maxBytes = MAX_ACTION_BYTES } = options;
  const { nowMs = () => performance.now() } = options;
  const queue: Waiting[] = [];
  const counts = { batches: 0, actions: 0, resent: 0, unknown: 0 };
  const closing = new AbortController();
  const shares = new Map<Address, { open: number; bytes: number }>();
  let open = 0;
  let openBytes = 0;
  let inFlight = 0;
  let timer: NodeJS.Timeout | null = null;
  let onIdle: (() => void)[] = [];

  function submit(action: ForwardedAction, maker = action.signer): Promise<Forwarded> {
    const text = encodeAction(action);
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) return Promise.resolve({ reply: refuse(REFUSALS.batchTooLarge()), orderSeq: 0 });
    if (closing.signal.aborted) return Promise.reject(new GatewayUnavailableError('standby', NOBODY));
    if (open >= maxWaiting || openBytes + bytes > maxWaitingBytes)
      return Promise.reject(new GatewayUnavailableError('write_failed', FULL));
    const share = shares.get(maker) ?? { open: 0, bytes: 0 };
    if (
      share.open >= Math.ceil(maxWaiting / SHARE) ||
      (share.open > 0 && share.bytes + bytes > maxWaitingBytes / SHARE)
    )
      return Promise.reject(new GatewayUnavailableError('write_failed', SHARE_FULL));
    shares.set(maker, share);
    share.open += 1;
    share.bytes += bytes;
    open += 1;
    openBytes += bytes;
    const entries = entriesOf(action);
    const answered = new Promise<Forwarded>((resolve, reject) => {
      queue.push({ text, entries, deadlineMs: nowMs() + timeoutMs, mayBeStored: false, resolve, reject });
    });
    if (queue.length >= MAX_BATCH_ACTIONS) flush();
    else timer ??= setTimeout(flush, tickMs);
    return answered.finally(() => {
      open -= 1;
      openBytes -= bytes;
      share.open -= 1;
      share.bytes -= bytes;
      if (share.open === 0) shares.delete(maker);
      if (open > 0) return;
      onIdle.forEach((told) => told());
      onIdle = [];
    });
  }

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    while (queue.length > 0 && inFlight < MAX_IN_FLIGHT) {
      inFlight += 1;
      void deliver(nextBatch()).finally(() => {
        inFlight -= 1;
        flush();
      });
    }
  }

  /** At least one action, and no more than fit into a message, and their answers into another one. */
  function nextBatch(): Waiting[] {
    let bytes = 0;
    let entries = 0;
    let count = 0;
    for (const one of queue) {
      bytes += Buffer.byteLength(one.text) + 1;
      entries += one.entries;
      if (count > 0 && (count === MAX_BATCH_ACTIONS || bytes > maxBytes || entries > MAX_BATCH_ENTRIES)) break;
      count += 1;
    }
    counts.batches += 1;
    counts.actions += count;
    return queue.splice(0, count);
  }

  /** Answers every action of the batch, one way or the other; it never rejects. */
  async function deliver(batch: readonly Waiting[]): Promise<void> {
    let left = batch;
    for (let attempt = 1; ; attempt += 1) {
      left = left.filter((one) => !giveUp(one));
      if (left.length === 0) return;
      if (attempt > 1) counts.resent += 1;
      const remainingMs = Math.min(...left.map(({ deadlineMs }) => deadlineMs)) - nowMs();
      const sent = await send(
        left.map(({ text }) => text),
        Math.max(Math.ceil(Math.min(ATTEMPT_MS, remainingMs)), 1),
      );
      if (sent.kind === 'reply') {
        const { answers, orderSeq } = sent.reply;
        left = left.filter((one, index) => !settle(one, answers[index]!, orderSeq));
      } else if (sent.kind === 'unknown') {
        for (const one of left) one.mayBeStored = true;
      }
      if (left.length > 0) await delay(RETRY_PAUSE_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  /** Whether the answer says what became of the action. */
  function settle(one: Waiting, answer: Answer, orderSeq: number): boolean {
    if ('reply' in answer) {
      one.resolve({ reply: answer.reply, orderSeq });
      return true;
    }
    if (answer.failure === 'outcome_unknown') one.mayBeStored = true;
    // What it says is of this message; an earlier one may have been carried out all the same.
    if (answer.failure !== 'write_failed' || one.mayBeStored) return false;
    one.reject(new GatewayUnavailableError('write_failed', answer.message));
    return true;
  }

  function giveUp(one: Waiting): boolean {
    if (nowMs() < one.deadlineMs && !closing.signal.aborted) return false;
    if (one.mayBeStored) counts.unknown += 1;
    one.reject(
      one.mayBeStored
        ? new GatewayUnavailableError('outcome_unknown', UNKNOWN)
        : new GatewayUnavailableError('standby', NOBODY),
    );
    return true;
  }

  // What can't be sent at all must not wait for a batch in flight to end.
  const sweeper = setInterval(() => {
    const left = queue.filter((one) => !giveUp(one));
    if (left.length === queue.length) return;
    queue.length = 0;
    for (const one of left) queue.push(one);
  }, RETRY_PAUSE_MS);
  sweeper.unref();

  return {
    submit,
    waiting: () => open,
    facts: () => ({ waiting: open, ...counts }),
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
    close() {
      closing.abort();
      clearInterval(sweeper);
      queue.splice(0).forEach(giveUp);
    },
  };
}
