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

/** A stream whose data, resumes and losses the test makes. */
function handStream() {
  const listening = new Map<string, (data: unknown) => void>();
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
      return () => undefined;
    },
  } as unknown as Stream;
  return { stream, calls, push: (type: string, data: unknown) => listening.get(type)?.(data) };
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

  /** Fills of one time: a block's. */
  async function tellsAfterABlockOf(count: number): Promise<{ told: number[]; errors: unknown[]; all: number[] }> {
    const { stream, push } = handStream();
    const block = Array.from({ length: count }, (_, i) => fill(10 + i, 5));
    const later = [fill(10 + count, 6)];
    const all = [...block, ...later];
    const read = {
      info: ({ startTime, endTime, reversed }: { startTime: number; endTime: number; reversed?: boolean }) => {
        const found = all.filter(({ time }) => time >= startTime && time <= endTime);
        return Promise.resolve((reversed === true ? found.reverse() : found).slice(0, SNAPSHOT_FILLS));
      },
    } as unknown as ReadClient;
    const told: number[] = [];
    const errors: unknown[] = [];
    const end = followOrders(stream, read, USER, {
      onFills: (some) => told.push(...some.map(({ tid }) => tid)),
      onError: (error) => errors.push(error),
    });
    try {
      push('userFills', { isSnapshot: true, fills: fills(1, 2) });
      const newest = Array.from({ length: SNAPSHOT_FILLS }, (_, i) => fill(20_000 + i, 20));
      push('userFills', { isSnapshot: true, fills: newest });
      await until(() => told.includes(20_000 + SNAPSHOT_FILLS - 1));
      return { told: told.filter((tid) => tid < 20_000), errors, all: [1, 2, ...all.map(({ tid }) => tid)] };
    } finally {
      end();
    }
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

  it('tells the fills that a snapshot has no room for also when the first query for them fails, in their order', async () => {
    const listening = new Map<string, (data: unknown) => void>();
    const stream = {
      subscribe: (subscription: Subscription, onData: (data: unknown) => void) => {
        listening.set(subscription.type, onData);
        return () => undefined;
      },
    } as unknown as Stream;
    let queries = 0;
    const read = {
      info: ({ startTime, endTime }: { startTime: number; endTime: number }) => {
        queries += 1;
        if (queries === 1) return Promise.reject(new Error('the server restarts'));
        return Promise.resolve(fills(startTime, endTime - startTime + 1).slice(0, SNAPSHOT_FILLS));
      },
    } as unknown as ReadClient;
    const told: number[] = [];
    const errors: unknown[] = [];
    const end = followOrders(stream, read, USER, {
      onFills: (some) => told.push(...some.map(({ tid }) => tid)),
      onError: (error) => errors.push(error),
    });
    try {
      const snapshot = listening.get('userFills')!;
      snapshot({ isSnapshot: true, fills: fills(1, 10) });
      snapshot({ isSnapshot: true, fills: fills(3_000, SNAPSHOT_FILLS) });
      await until(() => told.length >= 4_999);
      expect(told).to.deep.equal(fills(1, 4_999).map(({ tid }) => tid));
      expect(errors.map(String)).to.deep.equal(['Error: the server restarts']);
    } finally {
      end();
    }
  });
});
