import { expect } from 'chai';
import { createSequencer, type Sequencer } from '../../../server/edge/sequencer.js';
import { decodeReply, encodeAction, encodeBatch, macOfMessage, type BatchHead } from '../../../server/edge/codec.js';
import { GatewayUnavailableError } from '../../../server/orders/refusals.js';
import type { ExchangeReply, ForwardedAction } from '../../../server/orders/types.js';

const SECRET = 'a secret of tests, which protects nothing';
const NOW_MS = 1_700_000_000_000;
const HEAD: BatchHead = { deploymentId: '00aa', edge: 'one', epoch: 3, sentMs: NOW_MS };
const DONE: ExchangeReply = { status: 'ok', response: { type: 'default' } };

const action = (nonce: number): string =>
  encodeAction({
    signer: `0x${'ab'.repeat(20)}`,
    request: {
      action: { type: 'noop' },
      nonce,
      signature: { r: '0x1', s: '0x2', v: 27 },
      vaultAddress: null,
      expiresAfter: null,
    },
  });

describe('The sequencer', () => {
  let judged: number[] = [];
  let queued = 0;
  let active = true;
  let decide: (one: ForwardedAction) => Promise<ExchangeReply> = () => Promise.resolve(DONE);
  let sequencer: Sequencer;
  const warned: string[] = [];

  beforeEach(() => {
    judged = [];
    queued = 0;
    active = true;
    warned.length = 0;
    decide = () => Promise.resolve(DONE);
    sequencer = createSequencer({
      gateway: {
        decide(one) {
          judged.push(one.request.nonce);
          return decide(one);
        },
        orderSeq: () => 12,
        queued: () => queued,
        isActive: () => active,
      },
      ...{ secret: SECRET, deploymentId: '00aa', epoch: 3, verifies: false, clock: () => NOW_MS },
      logger: { warn: (_, message) => void warned.push(message), error: () => undefined },
    });
  });

  const batch = (nonces: number[], change: Partial<BatchHead> = {}, secret = SECRET): Buffer =>
    encodeBatch(secret, { ...HEAD, ...change }, nonces.map(action));
  const answersTo = async (message: Buffer, actions: number) =>
    decodeReply(SECRET, { mac: macOfMessage(message), actions }, (await sequencer.handle(message))!);

  it('judges actions in their order, and says up to which row that is true', async () => {
    expect(await answersTo(batch([3, 1, 2]), 3)).to.deep.equal({
      answers: [{ reply: DONE }, { reply: DONE }, { reply: DONE }],
      orderSeq: 12,
    });
    expect(judged).to.deep.equal([3, 1, 2]);
    expect(await answersTo(batch([]), 0)).to.deep.equal({ answers: [], orderSeq: 12 });
    expect(sequencer.facts()).to.deep.equal({ batches: 1, actions: 3, refused: 0, busy: 0 });
  });

  it('judges nothing that no edge of its own has sent to it now', async () => {
    const foreign = [
      batch([1], {}, `${SECRET}.`),
      batch([1], { deploymentId: '00bb' }),
      batch([1], { epoch: 2 }),
      batch([1], { sentMs: NOW_MS - 300_001 }),
      Buffer.from('rubbish'),
      Buffer.alloc(2_000_000),
    ];
    for (const message of foreign) expect(await sequencer.handle(message)).to.have.length(0);
    expect(judged).to.deep.equal([]);
    expect(sequencer.facts().refused).to.equal(foreign.length);
    expect(warned, 'the log is not flooded').to.have.length(1);
  });

  it('judges a message once, however often it comes, also while it is judged', async () => {
    const message = batch([1, 2]);
    const replies = await Promise.all([sequencer.handle(message), sequencer.handle(message)]);
    expect(replies[0]).to.deep.equal(replies[1]);
    expect(await sequencer.handle(message)).to.deep.equal(replies[0]);
    expect(judged).to.deep.equal([1, 2]);
  });

  it('judges an action again that failed, but not for a recorded message', async () => {
    const failure = { failure: 'write_failed', message: 'so' };
    decide = () => Promise.reject(new GatewayUnavailableError('write_failed', 'so'));
    const recorded = batch([1]);
    expect((await answersTo(recorded, 1))!.answers).to.deep.equal([failure]);
    decide = () => Promise.resolve(DONE);
    expect((await answersTo(recorded, 1))!.answers).to.deep.equal([failure]);
    expect((await answersTo(batch([1], { sentMs: NOW_MS + 1 }), 1))!.answers).to.deep.equal([{ reply: DONE }]);
  });

  it('never judges a recorded message that it turned away', async () => {
    queued = 4_096;
    const recorded = batch([1]);
    expect((await answersTo(recorded, 1))!.answers[0]).to.have.property('failure', 'busy');
    queued = 0;
    expect((await answersTo(recorded, 1))!.answers[0]).to.have.property('failure', 'busy');
    expect(judged).to.deep.equal([]);
  });

  it('does not say that nothing was stored when it does not know', async () => {
    decide = () => Promise.reject(new Error('Connection terminated unexpectedly'));
    expect((await answersTo(batch([1]), 1))!.answers[0]).to.have.property('failure', 'outcome_unknown');
  });

  it('answers with no more than NATS takes; what has no room is asked for again', async () => {
    const statuses = Array.from({ length: 1_000 }, () => ({ error: `order_not_found: ${'x'.repeat(80)}` }));
    decide = () => Promise.resolve({ status: 'ok', response: { type: 'cancel', data: { statuses } } });
    const message = batch(Array.from({ length: 12 }, (_, nonce) => nonce));
    const bytes = (await sequencer.handle(message))!;
    expect(bytes.length).to.be.at.most(1_000_000);
    const { answers } = (await answersTo(message, 12))!;
    expect(answers[0]).to.have.property('reply');
    expect(answers.filter((answer) => 'failure' in answer && answer.failure === 'outcome_unknown')).not.to.have.length(
      0,
    );
  });

  it('is heard by edges only while it owns the log', async () => {
    active = false;
    expect(await sequencer.handle(batch([]))).to.equal(null);
  });

  it('turns batches away while too much waits, of one edge or of all', async () => {
    const release = Promise.withResolvers<ExchangeReply>();
    decide = () => release.promise;
    const open = Array.from({ length: 16 }, (_, nonce) => sequencer.handle(batch([nonce])));
    expect((await answersTo(batch([99]), 1))!.answers[0]).to.have.property('failure', 'busy');
    const other = sequencer.handle(batch([98], { edge: 'two' }));
    release.resolve(DONE);
    await Promise.all([...open, other]);
    expect((await answersTo(batch([97]), 1))!.answers[0]).to.have.property('reply');
    queued = 4_096;
    expect((await answersTo(batch([96]), 1))!.answers[0]).to.have.property('failure', 'busy');
    expect(judged).not.to.include(96);
  });

  it('bounds the batches of all edges together, whatever they call themselves', async () => {
    const release = Promise.withResolvers<ExchangeReply>();
    decide = () => release.promise;
    const open = Array.from({ length: 128 }, (_, nonce) => sequencer.handle(batch([nonce], { edge: `edge ${nonce}` })));
    expect((await answersTo(batch([999], { edge: 'another' }), 1))!.answers[0]).to.have.property('failure', 'busy');
    release.resolve(DONE);
    await Promise.all(open);
    expect((await answersTo(batch([998], { edge: 'another' }), 1))!.answers[0]).to.have.property('reply');
  });
});
