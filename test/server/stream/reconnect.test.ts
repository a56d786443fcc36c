import { expect } from 'chai';
import fc from 'fast-check';
import { addGeneration, addressOf, fillOf, signRequest } from '../../support/gateway.js';
import { fcOptions } from '../../support/fc.js';
import { forEachGateway, limit, orderAction, runsOn, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import { connectWs } from '../../support/ws.js';
import type { Frame, WsClient } from '../../support/ws.js';

const MAKER = addressOf(1);
const LOT = WETH_USDC.lotUnits;

/** What a client knows that follows docs/orders.md, "Reconnecting". */
class Follower {
  readonly fills = new Map<number, string>();
  open = new Map<number, string>();
  private readonly closed = new Set<number>();
  private client: WsClient | null = null;
  private seen = 0;

  constructor(private readonly url: string) {}

  async connect(): Promise<void> {
    this.client = await connectWs(this.url);
    this.seen = 0;
    await this.client.subscribe({ type: 'orderUpdates', user: MAKER });
    await this.client.subscribe({ type: 'userFills', user: MAKER });
    const { payload } = await this.client.post('info', { type: 'openOrders', user: MAKER });
    const { data } = payload as { data: { oid: number; sz: string }[] };
    this.open = new Map(data.map(({ oid, sz }) => [oid, sz]));
    this.apply();
  }

  /** Takes in everything that arrived. */
  apply(): void {
    const frames = this.client?.frames ?? [];
    for (; this.seen < frames.length; this.seen += 1) this.take(frames[this.seen]!);
  }

  private take({ channel, data }: Frame): void {
    if (channel === 'userFills') for (const { tid, sz } of data.fills) this.fills.set(tid, sz);
    if (channel !== 'orderUpdates') return;
    for (const { order, status } of data) {
      if (status !== 'open') {
        this.closed.add(order.oid);
        this.open.delete(order.oid);
      } else if (!this.closed.has(order.oid)) {
        // Sizes only fall, so that the smaller one is the later one, whichever came first.
        const known = this.open.get(order.oid);
        if (known === undefined || Number.parseFloat(order.sz) < Number.parseFloat(known))
          this.open.set(order.oid, order.sz);
      }
    }
  }

  /** Cut off without a word. */
  cut(): void {
    this.client?.socket.terminate();
    this.apply();
  }
}

type Step = { kind: 'place'; lots: number } | { kind: 'cancel' | 'modify' | 'fill'; pick: number; lots: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('place' as const), lots: fc.integer({ min: 1, max: 9 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('cancel' as const, 'modify' as const, 'fill' as const),
      pick: fc.nat(),
      lots: fc.integer({ min: 1, max: 9 }),
    }),
  },
);

forEachGateway('reconnecting', (suite) => {
  it('ends with exactly the true orders and fills, wherever the connection breaks', async function () {
    this.timeout(600_000);
    const { gateway, url } = await suite.start();
    let fillSeq = 0;
    const size = (lots: number): string => `0.000${lots}`;

    async function act(action: object): Promise<void> {
      await gateway.submit(signRequest(action, 1, suite.nextNonce()));
    }

    async function apply(one: Step): Promise<void> {
      const open = gateway.book().openOrders(MAKER);
      if (one.kind === 'place' || open.length === 0) return act(orderAction(limit(true, '2500', size(one.lots))));
      const order = open[one.pick % open.length]!;
      if (one.kind === 'cancel') return act({ type: 'cancel', cancels: [{ a: 10000, o: order.oid }] });
      if (one.kind === 'modify')
        return act({ type: 'modify', oid: order.oid, order: limit(true, '2499', size(one.lots)) });
      const left = order.sizeLots * LOT - order.filledUnits;
      const wanted = (BigInt(one.lots) * LOT) / 2n;
      fillSeq += 1;
      await addGeneration(suite.db, fillOf(WETH_USDC, order, wanted < left ? wanted : left, fillSeq));
      gateway.onGeneration();
    }

    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 2, maxLength: 10 }),
        fc.array(fc.nat(9), { maxLength: 3 }),
        async (steps, cuts) => {
          const follower = new Follower(url);
          await follower.connect();
          for (const [index, one] of steps.entries()) {
            // Cut off and connecting again while things happen, not between them.
            const acting = apply(one);
            if (cuts.includes(index)) {
              follower.cut();
              await follower.connect();
            }
            await acting;
          }
          const truth = async (type: string): Promise<{ oid: number; tid: number; sz: string }[]> => {
            const response = await fetch(`${url}/info`, {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({ type, user: MAKER }),
            });
            return (await response.json()) as { oid: number; tid: number; sz: string }[];
          };
          await until(() => gateway.generation() === fillSeq + 1);
          const orders = new Map((await truth('openOrders')).map(({ oid, sz }) => [oid, sz]));
          const fills = new Map((await truth('userFills')).map(({ tid, sz }) => [tid, sz]));
          await until(() => {
            follower.apply();
            return follower.fills.size >= fills.size && sameMap(follower.open, orders);
          }).catch(() => undefined);
          expect(sorted(follower.open)).to.deep.equal(sorted(orders));
          expect(sorted(follower.fills)).to.deep.equal(sorted(fills));
          follower.cut();
        },
      ),
      fcOptions(runsOn(suite, 40)),
    );
  });
});

const sorted = (map: ReadonlyMap<number, string>): [number, string][] => [...map].sort(([a], [b]) => a - b);
const sameMap = (a: ReadonlyMap<number, string>, b: ReadonlyMap<number, string>): boolean =>
  JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
