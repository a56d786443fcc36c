/** What an edge sends to whom, over a bus that the test answers. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { authenticMac, decodeBatch, encodeReply } from '../../../server/edge/codec.js';
import type { Asked, Bus } from '../../../server/edge/bus.js';
import { createLink, type Link } from '../../../server/edge/link.js';
import { until } from '../../support/gateway-suite.js';

const SECRET = 'a secret of tests, which protects nothing';

describe('The link of an edge', () => {
  let link: Link | null = null;
  afterEach(() => link?.close());

  function start(request: (epoch: number, actions: number, reply: () => Asked) => Asked | Promise<Asked>) {
    const log = { epoch: 3, read: (): Promise<unknown> => Promise.resolve(log) };
    const bus: Bus = {
      ...{ isConnected: () => true, lost: () => 0, serve: () => () => undefined, close: () => Promise.resolve() },
      async request(_, data) {
        const { epoch, actions } = decodeBatch(data);
        const answers = actions.map(() => ({ reply: { status: 'ok' as const, response: { type: 'default' } } }));
        const reply = encodeReply(SECRET, authenticMac(SECRET, data)!, { answers, orderSeq: 1 });
        return request(epoch, actions.length, () => ({ kind: 'reply', data: reply }));
      },
    };
    const started = createLink({
      ...{ bus, secret: SECRET, deploymentId: '00aa', tickMs: 1, timeoutMs: 400, maxWaiting: 100 },
      db: { reads: () => ({ where: () => ({ first: () => log.read() }) }) } as never,
      clock: () => Date.now(),
      monotonicMs: () => performance.now(),
      logger: { warn: () => undefined } as never,
    });
    link = started;
    return { link: started, log };
  }

  const submit = ({ forward }: Link): Promise<string> =>
    forward
      .submit({
        signer: `0x${'ab'.repeat(20)}`,
        request: {
          ...{ action: { type: 'noop' }, nonce: 1, vaultAddress: null, expiresAfter: null },
          signature: { r: '0x1', s: '0x2', v: 27 },
        },
      })
      .then(
        () => 'done',
        (error: unknown) => (error as { code: string }).code,
      );

  it('publishes no action while the sequencer is not heard, and then nothing was stored', async () => {
    let published = 0;
    const one = start((_, actions) => {
      published += actions;
      return { kind: 'unknown' };
    });
    expect(await submit(one.link)).to.equal('standby');
    expect(published).to.equal(0);
  });

  it('does not know of a published action that nothing was stored, whoever says that nobody listens', async () => {
    const one = start((_, actions, reply) => (actions === 0 ? reply() : { kind: 'unknown' }));
    await until(() => one.link.unready() === null);
    expect(await submit(one.link)).to.equal('outcome_unknown');
  });

  it('does not take a late reply of an earlier owner for one of the present', async () => {
    const late = Promise.withResolvers<void>();
    let asked = 0;
    const one = start(async (epoch, actions, reply) => {
      if (epoch === 3 && actions > 0) await late.promise;
      else if (epoch === 4) {
        asked += 1;
        return { kind: 'unknown' };
      }
      return reply();
    });
    await until(() => one.link.unready() === null);
    const waiting = submit(one.link);
    await delay(20);
    one.log.epoch = 4;
    await until(() => asked > 0);
    expect(one.link.unready()).to.equal('no_sequencer');
    late.resolve();
    await waiting;
    expect(one.link.unready()).to.equal('no_sequencer');
  });

  it('looks on another connection for the sequencer after one that does not answer, and ends while one does not', async () => {
    const one = start((_, _actions, reply) => reply());
    await until(() => one.link.unready() === null);
    const dead = new Promise(() => undefined);
    const answering = one.log.read;
    one.log.read = () => {
      one.log.read = answering;
      return dead;
    };
    await until(() => one.link.unready() === 'no_sequencer');
    await until(() => one.link.unready() === null);
    one.log.read = () => dead;
    await delay(1_000);
    await one.link.close();
  });
});
