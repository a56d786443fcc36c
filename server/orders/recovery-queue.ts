import { performance } from 'node:perf_hooks';
import { RateLimitedError } from './refusals.js';

/** Facts about the sender of a request that is not proven to be a maker. */
export interface Requester {
  /** Key by which requests share their turns: one address, or its network. */
  key: string;
  /** Length of the request. */
  bytes: number;
  /** Too many requests of the key failed lately: other keys come first. */
  isSpent: boolean;
}

/** Result of a piece of work, and whether the signer may act. */
export interface Outcome<T> {
  value: T;
  isKnown: boolean;
}

/**
 * Queue for reading and recovering requests of unproven senders. Work for an unknown signer is followed by a pause three times as long, so
 * that all such work takes at most a quarter of the thread, however many send it. Without such work no request waits.
 */
interface RecoveryQueue {
  /**
   * Does the work, at once or when its turn comes: the keys take turns, those that are not spent three times as often. Rejects with
   * RateLimitedError when too much waits and no larger request of a busier key can be dropped instead, and with what the work throws.
   */
  run<T>(requester: Requester, work: () => Outcome<T>): Promise<T>;
  /** Requests that wait. */
  waiting(): number;
}

export interface RecoveryQueueOptions {
  /** Monotonic milliseconds. */
  nowMs?: () => number;
  /** Calls back after so many milliseconds. */
  later?: (callback: () => void, ms: number) => void;
  maxWaiting?: number;
  maxWaitingBytes?: number;
}

interface Waiting {
  requester: Requester;
  start: () => void;
  refuse: () => void;
}

/** Requests of one class, by key; the key whose turn it is comes first. */
type Class = Map<string, Waiting[]>;

const REST_FACTOR = 3;
/** One turn in so many is for spent keys, as long as both classes wait. */
const TURNS_PER_SPENT = 4;
/** Limited, because each waiting request keeps its body in memory. */
const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Retry-After of a dropped request: the queue moves on within a second. */
const RETRY_AFTER_SEC = 1;

/** Even without a pause the event loop runs between two pieces of work. */
function laterHere(callback: () => void, ms: number): void {
  if (ms <= 0) setImmediate(callback);
  else setTimeout(callback, ms).unref();
}

/** An empty queue. */
export function createRecoveryQueue(options: RecoveryQueueOptions = {}): RecoveryQueue {
  const { nowMs = () => performance.now(), later = laterHere } = options;
  const { maxWaiting = MAX_WAITING, maxWaitingBytes = MAX_WAITING_BYTES } = options;
  const fresh: Class = new Map();
  const spent: Class = new Map();
  let count = 0;
  let bytes = 0;
  let turns = 0;
  let restUntilMs = 0;
  let isScheduled = false;

  function work<T>(task: () => Outcome<T>): T {
    const startedMs = nowMs();
    let isKnown = false;
    try {
      const outcome = task();
      ({ isKnown } = outcome);
      return outcome.value;
    } finally {
      const endedMs = nowMs();
      if (!isKnown) restUntilMs = endedMs + REST_FACTOR * (endedMs - startedMs);
    }
  }

  function run<T>(requester: Requester, task: () => Outcome<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        try {
          resolve(work(task));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      if (count === 0 && nowMs() >= restUntilMs) return start();
      add({ requester, start, refuse: () => reject(new RateLimitedError(RETRY_AFTER_SEC)) });
      schedule();
    });
  }

  const classOf = ({ isSpent }: Requester): Class => (isSpent ? spent : fresh);

  function add(one: Waiting): void {
    const { requester } = one;
    const own = classOf(requester).get(requester.key);
    if (own === undefined) classOf(requester).set(requester.key, [one]);
    else own.push(one);
    count += 1;
    bytes += requester.bytes;
    if (count > maxWaiting || bytes > maxWaitingBytes) removeLargest(busiest()).refuse();
  }

  /** The requests of the key that has most bytes waiting, or most requests of equal ones. */
  function busiest(): Waiting[] {
    let most: { list: Waiting[]; weight: number } = { list: [], weight: -1 };
    for (const list of [...fresh.values(), ...spent.values()]) {
      const weight = list.reduce((sum, { requester }) => sum + requester.bytes + 1, 0);
      if (weight > most.weight) most = { list, weight };
    }
    return most.list;
  }

  /** Removes the largest request, of equal ones the newest. */
  function removeLargest(list: Waiting[]): Waiting {
    const largest = list.reduce((a, b) => (b.requester.bytes >= a.requester.bytes ? b : a));
    return take(list, list.indexOf(largest));
  }

  function take(list: Waiting[], at: number): Waiting {
    const [one] = list.splice(at, 1);
    if (one === undefined) throw new RangeError('nothing waits');
    if (list.length === 0) classOf(one.requester).delete(one.requester.key);
    count -= 1;
    bytes -= one.requester.bytes;
    return one;
  }

  function next(): Waiting {
    turns += 1;
    const first = turns % TURNS_PER_SPENT === 0 ? spent : fresh;
    const other = first === spent ? fresh : spent;
    const chosen = first.size > 0 ? first : other;
    const [key, list] = chosen.entries().next().value as [string, Waiting[]];
    const one = take(list, 0);
    // Moved to the end, so that the next turn is another key's.
    if (chosen.delete(key)) chosen.set(key, list);
    return one;
  }

  function schedule(): void {
    if (isScheduled || count === 0) return;
    isScheduled = true;
    later(serve, Math.max(Math.ceil(restUntilMs - nowMs()), 0));
  }

  function serve(): void {
    isScheduled = false;
    if (count > 0 && nowMs() >= restUntilMs) next().start();
    schedule();
  }

  return { run, waiting: () => count };
}
