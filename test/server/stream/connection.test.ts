import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { RateLimitedError } from '../../../server/orders/refusals.js';
import { createConnection, type Connection, type ConnectionDeps } from '../../../server/stream/connection.js';
import { createQuota } from '../../../server/stream/quota.js';
import type { SendQueue } from '../../../server/stream/send-queue.js';
import { createSessions } from '../../../server/stream/sessions.js';
import { addressOf } from '../../support/gateway.js';
import { WETH_USDC } from '../../support/markets.js';

const SOCKET = {
  address: '',
  pause: () => undefined,
  resume: () => undefined,
  lost: () => undefined,
  flooded: () => undefined,
};

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

  it('counts what an address has of accounts over all its connections, and gives back what ends', () => {
    const accountQuota = createQuota(3);
    const listening: string[] = [];
    function connect(address: string) {
      const replies: string[] = [];
      const queue = { reply: (frame: Buffer) => void replies.push(frame.toString()) } as unknown as SendQueue;
      const deps = {
        gateway: { markets: () => [WETH_USDC], parse: (text: string): unknown => JSON.parse(text) },
        accounts: {
          subscribe: (key: string) => void listening.push(key),
          unsubscribe: () => undefined,
          serves: (type: string) => type !== 'swapOrders',
        },
        updates: { subscribe: () => undefined, unsubscribe: () => undefined },
        ...{ sessions: createSessions(), info: {}, accountQuota, limits: { maxSubscriptions: 32, maxPendingPosts: 1 } },
      } as unknown as ConnectionDeps;
      const connection = createConnection(deps, queue, { ...SOCKET, address });
      const say = (method: string, type: string, user: number): string => {
        connection.onMessage(JSON.stringify({ method, subscription: { type, user: addressOf(user) } }));
        return replies.at(-1)!;
      };
      return { connection, say };
    }
    const one = connect('2001:db8::1');
    const other = connect('2001:db8::2');
    one.say('subscribe', 'spotState', 1);
    one.say('subscribe', 'openOrders', 1);
    other.say('subscribe', 'spotState', 1);
    expect(listening).to.have.length(3);
    // Where the swap API is not served, which takes nothing of the quota.
    expect(connect('198.51.100.2').say('subscribe', 'swapOrders', 1)).to.include('Invalid subscription');
    expect(listening).to.have.length(3);
    expect(other.say('subscribe', 'openOrders', 2)).to.match(/"error","data":"Invalid subscription \{/);
    expect(other.say('subscribe', 'orderUpdates', 2)).to.include('subscriptionResponse');
    expect(connect('198.51.100.1').say('subscribe', 'openOrders', 2)).to.include('subscriptionResponse');
    one.say('unsubscribe', 'openOrders', 1);
    expect(other.say('subscribe', 'openOrders', 2)).to.include('subscriptionResponse');
    expect(other.say('subscribe', 'openOrders', 3)).to.include('Invalid subscription');
    one.connection.onClose();
    expect(other.say('subscribe', 'openOrders', 3)).to.include('subscriptionResponse');
    expect(other.say('subscribe', 'openOrders', 4)).to.include('Invalid subscription');
  });

  describe('whose address has spent its budget', () => {
    const MAX_REFUSED = 20;
    const LIMITED = 'rate_limited: Too many queries, try again in 60 s';

    /** With the messages that were parsed, the frames that were sent, and how often it was given up. */
    function connect() {
      const said = { parsed: [] as string[], frames: [] as string[], pauses: 0, floods: 0 };
      const queue = { reply: (frame: Buffer) => void said.frames.push(frame.toString()) } as unknown as SendQueue;
      const submit = () => Promise.resolve({ reply: { status: 'ok' }, maker: addressOf(1) });
      const deps = {
        gateway: {
          ...{ markets: () => [WETH_USDC], submit },
          parse: (text: string): unknown => (said.parsed.push(text), JSON.parse(text)),
        },
        sessions: createSessions(),
        info: {
          queries: {
            take: () => {
              throw new RateLimitedError(60, LIMITED);
            },
            add: () => undefined,
          },
        },
        limits: { maxSubscriptions: 32, maxPendingPosts: 100, maxRefused: MAX_REFUSED },
      } as unknown as ConnectionDeps;
      const connection = createConnection(deps, queue, {
        ...{ ...SOCKET, address: '198.51.100.1', pause: () => void (said.pauses += 1) },
        flooded: () => {
          said.floods += 1;
          connection.onClose();
        },
      });
      return { said, connection };
    }

    const kinds: Record<string, (connection: Connection) => void> = {
      messages: (connection) => connection.onMessage('{"method":"ping"}'),
      'malformed messages': (connection) => connection.onMessage('x'),
      'binary messages': (connection) => connection.onBinary(),
      'pings of the protocol': (connection) => connection.onProbe(),
      'posts without an id': (connection) => connection.onMessage('{"method":"post"}'),
      'messages that look like posts': (connection) => connection.onMessage('{"method":"ping","of":"post"}'),
    };
    for (const [kind, send] of Object.entries(kinds))
      it(`is told once, and given up after too many ${kind} in one pause`, () => {
        const { said, connection } = connect();
        for (let i = 0; i < MAX_REFUSED; i += 1) send(connection);
        expect(said.frames).to.have.length(1);
        expect(said.frames[0]).to.include(LIMITED);
        expect([said.pauses, said.floods]).to.deep.equal([1, 0]);
        send(connection);
        expect([said.frames.length, said.floods]).to.deep.equal([1, 1]);
        if (kind.endsWith('messages') && !kind.startsWith('binary')) expect(said.parsed).to.have.length(1);
      });

    it('has its queries answered until there are too many, and its actions for good', async () => {
      const { said, connection } = connect();
      const post = (id: number, type: string): void =>
        connection.onMessage(JSON.stringify({ method: 'post', id, request: { type, payload: { type: 'meta' } } }));
      connection.onMessage('{"method":"ping"}');
      for (let id = 1; id <= MAX_REFUSED; id += 1) post(id, 'action');
      await setImmediate();
      expect(said.frames.filter((frame) => frame.includes('"ok"'))).to.have.length(MAX_REFUSED);
      expect(said.floods).to.equal(0);
      for (let id = 1; id <= MAX_REFUSED; id += 1) post(id, 'info');
      await setImmediate();
      expect(said.frames.filter((frame) => frame.includes(LIMITED))).to.have.length(1 + MAX_REFUSED);
      expect(said.floods).to.equal(1);
    });
  });
});
