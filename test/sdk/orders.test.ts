import { expect } from 'chai';
import type { ReadClient } from '../../sdk/src/read/client.js';
import type { Stream, Subscription } from '../../sdk/src/stream/client.js';
import type { CurvebookError } from '../../sdk/src/errors.js';
import { followOrders, type OrderRow, type UserFill } from '../../sdk/src/stream/orders.js';
import { until } from '../support/gateway-suite.js';

const USER = `0x${'1'.repeat(40)}`;
/** Fills that a snapshot has room for. */
const SNAPSHOT_FILLS = 2_000;

const fill = (tid: number, time = tid): UserFill => ({ tid, time }) as UserFill;
const fills = (from: number, count: number): UserFill[] => Array.from({ length: count }, (_, i) => fill(from + i));
/** Fills of one time, as those of a block. */
const block = (from: number, count: number, time: number): UserFill[] =>
  Array.from({ length: count }, (_, i) => fill(from + i, time));

/** A stream whose data, resumes and losses the test makes. */
function handStream() {
  const listening = new Map<string, (data: unknown) => void>();
  const ended: string[] = [];
  const calls: { resume?: (() => void) | undefined; lose?: (() => void) | undefined } = {};
  const stream = {
    subscribe: (
      { type }: Subscription,
      onData: (data: unknown) => void,
      onResume?: () => void,
      onLoss?: () => void,
    ) => {
      listening.set(type, onData);
      if (type === 'orderUpdates') [calls.resume, calls.lose] = [onResume, onLoss];
      return () => void ended.push(type);
    },
  } as unknown as Stream;
  return { stream, calls, ended, push: (type: string, data: unknown) => listening.get(type)?.(data) };
}

interface Query {
  type: string;
  startTime: number;
  endTime: number;
  reversed?: boolean;
}

/** Queries of a server that has these fills of the account, in the order of its chain. It answers as `userFillsByTime` does: known ones, too. */
const serverOf = (all: readonly UserFill[]) =>
  ({
    info: ({ startTime, endTime, reversed }: Query) => {
      const found = all.filter(({ time }) => time >= startTime && time <= endTime);
      return Promise.resolve((reversed === true ? found.reverse() : found).slice(0, SNAPSHOT_FILLS));
    },
  }) as unknown as ReadClient;

/** What a subscription begins with once the account has these fills: the latest, newest first. */
const snapshotOf = (all: readonly UserFill[]) => ({
  isSnapshot: true,
  fills: all.toReversed().slice(0, SNAPSHOT_FILLS),
});

/** Timers that would keep a program running; after a turn, since one whose callback is running counts. */
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Rejections that nobody handles while the calls run, each of which would end a program. */
async function unhandledDuring(run: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (reason) => unhandled.push(reason));
  try {
    await run();
    await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    process.removeAllListeners('unhandledRejection');
    others.forEach((other) => process.on('unhandledRejection', other));
  }
  return unhandled;
}

describe('orders and fills that are followed', () => {
  it('are not complete from the loss of a connection until they were read again', async () => {
    const { stream, calls } = handStream();
    const row = { oid: 7, sz: '1.0' } as OrderRow;
    const read = { info: () => Promise.resolve([row]) } as unknown as ReadClient;
    const states: [boolean, number][] = [];
    const end = followOrders(stream, read, USER, {
      onOrders: ({ isComplete, open }) => states.push([isComplete, open.size]),
    });
    const last = () => states.at(-1);
    try {
      calls.resume?.();
      await until(() => last()?.[0] === true);
      calls.lose?.();
      expect(last(), 'as last known').to.deep.equal([false, 1]);
      calls.resume?.();
      await until(() => last()?.[0] === true);
    } finally {
      end();
    }
  });

  /** Follows fills through snapshots, each of them after a reconnect, until the newest fill is told. */
  async function follow(steps: readonly (readonly UserFill[])[]): Promise<{ told: number[]; errors: unknown[] }> {
    const { stream, push } = handStream();
    const all = steps.flat();
    const told: number[] = [];
    const errors: unknown[] = [];
    const end = followOrders(stream, serverOf(all), USER, {
      onFills: (some) => told.push(...some.map(({ tid }) => tid)),
      onError: (error) => errors.push(error),
    });
    try {
      steps.forEach((_, i) => push('userFills', snapshotOf(steps.slice(0, i + 1).flat())));
      await until(() => told.includes(all.at(-1)!.tid));
      return { told, errors };
    } finally {
      end();
    }
  }

  /** Of the fills of one time, a client that was away for more than a snapshot of later ones. */
  async function tellsAfterABlockOf(count: number): Promise<{ told: number[]; errors: unknown[]; all: number[] }> {
    const gap = [...block(10, count, 5), fill(10 + count, 6)];
    const newest = block(20_000, SNAPSHOT_FILLS, 20);
    const { told, errors } = await follow([fills(1, 2), [...gap, ...newest]]);
    const all = [...fills(1, 2), ...gap, ...newest].map(({ tid }) => tid);
    return { told, errors, all };
  }

  it('are told although one block has more of them than a query answers', async () => {
    for (const count of [SNAPSHOT_FILLS - 1, SNAPSHOT_FILLS, SNAPSHOT_FILLS + 1, 2 * SNAPSHOT_FILLS - 1]) {
      const { told, errors, all } = await tellsAfterABlockOf(count);
      expect([told, errors], `${count} fills`).to.deep.equal([all, []]);
    }
  });

  it('say so where one block has more than can be read, and go on after it', async () => {
    const { told, errors, all } = await tellsAfterABlockOf(2 * SNAPSHOT_FILLS + 5);
    expect(told)
      .to.have.length(all.length - 5)
      .and.to.include(all.at(-1));
    expect(errors.map((error) => (error as CurvebookError).code)).to.deep.equal(['FILLS_LEFT_OUT']);
  });

  it('are told once where a block with more of them than a page is in the middle of a page', async () => {
    const known = fills(1, 3);
    const gap = [...fills(4, 500), ...block(1_000, 2_500, 600), ...block(9_000, 1_500, 700)];
    const { told, errors } = await follow([known, [...gap, ...block(20_000, SNAPSHOT_FILLS, 800)]]);
    expect(told).to.have.length(new Set(told).size);
    expect([told.length, errors]).to.deep.equal([known.length + gap.length + SNAPSHOT_FILLS, []]);
  });

  it('are told in the order of the chain where they are of one time', async () => {
    const chain = [fill(7, 5), fill(3, 5), fill(9, 5), fill(1, 6)];
    expect((await follow([chain])).told).to.deep.equal([7, 3, 9, 1]);
  });

  it('are all told of an account that had none when it was first asked', async () => {
    const all = fills(1, 3 * SNAPSHOT_FILLS);
    const { told, errors } = await follow([[], all]);
    expect([told, errors]).to.deep.equal([all.map(({ tid }) => tid), []]);
  });

  it('are told also if the snapshot begins within a block of which some are known', async () => {
    const begun = [...fills(1, 2), ...block(10, 2, 5)];
    const { told, errors } = await follow([begun, block(20, SNAPSHOT_FILLS + 7, 5)]);
    expect(told).to.have.members([...begun, ...block(20, SNAPSHOT_FILLS + 7, 5)].map(({ tid }) => tid));
    expect([told.length, errors]).to.deep.equal([begun.length + SNAPSHOT_FILLS + 7, []]);
  });

  it('tells the fills that a snapshot has no room for also when the first query for them fails, in their order', async () => {
    const { stream, push } = handStream();
    const all = fills(1, 4_999);
    let queries = 0;
    const read = {
      info: (query: { type: string }) => {
        queries += 1;
        return queries === 1 ? Promise.reject(new Error('the server restarts')) : serverOf(all).info(query);
      },
    } as unknown as ReadClient;
    const told: number[] = [];
    const errors: unknown[] = [];
    const end = followOrders(stream, read, USER, {
      onFills: (some) => told.push(...some.map(({ tid }) => tid)),
      onError: (error) => errors.push(error),
    });
    try {
      push('userFills', snapshotOf(all.slice(0, 10)));
      push('userFills', snapshotOf(all));
      await until(() => told.length >= all.length);
      expect(told).to.deep.equal(all.map(({ tid }) => tid));
      expect(errors.map(String)).to.deep.equal(['Error: the server restarts']);
    } finally {
      end();
    }
  });

  const update = (oid: number, status: string, sz = '1.0') => ({ order: { oid, sz }, status });

  it('are what was read and what was told meanwhile, in whatever order that arrived', async () => {
    const { stream, calls, push } = handStream();
    let answer: (rows: unknown) => void = () => undefined;
    const read = { info: () => new Promise((resolve) => (answer = resolve)) } as unknown as ReadClient;
    const states: [boolean, [number, string][]][] = [];
    const end = followOrders(stream, read, USER, {
      onOrders: ({ isComplete, open }) => states.push([isComplete, [...open].map(([oid, { sz }]) => [oid, sz])]),
    });
    try {
      calls.resume?.();
      push('orderUpdates', [update(1, 'filled'), update(2, 'open', '0.5'), update(3, 'open', '2.0')]);
      push('orderUpdates', [update(3, 'open', '3.0'), update(4, 'open'), update(4, 'canceled'), update(4, 'open')]);
      answer([1, 2, 3, 4, 5].map((oid) => ({ oid, sz: '1.0' })));
      await until(() => states.length >= 2);
      const known = [
        [2, '0.5'],
        [3, '1.0'],
        [5, '1.0'],
      ];
      expect(states).to.deep.equal([
        [false, []],
        [true, known],
      ]);
    } finally {
      end();
    }
  });

  /** Follows orders with listeners of which one throws, over queries that the test answers, and through one loss. */
  async function throwing(when: (isComplete: boolean) => boolean): Promise<{ open: number[][]; errors: string[] }> {
    const { stream, calls, push } = handStream();
    const open: number[][] = [];
    const errors: string[] = [];
    let queries = 0;
    const read = {
      info: () => {
        queries += 1;
        // A second answer without a loss in between would be older than the updates.
        return Promise.resolve([{ oid: 7, sz: '1.0' }]);
      },
    } as unknown as ReadClient;
    const end = followOrders(stream, read, USER, {
      onOrders: (state) => {
        open.push([...state.open.keys()]);
        if (when(state.isComplete)) throw new Error('of the listener');
      },
      onError: (error) => errors.push(String(error)),
    });
    try {
      calls.resume?.();
      await until(() => open.length >= 2);
      push('orderUpdates', [update(7, 'canceled'), update(8, 'open')]);
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      expect(queries).to.equal(1);
      return { open, errors };
    } finally {
      end();
    }
  }

  it('stay true when the listener of orders throws, which ends nothing', async () => {
    for (const isThrownAt of [true, false]) {
      let found: { open: number[][]; errors: string[] } | null = null;
      const unhandled = await unhandledDuring(async () => {
        found = await throwing((isComplete) => isComplete === isThrownAt);
      });
      const { open, errors } = found!;
      expect([unhandled, open]).to.deep.equal([[], [[], [7], [8]]]);
      expect(errors).to.deep.equal(Array.from({ length: isThrownAt ? 2 : 1 }, () => 'Error: of the listener'));
    }
  });

  it('are told to the end when the listener of fills throws, or that of errors', async () => {
    const { stream, push } = handStream();
    const all = fills(1, 4 * SNAPSHOT_FILLS);
    const told: number[] = [];
    let errors = 0;
    const unhandled = await unhandledDuring(async () => {
      const end = followOrders(stream, serverOf(all), USER, {
        onFills: (some) => {
          told.push(...some.map(({ tid }) => tid));
          throw new Error('of the listener');
        },
        onError: () => {
          errors += 1;
          throw new Error('of the listener of errors');
        },
      });
      push('userFills', snapshotOf(all.slice(0, 10)));
      push('userFills', snapshotOf(all));
      await until(() => told.includes(all.length));
      end();
    });
    expect([told.length, unhandled]).to.deep.equal([all.length, []]);
    expect(errors).to.be.above(2);
  });

  it('hear nothing of a listener whose promise fails, but for the listener of errors', async () => {
    const { stream, push } = handStream();
    const errors: string[] = [];
    const unhandled = await unhandledDuring(async () => {
      const end = followOrders(stream, serverOf([]), USER, {
        // eslint-disable-next-line @typescript-eslint/no-misused-promises -- what is tested: types allow it
        onFills: () => Promise.reject(new Error('of its promise')),
        onError: (error) => errors.push(String(error)),
      });
      push('userFills', snapshotOf(fills(1, 2)));
      await until(() => errors.length > 0);
      end();
    });
    expect([errors, unhandled]).to.deep.equal([['Error: of its promise'], []]);
  });

  it('leave no subscription behind when the second one is refused', () => {
    const ended: string[] = [];
    const stream = {
      subscribe: ({ type }: Subscription) => {
        if (type === 'userFills') throw new Error('one aggregation');
        return () => void ended.push(type);
      },
    } as unknown as Stream;
    expect(() => followOrders(stream, serverOf([]), USER, {})).to.throw(/one aggregation/);
    expect(ended).to.deep.equal(['orderUpdates']);
  });

  it('leave no timer and no request behind when they end, and tell nothing any more', async () => {
    const { stream, calls, push, ended } = handStream();
    await turn();
    const before = timers();
    const signals: AbortSignal[] = [];
    const asked: string[] = [];
    const read = {
      info: ({ type }: Query, signal?: AbortSignal) => {
        asked.push(type);
        if (signal !== undefined) signals.push(signal);
        if (type === 'openOrders' || asked.filter((one) => one === type).length === 1)
          return Promise.reject(new Error('down'));
        return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
      },
    } as unknown as ReadClient;
    const told: string[] = [];
    const follow = () =>
      followOrders(stream, read, USER, {
        onOrders: () => told.push('orders'),
        onFills: () => told.push('fills'),
        onError: (error) => told.push(String(error)),
      });
    const withGap = () => {
      push('userFills', snapshotOf(fills(1, 2)));
      push('userFills', snapshotOf(fills(10, SNAPSHOT_FILLS)));
    };

    const first = follow();
    calls.resume?.();
    withGap();
    await until(() => told.filter((one) => one === 'Error: down').length === 2);
    await turn();
    expect(timers(), 'both wait').to.equal(before + 2);
    first();
    await turn();
    expect(timers(), 'both wait no more').to.equal(before);

    const second = follow();
    const count = signals.length;
    withGap();
    await until(() => signals.length > count);
    second();
    expect(signals.at(-1)?.aborted, 'the request').to.equal(true);
    const heard = told.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(told.length, 'nothing afterwards').to.equal(heard);
    expect(ended).to.have.length(4);
  });

  it('tell nothing after they were ended by a listener', async () => {
    const { stream, push } = handStream();
    const all = fills(1, 3 * SNAPSHOT_FILLS);
    const told: number[] = [];
    const end = followOrders(stream, serverOf(all), USER, {
      onFills: (some) => {
        told.push(some.length);
        if (told.length === 2) end();
      },
    });
    push('userFills', snapshotOf(all.slice(0, 10)));
    push('userFills', snapshotOf(all));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(told).to.have.length(2);
  });
});
