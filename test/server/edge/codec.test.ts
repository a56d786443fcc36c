import { expect } from 'chai';
import fc from 'fast-check';
import {
  MAX_BATCH_ACTIONS,
  MAX_MESSAGE_BYTES,
  authenticMac,
  decodeBatch,
  decodeReply,
  encodeAction,
  encodeBatch,
  encodeReply,
  macOfMessage,
  type Answer,
} from '../../../server/edge/codec.js';
import type { ForwardedAction } from '../../../server/orders/types.js';

const decode = (secret: string, message: Uint8Array) =>
  authenticMac(secret, message) === null ? null : decodeBatch(message);

const SECRET = 'a secret of tests, which protects nothing';
const HEAD = { deploymentId: '00aa', edge: 'one', epoch: 3, sentMs: 1_700_000_000_000 };

const forwarded = (nonce: number): ForwardedAction => ({
  signer: `0x${'ab'.repeat(20)}`,
  request: {
    action: { type: 'cancel', cancels: [{ a: 10_000, o: nonce }] },
    nonce,
    signature: { r: '0x1', s: '0x2', v: 27 },
    vaultAddress: null,
    expiresAfter: null,
  },
});

describe('Messages between edges and the sequencer', () => {
  const message = encodeBatch(
    SECRET,
    HEAD,
    [1, 2].map((nonce) => encodeAction(forwarded(nonce))),
  );

  it('say what was said', () => {
    const read = decode(SECRET, message);
    expect(read).to.deep.include(HEAD);
    expect(read!.actions).to.deep.equal([forwarded(1), forwarded(2)]);
    expect(decode(SECRET, encodeBatch(SECRET, HEAD, []))!.actions).to.deep.equal([]);
  });

  it('are nobody’s but of those who have the secret, whichever byte is another one', () => {
    expect(decode(`${SECRET}.`, message)).to.equal(null);
    fc.assert(
      fc.property(fc.nat(message.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const other = Buffer.from(message);
        other[at] = other[at]! ^ change;
        expect(decode(SECRET, other)).to.equal(null);
      }),
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => decode(SECRET, bytes) === null));
  });

  it('are bounded', () => {
    const many = Array.from({ length: MAX_BATCH_ACTIONS + 1 }, (_, nonce) => encodeAction(forwarded(nonce)));
    expect(() => decode(SECRET, encodeBatch(SECRET, HEAD, many))).to.throw();
    const long = encodeBatch(SECRET, { ...HEAD, edge: 'x'.repeat(MAX_MESSAGE_BYTES) }, []);
    expect(decode(SECRET, long)).to.equal(null);
  });

  it('are answered for themselves only', () => {
    const answers: Answer[] = [
      { reply: { status: 'ok', response: { type: 'default' } } },
      { failure: 'standby', message: 'elsewhere' },
    ];
    const mac = macOfMessage(message);
    const reply = encodeReply(SECRET, mac, { answers, orderSeq: 9 });
    expect(decodeReply(SECRET, { mac, actions: 2 }, reply)).to.deep.equal({ answers, orderSeq: 9 });
    expect(decodeReply(SECRET, { mac, actions: 1 }, reply)).to.equal(null);
    const otherMac = macOfMessage(encodeBatch(SECRET, HEAD, []));
    expect(decodeReply(SECRET, { mac: otherMac, actions: 2 }, reply)).to.equal(null);
    expect(decodeReply(`${SECRET}.`, { mac, actions: 2 }, reply)).to.equal(null);
    expect(decodeReply(SECRET, { mac, actions: 2 }, new Uint8Array(0))).to.equal(null);
    // A batch is no reply, although the same secret signs it.
    expect(decodeReply(SECRET, { mac, actions: 2 }, message)).to.equal(null);
  });
});
