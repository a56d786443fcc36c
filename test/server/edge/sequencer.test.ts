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
  let decide: (one: ForwardedAction) => Promise<ExchangeReply> = () => Promise.resolve(DONE);
  let sequencer: Sequencer;
  const warned: string[] = [];

  beforeEach(() => {
    judged = [];
    queued = 0;
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
      },
      ...{ secret: SECRET, deploymentId: '00aa', epoch: 3, verifies: false, clock: () => NOW_MS },
      logger: { warn: (_, message) => void warned.push(message), error: () => undefined },
    });
  });

  const batch = (nonces: number[], change: Partial<BatchHead> = {}, secret = SECRET): Buffer =>
    encodeBatch(secret, { ...HEAD, ...change }, nonces.map(action));
  const answersTo = async (message: Buffer, actions: number) =>
    decodeReply(SECRET, { mac: macOfMessage(message), actions }, await sequencer.handle(message));

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

  it('judges a message again of which something failed', async () => {
    decide = () => Promise.reject(new GatewayUnavailableError('outcome_unknown', 'so'));
    const message = batch([1]);
    expect(await answersTo(message, 1)).to.deep.equal({
      answers: [{ failure: 'outcome_unknown', message: 'so' }],
      orderSeq: 12,
    });
    decide = () => Promise.resolve(DONE);
    expect((await answersTo(message, 1))!.answers).to.deep.equal([{ reply: DONE }]);
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
});
