/** The connection to a real server of NATS, and the whole way of a batch over it. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createBus, type Bus, type BusOptions } from '../../../server/edge/bus.js';
import { createLink } from '../../../server/edge/link.js';
import { createSequencer } from '../../../server/edge/sequencer.js';
import { subjectOf } from '../../../server/edge/link.js';
import type { ExchangeReply, ForwardedAction } from '../../../server/orders/types.js';
import { startNatsServers } from '../../support/console/compose.js';
import { natsProgram, startNats, type Nats } from '../../support/nodes/nats.js';
import { until } from '../../support/stack.js';

const program = natsProgram();
const SECRET = 'a secret of tests, which protects nothing';
const DONE: ExchangeReply = { status: 'ok', response: { type: 'default' } };

if (program !== null) {
  describe('A connection to NATS', function () {
    this.timeout(120_000);
    let nats: Nats;
    let servers: Nats[] = [];
    const buses: Bus[] = [];
    const warned: string[] = [];

    afterEach(async () => {
      await Promise.all(buses.splice(0).map((bus) => bus.close()));
      await nats?.close();
      await Promise.all(servers.splice(0).map((server) => server.close()));
      warned.length = 0;
    });

    function connect(change: Partial<BusOptions> = {}): Bus {
      const logger = { info: () => undefined, warn: (_: object, message: string) => void warned.push(message) };
      const bus = createBus({ servers: [nats.url], name: 'a test', logger, ...change });
      buses.push(bus);
      return bus;
    }
    const untilUp = (bus: Bus): Promise<void> => until('the connection', () => Promise.resolve(bus.isConnected()));
    const text = (data: Uint8Array): string => Buffer.from(data).toString('utf8');

    it('carries requests and replies, knows that nobody listens, and does not take silence for that', async () => {
      nats = await startNats(program);
      const [one, other] = [connect(), connect()];
      const leave = other.serve('here', (data) => Promise.resolve(Buffer.from(`${text(data)}!`)));
      other.serve('silent', () => new Promise(() => undefined));
      await Promise.all([untilUp(one), untilUp(other)]);
      await until('the service', async () => (await one.request('here', Buffer.from('x'), 1_000)).kind === 'reply');
      const asked = await one.request('here', Buffer.from('hello'), 1_000);
      expect(asked.kind === 'reply' && text(asked.data)).to.equal('hello!');
      // Anybody can say that nobody listens, in place of a process that has heard the request.
      expect(await one.request('nowhere', Buffer.from('x'), 1_000)).to.deep.equal({ kind: 'unknown' });
      expect(await one.request('silent', Buffer.from('x'), 200)).to.deep.equal({ kind: 'unknown' });
      leave();
      await until('its end', async () => (await one.request('here', Buffer.from('x'), 1_000)).kind === 'unknown');
    });

    it('survives what can not be answered', async () => {
      nats = await startNats(program);
      const [one, other] = [connect(), connect()];
      other.serve('here', (data) => Promise.resolve(Buffer.from(`${text(data)}!`)));
      other.serve('huge', () => Promise.resolve(Buffer.alloc(2_000_000)));
      other.serve('broken', () => Promise.reject(new Error('so')));
      other.serve('mute', () => Promise.resolve(null));
      await Promise.all([untilUp(one), untilUp(other)]);
      await until('the service', async () => (await one.request('here', Buffer.from('x'), 1_000)).kind === 'reply');
      for (const subject of ['huge', 'broken', 'mute'])
        expect(await one.request(subject, Buffer.from('x'), 200), subject).to.deep.equal({ kind: 'unknown' });
      expect((await one.request('here', Buffer.from('x'), 1_000)).kind).to.equal('reply');
      expect(warned.filter((message) => message.includes('could not be answered'))).to.have.length(2);
    });

    it('comes back after the server was killed, with what is served on it; meanwhile nothing leaves', async () => {
      nats = await startNats(program);
      const [one, other] = [connect(), connect()];
      other.serve('here', () => Promise.resolve(Buffer.from('yes')));
      await Promise.all([untilUp(one), untilUp(other)]);
      const pending = one.request('nobody answers', Buffer.from('x'), 300);
      await nats.kill();
      await until('the loss', () => Promise.resolve(!one.isConnected() && !other.isConnected()));
      expect((await pending).kind).to.be.oneOf(['unknown', 'undelivered']);
      expect(await one.request('here', Buffer.from('x'), 1_000)).to.deep.equal({ kind: 'undelivered' });
      expect(one.lost()).to.equal(1);
      await nats.start();
      await Promise.all([untilUp(one), untilUp(other)]);
      await until('the service', async () => (await one.request('here', Buffer.from('x'), 1_000)).kind === 'reply');
    });

    it('says who it is, and goes on asking where it is refused', async () => {
      nats = await startNats(program, 'authorization { user: curvebook, password: right }');
      const refused = connect({ user: 'curvebook', password: 'wrong' });
      const taken = connect({ user: 'curvebook', password: 'right' });
      await untilUp(taken);
      await until('the refusal', () => Promise.resolve(warned.length > 0));
      expect(refused.isConnected()).to.equal(false);
      expect(warned, 'said once').to.deep.equal(['NATS can not be reached; it will be tried again']);
    });

    it('serves as soon as it may what it was not allowed to, on the same connection', async () => {
      const users = (subjects: string): string =>
        `authorization { users: [
          { user: gateway, password: a, permissions: { subscribe: [${subjects}], publish: ">" } }, { user: edge, password: b }
        ] }`;
      nats = await startNats(program, users('"_INBOX.>"'));
      const gateway = connect({ user: 'gateway', password: 'a' });
      const edge = connect({ user: 'edge', password: 'b' });
      await Promise.all([untilUp(gateway), untilUp(edge)]);
      gateway.serve('here', () => Promise.resolve(Buffer.from('yes')));
      await until('the refusal', () => Promise.resolve(warned.some((message) => message.includes('refuses'))));
      expect((await edge.request('here', Buffer.from('x'), 500)).kind).to.equal('unknown');
      nats.configure(users('">"'));
      await until('an answer', async () => (await edge.request('here', Buffer.from('x'), 500)).kind === 'reply');
      expect(gateway.lost()).to.equal(0);
    });

    it('lets edges only ask, and gateways only answer, on whichever of its servers, as the compose file sets it up', async () => {
      servers = await startNatsServers(program, { NATS_PASSWORD: '1', NATS_EDGE_PASSWORD: '2 of edges' });
      const [first, second, third] = servers.map(({ url }) => [url]);
      const gateway = connect({ servers: first!, user: 'curvebook', password: '1' });
      const [edge, bad] = [second!, third!].map((at) => connect({ servers: at, user: 'edge', password: '2 of edges' }));
      await Promise.all([gateway, edge!, bad!].map(untilUp));
      const subject = subjectOf('00aa', 3);
      let heard = 0;
      bad!.serve(subject, () => Promise.resolve(Buffer.from('forged')));
      bad!.serve('elsewhere', () => Promise.resolve(Buffer.from('x')));
      gateway.serve(subject, () => {
        heard += 1;
        return Promise.resolve(Buffer.from('true'));
      });
      await until('the gateway', async () => (await edge!.request(subject, Buffer.from('x'), 1_000)).kind === 'reply');
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => edge!.request(subject, Buffer.from('x'), 1_000)),
      );
      expect(new Set(answers.map((asked) => asked.kind === 'reply' && text(asked.data)))).to.deep.equal(
        new Set(['true']),
      );
      const before = heard;
      expect((await gateway.request(subject, Buffer.from('x'), 300)).kind, 'a gateway asks nobody').to.equal('unknown');
      expect((await edge!.request('elsewhere', Buffer.from('x'), 300)).kind).to.equal('unknown');
      let forged = 0;
      edge!.serve('_INBOX.of.another', () => {
        forged += 1;
        return Promise.resolve(null);
      });
      expect((await bad!.request('_INBOX.of.another', Buffer.from('x'), 300)).kind).to.equal('unknown');
      expect(forged, 'an edge answers no other one').to.equal(0);
      expect(heard).to.equal(before);
    });

    it('takes batches to the sequencer with the same secret, and to no other', async () => {
      nats = await startNats(program);
      const judged: number[] = [];
      const decide = ({ request }: ForwardedAction): Promise<ExchangeReply> => {
        judged.push(request.nonce);
        return Promise.resolve(DONE);
      };
      const sequencer = createSequencer({
        gateway: { decide, orderSeq: () => 7, queued: () => 0, isActive: () => true },
        ...{ secret: SECRET, deploymentId: '00aa', epoch: 3, verifies: false, clock: () => Date.now() },
        logger: { warn: () => undefined, error: () => undefined },
      });
      connect().serve(subjectOf('00aa', 3), sequencer.handle);
      const linkWith = (secret: string) =>
        createLink({
          ...{ bus: connect(), secret, deploymentId: '00aa', tickMs: 5, timeoutMs: 1_000, maxWaiting: 100 },
          db: { reads: () => ({ where: () => ({ first: () => Promise.resolve({ epoch: 3 }) }) }) } as never,
          clock: () => Date.now(),
          monotonicMs: () => performance.now(),
          logger: { warn: (message: string) => void warned.push(message) } as never,
        });
      const right = linkWith(SECRET);
      const wrong = linkWith(`${SECRET}.`);
      await until('the sequencer', () => Promise.resolve(right.unready() === null));
      const action = (nonce: number): ForwardedAction => ({
        signer: `0x${'ab'.repeat(20)}`,
        request: {
          ...{ action: { type: 'noop' }, nonce, vaultAddress: null, expiresAfter: null },
          signature: { r: '0x1', s: '0x2', v: 27 },
        },
      });
      expect(await right.forward.submit(action(1))).to.deep.equal({ reply: DONE, orderSeq: 7 });
      const refused = await wrong.forward.submit(action(2)).catch((error: unknown) => error);
      expect(refused).to.have.property('code', 'standby');
      expect(wrong.unready()).to.equal('no_sequencer');
      expect(judged).to.deep.equal([1]);
      expect(sequencer.facts().refused).to.be.greaterThan(0);
      expect(warned.join()).to.include('EDGE_SECRET');
      await nats.kill();
      await until('the loss', () => Promise.resolve(right.unready() === 'no_nats'));
      const lost = await right.forward.submit(action(3)).catch((error: unknown) => error);
      expect(lost).to.have.property('code', 'standby');
      await Promise.all([right.close(), wrong.close()]);
      await delay(1);
    });
  });
}
