/** Streams of orders over edges while an edge, the gateway or NATS is killed or frozen: every answer is true of the order log. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { natsProgram } from '../../support/nodes/nats.js';
import { forPostgresUrl, until } from '../../support/stack.js';
import { FIRST_ASSET } from '../../support/trading.js';
import { GATEWAY, startEdges, type Edges } from '../../support/nodes/edges.js';

const program = natsProgram();
/** Clients at the same time, half of them at each edge first. */
const CLIENTS = 6;
/** Answers of which the documentation says that nothing was stored. */
const NOTHING = /^(?:standby|write_failed|replica_lag):/;

interface Sent {
  nonce: number;
  /** Null while nobody has said what became of it. */
  text: string | null;
  /** Refused, with nothing stored, by every server that was asked. */
  isNothing: boolean;
}

if (program !== null) {
  forPostgresUrl((database, open) => {
    describe(`Edges while processes die, on ${database}`, function () {
      this.timeout(600_000);
      let edges: Edges;

      beforeEach(async () => {
        edges = await startEdges(program, await open());
      });

      afterEach(() => edges?.close());

      /** Places and cancels until told to stop; whatever has no clear answer is sent again, as it is, to the other edge. */
      async function trade(client: number, signal: AbortSignal, sent: Sent[]): Promise<void> {
        let price = 1_000 + client;
        while (!signal.aborted) {
          price = price >= 1_400 ? 1_000 + client : price + CLIENTS;
          const order = { a: FIRST_ASSET, b: true, p: `${price}`, s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } };
          const placed = await send(client, { type: 'order', orders: [order], grouping: 'na' }, signal, sent);
          const oid = /"oid":(\d+)/.exec(placed.text ?? '')?.[1];
          if (oid !== undefined)
            await send(client, { type: 'cancel', cancels: [{ a: FIRST_ASSET, o: Number(oid) }] }, signal, sent);
        }
      }

      async function send(client: number, action: object, signal: AbortSignal, sent: Sent[]): Promise<Sent> {
        const body = await edges.signed(action);
        const one: Sent = { nonce: body.nonce, text: null, isNothing: false };
        sent.push(one);
        let mayBeStored = false;
        for (let turn = 0; turn < 40; turn += 1) {
          const url = edges.urls[(client + turn) % edges.urls.length]!;
          const answer = await edges.post(url, body).catch(() => null);
          if (answer?.status === 200) {
            one.text = answer.text;
            return one;
          }
          if (answer !== null) expect(answer.status, answer.text).to.equal(503);
          if (answer !== null && answer.text !== '') counts.set(answer.text, (counts.get(answer.text) ?? 0) + 1);
          if (answer === null || !NOTHING.test(answer.text)) mayBeStored = true;
          if (signal.aborted && turn > 20) break;
          await delay(100);
        }
        one.isNothing = !mayBeStored;
        return one;
      }

      const counts = new Map<string, number>();

      /** Trades, lets `during` happen, and compares every answer with the log. */
      async function trial(during: () => Promise<void>): Promise<void> {
        const stopping = new AbortController();
        const sent: Sent[] = [];
        const clients = Array.from({ length: CLIENTS }, (_, client) => trade(client, stopping.signal, sent));
        await until('some trading', () => Promise.resolve(sent.filter(({ text }) => text !== null).length > 20));
        await during();
        const before = sent.length;
        await until('trading to go on', () =>
          Promise.resolve(sent.slice(before).filter(({ text }) => text?.includes('"ok"') === true).length > 20),
        );
        stopping.abort();
        await Promise.all(clients);
        const rows = await edges.query<{ nonce: string; effects: string }>(
          'select nonce, effects from order_log where nonce is not null',
        );
        const stored = new Map<number, string[]>();
        for (const { nonce, effects } of rows)
          stored.set(Number(nonce), [...(stored.get(Number(nonce)) ?? []), effects]);
        for (const { nonce, text, isNothing } of sent) {
          const of = stored.get(nonce) ?? [];
          expect(of.length, `rows of ${nonce}, answered ${text}`).to.be.at.most(1);
          if (isNothing) expect(of, `nothing of ${nonce} is stored`).to.deep.equal([]);
          if (text === null) continue;
          expect(text, 'no false refusal').to.match(/"status":"ok"/);
          expect(of, `the row of ${nonce}, answered ${text}`).to.have.length(1);
          const oid = /"resting":\{"oid":(\d+)/.exec(text)?.[1];
          if (oid !== undefined) expect(of[0]).to.match(new RegExp(`"oid":"?${oid}\\b`));
        }
        const unanswered = sent.filter(({ text }) => text === null).length;
        process.stdout.write(
          `      ${sent.length} actions, ${unanswered} without an answer in the end; ${JSON.stringify([...counts])}\n`,
        );
        counts.clear();
      }

      it('lose and double nothing when an edge is killed', () =>
        trial(async () => {
          await edges.kill(0);
          await delay(500);
          await edges.revive(0);
        }));

      it('lose and double nothing when the gateway is killed, and a standby takes over', async () => {
        const standby = await edges.standby();
        await trial(() => edges.stack.kill(GATEWAY));
        expect((await fetch(`${standby.url}/active`)).status).to.equal(200);
        await edges.untilReady();
      });

      it('lose and double nothing when NATS is killed, and comes back', async () => {
        await trial(async () => {
          await edges.nats.kill();
          await until('an edge that is not ready', async () => {
            const answer = await fetch(`${edges.urls[0]!}/ready`);
            return answer.status === 503 && (await answer.text()).includes('no_nats');
          });
          await edges.nats.start();
        });
        await edges.untilReady();
      });

      it('lose and double nothing when the gateway freezes, a standby takes over, and it goes on later', async () => {
        const standby = await edges.standby();
        const pid = edges.stack.pid(GATEWAY);
        await trial(async () => {
          process.kill(pid, 'SIGSTOP');
          await until('the standby', async () => (await fetch(`${standby.url}/active`)).status === 200, 60_000);
          process.kill(pid, 'SIGCONT');
        });
      });
    });
  });
}
