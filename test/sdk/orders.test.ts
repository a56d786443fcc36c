import { expect } from 'chai';
import type { ReadClient } from '../../sdk/src/read/client.js';
import type { Stream, Subscription } from '../../sdk/src/stream/client.js';
import { followOrders, type UserFill } from '../../sdk/src/stream/orders.js';
import { until } from '../support/gateway-suite.js';

const USER = `0x${'1'.repeat(40)}`;
/** Fills that a snapshot has room for. */
const SNAPSHOT_FILLS = 2_000;

const fill = (tid: number): UserFill => ({ tid, time: tid }) as UserFill;
const fills = (from: number, count: number): UserFill[] => Array.from({ length: count }, (_, i) => fill(from + i));

describe('orders and fills that are followed', () => {
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
