import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createBatcher, type Batcher, type BatcherOptions, type Sent } from '../../../server/edge/batcher.js';
import type { Answer } from '../../../server/edge/codec.js';
import type { ForwardedAction } from '../../../server/orders/types.js';

const DONE: Answer = { reply: { status: 'ok', response: { type: 'default' } } };
const failed = (failure: 'busy' | 'standby' | 'write_failed' | 'outcome_unknown'): Answer => ({
  failure,
  message: 'so',
});

const signerOf = (index: number) => `0x${index.toString(16).padStart(40, '0')}` as const;

const forwarded = (nonce: number, filler = '', signer = signerOf(1)): ForwardedAction => ({
  signer,
  request: {
    action: { type: 'noop', filler },
    nonce,
    signature: { r: '0x1', s: '0x2', v: 27 },
    vaultAddress: null,
    expiresAfter: null,
  },
});

const nonceOf = (text: string): number => (JSON.parse(text) as { nonce: number }).nonce;

describe('Batches of an edge', () => {
  let batcher: Batcher | null = null;
  afterEach(() => batcher?.close());

  /** What was sent, as nonces, and the answers to it, in their order; the last one goes for all that follow. */
  function start(answers: ((nonces: number[]) => Sent | Promise<Sent>)[], change: Partial<BatcherOptions> = {}) {
    const sent: number[][] = [];
    batcher = createBatcher({
      async send(actions) {
        const nonces = actions.map(nonceOf);
        sent.push(nonces);
        return answers[Math.min(sent.length, answers.length) - 1]!(nonces);
      },
      ...{ tickMs: 5, timeoutMs: 1_000, maxWaiting: 1_000 },
      ...change,
    });
    return { batcher, sent };
  }

  const all =
    (answer: Answer) =>
    (nonces: number[]): Sent => ({
      kind: 'reply',
      reply: { answers: nonces.map(() => answer), orderSeq: 5 },
    });
  const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error);
  const outcome = (one: Promise<unknown>): Promise<string> => one.then(() => 'done', codeOf);

  it('hold all actions of a tick, in their order', async () => {
    const { batcher: to, sent } = start([all(DONE)]);
    const replies = await Promise.all([1, 2, 3].map((nonce) => to.submit(forwarded(nonce))));
    expect(sent).to.deep.equal([[1, 2, 3]]);
    expect(replies[2]).to.deep.equal({ reply: { status: 'ok', response: { type: 'default' } }, orderSeq: 5 });
    expect(to.facts()).to.include({ waiting: 0, batches: 1, actions: 3, resent: 0 });
  });

  it('are no longer than a message, and hold no more actions than a commit', async () => {
    const { batcher: to, sent } = start([all(DONE)], { maxBytes: 2_000 });
    const tooLong = await to.submit(forwarded(0, 'x'.repeat(2_000)));
    expect(tooLong.reply).to.deep.equal({ status: 'err', response: 'batch_too_large: Too many orders in batch' });
    await Promise.all(Array.from({ length: 20 }, (_, nonce) => to.submit(forwarded(nonce, 'x'.repeat(300)))));
    expect(sent.length).to.be.greaterThan(4);
    const { batcher: other, sent: counted } = start([all(DONE)], { maxWaiting: 2_400 });
    await Promise.all(Array.from({ length: 600 }, (_, nonce) => other.submit(forwarded(nonce))));
    expect(counted.map((nonces) => nonces.length)).to.deep.equal([256, 256, 88]);
  });

  it('hold no more entries than a reply has room for', async () => {
    const { batcher: to, sent } = start([all(DONE)]);
    const cancels = Array.from({ length: 1_000 }, (_, o) => ({ a: 10_000, o }));
    const massCancel = (nonce: number): ForwardedAction => {
      const { signer, request } = forwarded(nonce);
      return { signer, request: { ...request, action: { type: 'cancel', cancels } } };
    };
    await Promise.all(Array.from({ length: 12 }, (_, nonce) => to.submit(massCancel(nonce))));
    expect(sent.map((nonces) => nonces.length)).to.deep.equal([4, 4, 4]);
  });

  it('leave room for others while one maker fills its share', async () => {
    const silent = () => delay(300).then(() => ({ kind: 'unknown' as const }));
    const { batcher: to } = start([silent], { maxWaiting: 8, timeoutMs: 200 });
    const own = [1, 2].map((nonce) => outcome(to.submit(forwarded(nonce), signerOf(7))));
    expect(await outcome(to.submit(forwarded(3, '', signerOf(2)), signerOf(7)))).to.equal('write_failed');
    const other = outcome(to.submit(forwarded(4, '', signerOf(3))));
    expect(await Promise.all([...own, other])).to.deep.equal(Array(3).fill('outcome_unknown'));
    const bytes = start([silent], { maxWaitingBytes: 4_000, timeoutMs: 200 });
    const long = outcome(bytes.batcher.submit(forwarded(1, 'x'.repeat(600))));
    expect(await outcome(bytes.batcher.submit(forwarded(2, 'x'.repeat(600))))).to.equal('write_failed');
    const longOfOther = outcome(bytes.batcher.submit(forwarded(3, 'x'.repeat(600), signerOf(2))));
    expect(await Promise.all([long, longOfOther])).to.deep.equal(Array(2).fill('outcome_unknown'));
  });

  it('are sent again after silence, and what the log says then counts', async () => {
    const { batcher: to, sent } = start([() => ({ kind: 'unknown' }), all(DONE)]);
    expect(await outcome(to.submit(forwarded(1)))).to.equal('done');
    expect(sent).to.deep.equal([[1], [1]]);
    expect(to.facts()).to.include({ resent: 1, unknown: 0 });
  });

  it('have an unknown outcome when nobody says it in time, and only then', async () => {
    const silent = start([() => ({ kind: 'unknown' })], { timeoutMs: 150 });
    expect(await outcome(silent.batcher.submit(forwarded(1)))).to.equal('outcome_unknown');
    expect(silent.batcher.facts().unknown).to.equal(1);
    const nobody = start([() => ({ kind: 'undelivered' })], { timeoutMs: 150 });
    expect(await outcome(nobody.batcher.submit(forwarded(1)))).to.equal('standby');
    const standbyAfterSilence = start([() => ({ kind: 'unknown' }), all(failed('standby'))], { timeoutMs: 250 });
    expect(await outcome(standbyAfterSilence.batcher.submit(forwarded(1)))).to.equal('outcome_unknown');
    const standby = start([all(failed('standby'))], { timeoutMs: 150 });
    expect(await outcome(standby.batcher.submit(forwarded(1)))).to.equal('standby');
  });

  it('are not said to have failed when an earlier message may have been carried out', async () => {
    const plain = start([all(failed('write_failed'))], { timeoutMs: 250 });
    expect(await outcome(plain.batcher.submit(forwarded(1)))).to.equal('write_failed');
    const doubtful = start([() => ({ kind: 'unknown' }), all(failed('write_failed'))], { timeoutMs: 250 });
    expect(await outcome(doubtful.batcher.submit(forwarded(1)))).to.equal('outcome_unknown');
    const undecided = start([all(failed('outcome_unknown')), all(DONE)]);
    expect(await outcome(undecided.batcher.submit(forwarded(1)))).to.equal('done');
  });

  it('are sent again without what was answered', async () => {
    const { batcher: to, sent } = start([
      (nonces) => ({
        kind: 'reply',
        reply: { answers: nonces.map((n) => (n === 2 ? failed('busy') : DONE)), orderSeq: 1 },
      }),
      all(DONE),
    ]);
    await Promise.all([1, 2, 3].map((nonce) => to.submit(forwarded(nonce))));
    expect(sent).to.deep.equal([[1, 2, 3], [2]]);
  });

  it('refuse more than may wait, at once, and end when they are closed', async () => {
    const { batcher: to } = start([() => delay(50).then(() => ({ kind: 'unknown' as const }))], { maxWaiting: 2 });
    const waiting = [1, 2].map((nonce) => outcome(to.submit(forwarded(nonce, '', signerOf(nonce)))));
    expect(await outcome(to.submit(forwarded(3, '', signerOf(3))))).to.equal('write_failed');
    await delay(60);
    to.close();
    expect(await Promise.all(waiting)).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
    expect(await outcome(to.submit(forwarded(4)))).to.equal('standby');
    await to.idle();
  });

  it('that wait for one in flight end in time, too', async () => {
    const { batcher: to } = start([() => delay(400).then(() => ({ kind: 'undelivered' as const }))], {
      timeoutMs: 150,
    });
    const waiting: Promise<string>[] = [];
    for (let nonce = 0; nonce < 6; nonce += 1) {
      waiting.push(outcome(to.submit(forwarded(nonce))));
      await delay(8);
    }
    const last = await Promise.race([waiting[5]!, delay(350).then(() => 'still waiting')]);
    expect(last).to.equal('standby');
    await Promise.all(waiting);
  });
});
