/** Edges as processes of their own: an order over one of them, subscriptions, and what happens when any process dies. */
import { expect } from 'chai';
import WebSocket from 'ws';
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { Wallet } from 'ethers';
import { natsProgram } from '../../support/nodes/nats.js';
import { accountOf, forPostgresUrl, until } from '../../support/stack.js';
import { FIRST_ASSET } from '../../support/trading.js';
import { GATEWAY, startEdges, type Edges } from '../../support/nodes/edges.js';

const program = natsProgram();

if (program !== null) {
  forPostgresUrl((database, open) => {
    describe(`Edges, on ${database}`, function () {
      this.timeout(300_000);
      let edges: Edges;

      before(async () => {
        edges = await startEdges(program, await open());
      });

      after(() => edges?.close());

      const clientAt = (url: string) => {
        const transport = new HttpTransport({ apiUrl: url });
        const { address, privateKey } = accountOf(edges.stack, 'maker1');
        return {
          user: address,
          exchange: new ExchangeClient({ transport, wallet: new Wallet(privateKey) }),
          info: new InfoClient({ transport }),
        };
      };
      const order = (price: string) => ({
        orders: [{ a: FIRST_ASSET, b: true, p: price, s: '0.1', r: false, t: { limit: { tif: 'Gtc' as const } } }],
        grouping: 'na' as const,
      });
      const oidOf = (reply: Awaited<ReturnType<ExchangeClient['order']>>): number => {
        const [status] = reply.response.data.statuses;
        if (typeof status !== 'object' || !('resting' in status)) throw new Error(JSON.stringify(reply));
        return status.resting.oid;
      };

      it('take an order, store it as the gateway does, and show it at once; other edges follow', async () => {
        const [one, other] = [clientAt(edges.urls[0]!), clientAt(edges.urls[1]!)];
        const oid = oidOf(await one.exchange.order(order('1000')));
        const shown = await one.info.openOrders({ user: one.user });
        expect(shown.map((open) => open.oid)).to.include(oid);
        await until('the other edge', async () =>
          (await other.info.openOrders({ user: one.user })).some((open) => open.oid === oid),
        );
        const reply = await other.exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oid }] });
        expect(reply.response.data.statuses).to.deep.equal(['success']);
        expect((await other.info.openOrders({ user: one.user })).map((open) => open.oid)).not.to.include(oid);
      });

      it('take actions over WebSocket, and tell subscribers of an order that came over another edge', async () => {
        const client = clientAt(edges.urls[0]!);
        const socket = new WebSocket(`${edges.urls[1]!.replace('http', 'ws')}/ws`);
        const frames: { channel: string; data: unknown }[] = [];
        socket.on('message', (text: Buffer) => void frames.push(JSON.parse(text.toString()) as (typeof frames)[0]));
        await new Promise((resolve) => socket.once('open', resolve));
        const send = (message: object): void => socket.send(JSON.stringify(message));
        send({ method: 'subscribe', subscription: { type: 'orderUpdates', user: client.user } });
        await until('the subscription', () =>
          Promise.resolve(frames.some(({ channel }) => channel === 'subscriptionResponse')),
        );
        const oid = oidOf(await client.exchange.order(order('1001')));
        await until('the update', () =>
          Promise.resolve(
            frames.some(
              ({ channel, data }) => channel === 'orderUpdates' && JSON.stringify(data).includes(`"oid":${oid},`),
            ),
          ),
        );
        const cancel = await edges.signed({ type: 'cancel', cancels: [{ a: FIRST_ASSET, o: oid }] });
        send({ method: 'post', id: 7, request: { type: 'action', payload: cancel } });
        await until('the answer', () => Promise.resolve(frames.some(({ channel }) => channel === 'post')));
        const answer = frames.find(({ channel }) => channel === 'post')!.data as { response: { payload: unknown } };
        expect(answer.response.payload).to.deep.equal({
          status: 'ok',
          response: { type: 'cancel', data: { statuses: ['success'] } },
        });
        socket.close();
      });

      it('answer the same signed action again as it was answered, and carry it out once', async () => {
        const body = await edges.signed({ type: 'order', ...order('1002') });
        const first = await edges.post(edges.urls[0]!, body);
        const second = await edges.post(edges.urls[1]!, body);
        expect(first.text).to.include('resting');
        expect(second).to.deep.equal(first);
        expect(await edges.rowsOf(body.nonce)).to.equal(1);
      });

      it('are ready while the gateway answers, and refuse clients that nobody knows by themselves', async () => {
        for (const url of edges.urls) {
          expect((await fetch(`${url}/ready`)).status).to.equal(200);
          expect((await fetch(`${url}/active`)).status).to.equal(200);
        }
        const stranger = Wallet.createRandom().privateKey;
        const before = await edges.judged();
        const body = await edges.signed({ type: 'order', ...order('1003') }, stranger);
        expect((await edges.post(edges.urls[0]!, body)).text).to.include('unknown_signer');
        expect((await edges.post(edges.urls[0]!, { rubbish: true })).status).to.equal(422);
        expect(await edges.judged()).to.equal(before);
      });

      it('count in their metrics, and in those of the gateway, what they hand over', async () => {
        const { metricsOf, urls } = edges;
        const [edge, gateway] = [await metricsOf(0), await metricsOf(GATEWAY)];
        await edges.post(urls[0]!, await edges.signed({ type: 'order', ...order('1004') }));
        const [edgeAfter, gatewayAfter] = [await metricsOf(0), await metricsOf(GATEWAY)];
        const moved = (before: Map<string, number>, after: Map<string, number>, names: RegExp) =>
          Object.fromEntries(
            [...after]
              .filter(([name]) => names.test(name))
              .map(([name, value]) => [name.replace('curvebook_', ''), value - (before.get(name) ?? NaN)]),
          );
        const { edge_resent: resent, ...handed } = moved(edge, edgeAfter, /^curvebook_edge_\w+$/);
        expect(handed).to.deep.equal({
          edge_actions: 1,
          edge_batches: 1,
          edge_sequencer: 0,
          edge_unknown: 0,
          edge_waiting: 0,
        });
        // A message that a slow machine answers late is sent again, and judged again.
        const judged = moved(gateway, gatewayAfter, /^curvebook_sequencer_/);
        expect(judged['sequencer_messages{outcome="judged"}']).to.be.within(1, 1 + resent!);
        expect(judged['sequencer_actions']).to.be.within(1, 1 + resent!);
        expect(judged['sequencer_messages{outcome="refused"}']).to.equal(0);
        expect(judged).to.have.property('sequencer_messages{outcome="busy"}');
        expect(edgeAfter.get('curvebook_edge_sequencer')).to.equal(1);
        expect([edgeAfter, gatewayAfter].map((of) => of.get('curvebook_nats_connected'))).to.deep.equal([1, 1]);
      });

      it('know of a gateway on standby whether it would be reached', async () => {
        const { child, metrics } = await edges.standby();
        const says = (value: number) =>
          until(`the standby to say ${value}`, async () => (await metrics()).get('curvebook_nats_connected') === value);
        await says(1);
        expect((await metrics()).get('curvebook_gateway_active'), 'it serves no edges yet').to.not.equal(1);
        await edges.nats.kill();
        await says(0);
        await edges.nats.start();
        await says(1);
        await child.end('SIGKILL');
        await edges.untilReady();
      });
    });
  });
}
