import { expect } from 'chai';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { createReadClient } from '../../sdk/src/index.js';
import { createStream, followOrders } from '../../sdk/src/stream.js';
import type { OrderState, Stream } from '../../sdk/src/stream.js';
import { addGeneration, addressOf, fillOf, signRequest } from '../support/gateway.js';
import { fcOptions } from '../support/fc.js';
import { forEachGateway, limit, orderAction, until } from '../support/gateway-suite.js';
import { WETH_USDC } from '../support/markets.js';

const MAKER = addressOf(1);
const LOT = WETH_USDC.lotUnits;

/** Sockets as they are opened, so that a test can cut them off without a word. */
function cuttable(): { Socket: typeof globalThis.WebSocket; cut(): void; opened(): number } {
  const open: WebSocket[] = [];
  class Socket extends WebSocket {
    constructor(url: string) {
      super(url);
      open.push(this);
    }
  }
  return {
    Socket: Socket as unknown as typeof globalThis.WebSocket,
    cut: () => open.at(-1)?.terminate(),
    opened: () => open.length,
  };
}

forEachGateway('the stream client', (suite) => {
  const streams: Stream[] = [];
  afterEach(() => streams.splice(0).forEach((stream) => stream.close()));

  it('ends with exactly the true orders and fills, wherever the connection breaks', async function () {
    this.timeout(600_000);
    const { gateway, url } = await suite.start();
    const read = createReadClient(url);
    let fillSeq = 0;

    async function act(action: object): Promise<void> {
      await gateway.submit(signRequest(action, 1, suite.nextNonce()));
    }

    async function step(kind: number, lots: number): Promise<void> {
      const open = gateway.book().openOrders(MAKER);
      const order = open[lots % Math.max(open.length, 1)];
      if (kind === 0 || order === undefined) return act(orderAction(limit(true, '2500', `0.000${lots}`)));
      if (kind === 1) return act({ type: 'cancel', cancels: [{ a: 10000, o: order.oid }] });
      const left = order.sizeLots * LOT - order.filledUnits;
      const wanted = (BigInt(lots) * LOT) / 2n;
      fillSeq += 1;
      await addGeneration(suite.db, fillOf(WETH_USDC, order, wanted < left ? wanted : left, fillSeq));
      gateway.onGeneration();
    }

    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 9 })), { minLength: 2, maxLength: 8 }),
        fc.array(fc.nat(7), { maxLength: 3 }),
        async (steps, cuts) => {
          const sockets = cuttable();
          const stream = createStream(url, { WebSocket: sockets.Socket });
          streams.push(stream);
          let state: OrderState = { isComplete: false, open: new Map() };
          const tids: number[] = [];
          const end = followOrders(stream, read, MAKER, {
            onOrders: (next) => (state = next),
            onFills: (fills) => tids.push(...fills.map(({ tid }) => tid)),
          });
          await until(() => state.isComplete);
          for (const [index, [kind, lots]] of steps.entries()) {
            const acting = step(kind, lots);
            if (cuts.includes(index)) sockets.cut();
            await acting;
          }
          const known = (): unknown => [...state.open.values()].map(({ oid, sz }) => [oid, sz]).sort();
          let fills: { tid: number }[] = [];
          // The gateway follows the ledger: what is true is asked for again until it has the newest fill.
          await until(async () => {
            const open = await read.info<{ oid: number; sz: string }[]>({ type: 'openOrders', user: MAKER });
            fills = await read.info<{ tid: number }[]>({ type: 'userFills', user: MAKER });
            const wanted = JSON.stringify(open.map(({ oid, sz }) => [oid, sz]).sort());
            const isTold = fills.length === fillSeq && tids.length >= fillSeq;
            return state.isComplete && isTold && JSON.stringify(known()) === wanted;
          });
          expect(new Set(tids).size, 'none twice').to.equal(tids.length);
          expect([...tids].sort()).to.deep.equal(fills.map(({ tid }) => tid).sort());
          end();
        },
      ),
      { ...fcOptions(6), endOnFailure: true },
    );
  });

  it('shares a subscription, serves both of its listeners, and ends it with the last one', async () => {
    const { url } = await suite.start();
    const sockets = cuttable();
    const stream = createStream(url, { WebSocket: sockets.Socket });
    streams.push(stream);
    const coins: string[] = [];
    const first = stream.subscribe({ type: 'l2Book', coin: '@0' }, ({ coin }) => coins.push(coin));
    await until(() => coins.length === 1);
    const second = stream.subscribe({ type: 'l2Book', coin: '@0' }, ({ coin }) => coins.push(`second ${coin}`));
    await until(() => coins.includes('second @0'));
    first();
    second();
    expect([stream.state(), sockets.opened()]).to.deep.equal(['connecting', 1]);
  });

  it('refuses what it could not tell apart, and more than the server takes', async () => {
    const { url } = await suite.start();
    const stream = createStream(url);
    streams.push(stream);
    stream.subscribe({ type: 'orderUpdates', user: MAKER }, () => undefined);
    expect(() => stream.subscribe({ type: 'orderUpdates', user: addressOf(2) }, () => undefined)).to.throw(/one user/);
    for (let i = 1; i < 32; i += 1) stream.subscribe({ type: 'userFills', user: addressOf(i) }, () => undefined);
    expect(() => stream.subscribe({ type: 'allMids' }, () => undefined)).to.throw(/at most 32/);
    stream.close();
    expect(() => stream.subscribe({ type: 'allMids' }, () => undefined)).to.throw(/closed/);
  });

  it('leaves nothing running when it is closed while it connects', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const { url } = await suite.start();
    const before = timers();
    const stream = createStream(url);
    stream.subscribe({ type: 'allMids' }, () => undefined);
    expect(timers()).to.be.above(before);
    stream.close();
    expect(timers()).to.equal(before);
  });

  it('goes on when a listener throws or the server complains', async () => {
    const { url } = await suite.start();
    const errors: string[] = [];
    const stream = createStream(url, { onError: ({ message }) => errors.push(message) });
    streams.push(stream);
    stream.subscribe({ type: 'l2Book', coin: '@99' }, () => undefined);
    let count = 0;
    stream.subscribe({ type: 'allMids' }, () => {
      count += 1;
      throw new Error('of the listener');
    });
    await until(() => errors.length >= 2);
    expect(count).to.be.above(0);
    expect(errors.join()).to.include('of the listener').and.to.include('@99');
    expect(stream.state()).to.equal('open');
  });
});
