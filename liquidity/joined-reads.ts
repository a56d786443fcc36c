/** Small reads of many requests that share their round trips to the chain. */
import { setTimeout as delay } from 'node:timers/promises';
import { RpcUnavailableError } from '../core/rpc-errors.js';
import { onOne, type EthReader } from './eth.js';

interface Read {
  method: string;
  params: unknown[];
}

/**
 * Reads what `requests` ask for; `take` makes the result of their answers, and where it throws, the next endpoint is asked, as by `onOne`.
 * Throws what the same requests by themselves would.
 */
export type JoinedReads = <T>(requests: readonly Read[], take: (answers: readonly unknown[]) => T) => Promise<T>;

/** Most requests of a round trip, unless one read alone has more: about as many as prices are read with, since providers limit them. */
const MOST_REQUESTS = 20;
/** Round trips under way at most. What is asked for meanwhile goes together with the next. */
const MOST_UNDER_WAY = 2;
/** One that takes longer keeps no other one waiting: an endpoint hangs, or an answer was lost. */
const PATIENCE_MS = 250;

interface Waiting {
  requests: readonly Read[];
  take(answers: readonly unknown[]): unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * Joins the reads that are asked for in one turn of the event loop, or while others are under way. Those of a round trip that fails are read once
 * more in ever smaller company, so that none fails by another, or by their number. Where endpoints did not answer in time, all have failed.
 */
export function joinedReads(eth: EthReader): JoinedReads {
  let waiting: Waiting[] = [];
  let underWay = 0;
  let isDue = false;

  const readAll = (group: readonly Waiting[]): Promise<unknown[]> =>
    onOne(eth, async (one) => {
      const answers = await one.batch(group.flatMap(({ requests }) => requests));
      let from = 0;
      return group.map(({ requests, take }) => take(answers.slice(from, (from += requests.length))));
    });

  async function settle(group: readonly Waiting[]): Promise<void> {
    const startedMs = performance.now();
    try {
      const results = await readAll(group);
      group.forEach(({ resolve }, i) => resolve(results[i]));
    } catch (error) {
      const isSilence = error instanceof RpcUnavailableError && performance.now() - startedMs >= PATIENCE_MS;
      if (group.length === 1 || isSilence) return group.forEach(({ reject }) => reject(error));
      const half = Math.ceil(group.length / 2);
      await Promise.all([settle(group.slice(0, half)), settle(group.slice(half))]);
    }
  }

  /** The oldest that fit into one round trip, one at least. */
  function nextGroup(): Waiting[] {
    let count = 0;
    const end = waiting.findIndex(({ requests }, i) => (count += requests.length) > MOST_REQUESTS && i > 0);
    const group = end < 0 ? waiting : waiting.slice(0, end);
    waiting = waiting.slice(group.length);
    return group;
  }

  function start(): void {
    isDue = false;
    while (waiting.length > 0 && underWay < MOST_UNDER_WAY) {
      underWay += 1;
      void make(nextGroup());
    }
  }

  async function make(group: readonly Waiting[]): Promise<void> {
    const over = new AbortController();
    const patience = delay(PATIENCE_MS, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([settle(group).finally(() => over.abort()), patience]);
    underWay -= 1;
    start();
  }

  return <T>(requests: readonly Read[], take: (answers: readonly unknown[]) => T) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ requests, take, resolve, reject });
      if (isDue) return;
      isDue = true;
      setImmediate(start);
    });
}
