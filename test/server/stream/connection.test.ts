import { expect } from 'chai';
import { createConnection, type Connection, type ConnectionDeps } from '../../../server/stream/connection.js';
import type { SendQueue } from '../../../server/stream/send-queue.js';
import { createSessions } from '../../../server/stream/sessions.js';
import { addressOf } from '../../support/gateway.js';
import { WETH_USDC } from '../../support/markets.js';

const SOCKET = { address: '', pause: () => undefined, resume: () => undefined, lost: () => undefined };

describe('a connection', () => {
  it('subscribes to nothing when the acknowledgement was one frame too many', () => {
    const listening = new Set<string>();
    let full = false;
    let connection: Connection | null = null;
    const queue = { reply: () => void (full && connection?.onClose()) } as unknown as SendQueue;
    const deps = {
      gateway: { markets: () => [WETH_USDC], parse: (text: string): unknown => JSON.parse(text) },
      books: {
        subscribe: (key: string) => void listening.add(key),
        unsubscribe: (key: string) => void listening.delete(key),
      },
      updates: {
        subscribe: ({ key }: { key: string }) => void listening.add(key),
        unsubscribe: ({ key }: { key: string }) => void listening.delete(key),
      },
      sessions: createSessions(),
      info: {},
      limits: { maxSubscriptions: 32, maxPendingPosts: 1 },
    } as unknown as ConnectionDeps;
    connection = createConnection(deps, queue, SOCKET);
    const subscribe = (subscription: object): void =>
      connection?.onMessage(JSON.stringify({ method: 'subscribe', subscription }));
    subscribe({ type: 'orderUpdates', user: addressOf(1) });
    subscribe({ type: 'l2Book', coin: '@0' });
    expect([...listening]).to.deep.equal([`orderUpdates:${addressOf(1)}`, 'l2Book:0']);
    full = true;
    subscribe({ type: 'userFills', user: addressOf(1) });
    expect([...listening]).to.deep.equal([]);
  });
});
