import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { ethers } from 'ethers';
import { bytesToHex, hexToBytes } from '../../core/hash.js';
import type { Address } from '../../core/types.js';
import { readAction } from '../../core/wire/action.js';
import { canonicalDecimal, withPoint } from '../../core/wire/decimal.js';
import { agentDigest, approveBuilderFeeDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction, preimage } from '../../core/wire/encode.js';
import { WireError } from '../../core/wire/errors.js';
import { createRecovery, recoverAddress, signatureBackend } from '../../core/wire/recover.js';
import { readSignedRequest } from '../../core/wire/request.js';
import type { SourceLetter, WireSignature } from '../../core/wire/types.js';
import { digestOfApproveAgent, readApproveAgent } from '../../core/wire/user-signed.js';
import { fcOptions } from '../support/fc.js';

interface L1Vector {
  name: string;
  action: Record<string, unknown> & { type: string };
  nonce: number;
  vaultAddress: Address | null;
  expiresAfter: number | null;
  isTestnet: boolean;
  msgpackHex: string;
  preimageHex: string;
  connectionId: string;
  eip712Digest: string;
  signature: WireSignature;
  recovered: string;
  signer: string;
}

interface UserVector {
  name: string;
  action: Record<string, unknown> & { type: string };
  message: Record<string, string>;
  domain: { chainId: number };
  nonce: number;
  eip712Digest: string;
  signature: WireSignature;
  recovered: string;
}

interface Vectors {
  counts: { l1: number; userSigned: number; pythonSdkPublished: number; traps: number };
  l1: L1Vector[];
  userSigned: UserVector[];
  pythonSdkPublished: (Omit<L1Vector, 'signature'> & { signature?: WireSignature })[];
  traps: Record<string, string>[] & { wireAction?: unknown }[];
}

const vectors = JSON.parse(readFileSync(new URL('../fixtures/wire-vectors.json', import.meta.url), 'utf8')) as Vectors;

const source = (isTestnet: boolean): SourceLetter => (isTestnet ? 'b' : 'a');
const l1 = (name: string): L1Vector => {
  const found = vectors.l1.find((vector) => vector.name === name);
  if (found === undefined) throw new Error(`no vector ${name}`);
  return found;
};
const trap = (name: string): Record<string, string> & { wireAction?: unknown } => {
  const found = vectors.traps.find((vector) => vector.name === name);
  if (found === undefined) throw new Error(`no trap ${name}`);
  return found;
};

/** The signer of an action that is encoded as it stands. */
function signerOf(action: object, vector: L1Vector, letter: SourceLetter = source(vector.isTestnet)): Address | null {
  return recoverAddress(agentDigest(letter, connectionId(encodeAction(action), vector)), vector.signature);
}

describe('wire: signed actions', () => {
  it('has every vector', () => {
    expect(vectors.l1).to.have.length(vectors.counts.l1);
    expect(vectors.userSigned).to.have.length(vectors.counts.userSigned);
    expect(vectors.pythonSdkPublished).to.have.length(vectors.counts.pythonSdkPublished);
    expect(vectors.traps).to.have.length(6);
    expect(vectors.counts.l1).to.equal(63);
  });

  it('recovers with the native library', () => {
    expect(signatureBackend).to.equal('native');
  });

  for (const vector of vectors.l1) {
    it(`encodes and recovers ${vector.name}`, () => {
      const request = readSignedRequest(vector);
      const bytes = encodeAction(readAction(request.action));
      expect(bytesToHex(bytes)).to.equal(vector.msgpackHex);
      expect(bytesToHex(preimage(bytes, request))).to.equal(vector.preimageHex);
      const id = connectionId(bytes, request);
      expect(bytesToHex(id)).to.equal(vector.connectionId);
      const digest = agentDigest(source(vector.isTestnet), id);
      expect(bytesToHex(digest)).to.equal(vector.eip712Digest);
      expect(recoverAddress(digest, request.signature)).to.equal(vector.recovered);
      expect(vector.recovered).to.equal(vector.signer);
    });
  }

  it('encodes actions alike when their keys come in reverse order', () => {
    for (const vector of vectors.l1) {
      expect(bytesToHex(encodeAction(readAction(reversed(vector.action))))).to.equal(vector.msgpackHex, vector.name);
    }
  });

  it('keeps the code of a broker for the hash, after the grouping, wherever it stands', () => {
    const plain = vectors.l1.filter(({ action }) => action.grouping === 'na' && action.builder === undefined);
    expect(plain.length).to.be.greaterThan(5);
    for (const { name, action, msgpackHex } of plain) {
      // A map of four instead of three, and the key and its value behind the rest, as the client's own encoder has them.
      const expected =
        msgpackHex.replace(/^(0x)?83/, (_, prefix: string = '') => `${prefix}84`) + 'aa62726f6b6572436f646501';
      for (const sent of [
        { ...action, brokerCode: 1 },
        { brokerCode: 1, ...action },
      ])
        expect(bytesToHex(encodeAction(readAction(sent))), name).to.equal(expected);
    }
    for (const brokerCode of ['1', -1, 1.5, {}])
      expect(() => readAction({ ...plain[0]!.action, brokerCode })).to.throw(WireError, 'brokerCode');
  });

  for (const [index, vector] of vectors.pythonSdkPublished.entries()) {
    it(`agrees with the published vector ${index} (${vector.name})`, () => {
      // The SDK's test-suite signs a type that no venue knows; it shows the encoding only.
      const action = vector.action.type === 'dummy' ? vector.action : readAction(vector.action);
      const bytes = encodeAction(action);
      if (vector.msgpackHex !== undefined) expect(bytesToHex(bytes)).to.equal(vector.msgpackHex);
      const id = connectionId(bytes, vector);
      expect(bytesToHex(id)).to.equal(vector.connectionId);
      if (vector.signature === undefined) return expect(vector.name).to.equal('production-connectionId');
      expect(recoverAddress(agentDigest(source(vector.isTestnet), id), vector.signature)).to.equal(vector.recovered);
    });
  }
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

describe('wire: user-signed actions', () => {
  for (const vector of vectors.userSigned) {
    it(`digests and recovers ${vector.name}`, () => {
      const digest =
        vector.action.type === 'approveAgent'
          ? digestOfApproveAgent(readApproveAgent(vector.action))
          : approveBuilderFeeDigest(BigInt(vector.domain.chainId), {
              hyperliquidChain: vector.message.hyperliquidChain ?? '',
              maxFeeRate: vector.message.maxFeeRate ?? '',
              builder: (vector.message.builder ?? '').toLowerCase() as Address,
              nonce: vector.nonce,
            });
      expect(bytesToHex(digest)).to.equal(vector.eip712Digest);
      expect(recoverAddress(digest, vector.signature)).to.equal(vector.recovered);
    });
  }

  it('refuses an approval of another shape', () => {
    const { action } = vectors.userSigned[0] as UserVector;
    expect(() => readApproveAgent({ ...action, hyperliquidChain: 'Devnet' })).to.throw(WireError, 'hyperliquidChain');
    expect(() => readApproveAgent({ ...action, signatureChainId: 1 })).to.throw(WireError, 'signatureChainId');
    expect(() => readApproveAgent({ ...action, agentAddress: '0x12' })).to.throw(WireError, 'agentAddress');
    expect(() => readApproveAgent({ ...action, extra: 1 })).to.throw(WireError, 'extra');
  });
});

describe('wire: traps', () => {
  it('verified as the other network, an unrelated address comes out', () => {
    const { baseVector, recovered, expectedSigner } = trap('verified-as-other-network');
    const vector = l1(baseVector ?? '');
    expect(signerOf(readAction(vector.action), vector, 'b')).to.equal(recovered);
    expect(signerOf(readAction(vector.action), vector, 'a')).to.equal(expectedSigner);
  });

  it('shuffled keys recover the signer only after the rebuild', () => {
    const { baseVector, wireAction, recoveredFromRawOrder, recoveredFromCanonicalOrder } =
      trap('json-key-order-shuffled');
    const vector = l1(baseVector ?? '');
    expect(signerOf(wireAction as object, vector)).to.equal(recoveredFromRawOrder);
    expect(signerOf(readAction(wireAction), vector)).to.equal(recoveredFromCanonicalOrder);
  });

  it('a padded price recovers the signer only after normalisation', () => {
    const { baseVector, wireP, recoveredFromRaw, recoveredFromCanonical } = trap('trailing-zero-price');
    const vector = l1(baseVector ?? '');
    const [order] = vector.action.orders as object[];
    const padded = { ...vector.action, orders: [{ ...order, p: wireP }] };
    expect(signerOf(readAction(padded, 'received'), vector)).to.equal(recoveredFromRaw);
    expect(signerOf(readAction(padded), vector)).to.equal(recoveredFromCanonical);
  });

  it('a null expiry is not hashed', () => {
    const { baseVector, recoveredWithZeroTail, expectedSigner } = trap('null-expiresAfter-hashed');
    const vector = l1(baseVector ?? '');
    const request = readSignedRequest({ ...vector, expiresAfter: null, vaultAddress: null });
    expect(signerOf(readAction(vector.action), { ...vector, ...request })).to.equal(expectedSigner);
    expect(signerOf(readAction(vector.action), { ...vector, expiresAfter: 0 })).to.equal(recoveredWithZeroTail);
  });

  it('integers above 2^32 are uint64', () => {
    const { baseVector, correctMsgpack } = trap('msgpackr-wrong-integers');
    expect(bytesToHex(encodeAction(readAction(l1(baseVector ?? '').action)))).to.equal(correctMsgpack);
  });

  it('short r is padded on the left', () => {
    const { r } = trap('short-r-hex');
    const vector = vectors.pythonSdkPublished.find((one) => one.name === 'dummy-vault' && one.signature?.r === r);
    expect(r).to.have.length(64);
    const request = readSignedRequest(vector);
    const digest = agentDigest('a', connectionId(encodeAction(vector?.action ?? {}), request));
    expect(recoverAddress(digest, request.signature)).to.equal(vector?.recovered);
  });

  it('an upper-case client order id keeps its case in the received form only', () => {
    const action = { type: 'cancelByCloid', cancels: [{ asset: 10000, cloid: '0xABCDEF0123456789abcdef0123456789' }] };
    expect(readAction(action)).to.deep.equal({
      type: 'cancelByCloid',
      cancels: [{ asset: 10000, cloid: '0xabcdef0123456789abcdef0123456789' }],
    });
    expect(readAction(action, 'received')).to.deep.equal(action);
  });

  it('what is null or false by choice stays in the received form only', () => {
    const limit = { a: 10000, b: true, p: '1', s: '1', r: false, t: { limit: { tif: 'Gtc' } } };
    const cases: [received: object, canonical: object][] = [
      [{ type: 'scheduleCancel', time: null }, { type: 'scheduleCancel' }],
      [
        { type: 'cancel', cancels: [], f: null },
        { type: 'cancel', cancels: [] },
      ],
      [
        { type: 'cancelByCloid', cancels: [], f: false },
        { type: 'cancelByCloid', cancels: [] },
      ],
      [
        { type: 'batchModify', modifies: [], a: false },
        { type: 'batchModify', modifies: [] },
      ],
      [
        { type: 'modify', oid: 1, order: { ...limit, c: null }, a: null },
        { type: 'modify', oid: 1, order: limit },
      ],
      [
        { type: 'order', orders: [{ ...limit, c: null }], grouping: 'na', builder: null },
        { type: 'order', orders: [limit], grouping: 'na' },
      ],
    ];
    for (const [received, canonical] of cases) {
      expect(readAction(received)).to.deep.equal(canonical);
      // In the order of their keys, too.
      expect(JSON.stringify(readAction(received, 'received'))).to.equal(JSON.stringify(received));
    }
    expect(readAction({ type: 'scheduleCancel' }, 'received')).to.deep.equal({ type: 'scheduleCancel', time: null });
  });
});

describe('wire: recovery', () => {
  const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const toHex = (value: bigint): string => `0x${value.toString(16)}`;

  it('agrees with ethers and between both backends, and refuses high s', async () => {
    const wasm = await createRecovery('wasm');
    const native = await createRecovery('native');
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.bigInt(1n, ORDER - 1n), (digest, key) => {
        const wallet = new ethers.SigningKey(`0x${key.toString(16).padStart(64, '0')}`);
        const { r, s, v } = wallet.sign(digest);
        const signature: WireSignature = { r: toHex(BigInt(r)), s: toHex(BigInt(s)), v };
        const address = ethers.computeAddress(wallet.publicKey).toLowerCase();
        expect(native(digest, signature)).to.equal(address);
        expect(wasm(digest, signature)).to.equal(address);
        const high: WireSignature = { ...signature, s: toHex(ORDER - BigInt(s)), v: v === 27 ? 28 : 27 };
        expect(native(digest, high)).to.equal(null);
        expect(wasm(digest, high)).to.equal(null);
      }),
      fcOptions(40),
    );
  });

  it('gives null for r or s that no signature has, on both backends', async () => {
    const digest = hexToBytes(`0x${'11'.repeat(32)}`);
    for (const backend of ['native', 'wasm'] as const) {
      const recover = await createRecovery(backend);
      for (const [r, s] of [
        ['0x0', '0x1'],
        ['0x1', '0x0'],
        [toHex(ORDER), '0x1'],
        [`0x${'f'.repeat(64)}`, '0x1'],
      ] as const) {
        expect(recover(digest, { r, s, v: 27 }), `${backend} ${r} ${s}`).to.equal(null);
      }
    }
  });
});

describe('wire: shapes', () => {
  const order = { a: 10000, b: true, p: '2500.25', s: '0.5', r: false, t: { limit: { tif: 'Gtc' } } };
  const action = { type: 'order', orders: [order], grouping: 'na' };
  const withOrder = (change: object): object => ({ ...action, orders: [{ ...order, ...change }] });

  it('normalises decimals', () => {
    for (const [text, canonical] of [
      ['2500.250', '2500.25'],
      ['02500', '2500'],
      ['0.50', '0.5'],
      ['100', '100'],
      ['0', '0'],
      ['0.00', '0'],
      ['1.123456780', '1.12345678'],
    ] as const) {
      expect(canonicalDecimal(text), text).to.equal(canonical);
    }
    for (const text of ['', '.5', '5.', '-1', '+1', '1e3', 'NaN', '1,5', ' 1', '0x10', '1.123456789', '1'.repeat(41)]) {
      expect(canonicalDecimal(text), text).to.equal(null);
    }
    expect(withPoint('2500')).to.equal('2500.0');
    expect(withPoint('0.5')).to.equal('0.5');
  });

  it('is stable: a canonical decimal is its own canonical form', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 20n), fc.integer({ min: 0, max: 8 }), (digits, scale) => {
        const text = digits.toString().padStart(scale + 1, '0');
        const plain = scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`;
        const canonical = canonicalDecimal(plain);
        expect(canonical).to.match(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);
        expect(canonicalDecimal(canonical ?? '')).to.equal(canonical);
      }),
      fcOptions(200),
    );
  });

  it('refuses malformed actions and names the field', () => {
    const cases: [unknown, string][] = [
      [withOrder({ p: 2500 }), 'orders[0].p'],
      [withOrder({ s: '1e3' }), 'orders[0].s'],
      [withOrder({ a: -1 }), 'orders[0].a'],
      [withOrder({ a: 1.5 }), 'orders[0].a'],
      [withOrder({ b: 'true' }), 'orders[0].b'],
      [withOrder({ c: '0x1' }), 'orders[0].c'],
      [withOrder({ t: {} }), 'orders[0].t'],
      [withOrder({ t: { limit: { tif: 'Fok' } } }), 'orders[0].t.limit.tif'],
      [{ ...action, orders: {} }, 'orders'],
      [{ ...action, grouping: 'none' }, 'grouping'],
      [{ ...action, extra: 1 }, 'extra'],
      [{ type: 'teleport' }, 'action.type'],
      [{ type: 'constructor' }, 'action.type'],
      [{ type: 'cancel', cancels: [{ a: 1, o: 2 ** 53 }] }, 'cancels[0].o'],
      [null, 'action'],
    ];
    for (const [value, field] of cases) expect(() => readAction(value), field).to.throw(WireError, field);
  });

  it('ignores unknown keys of an order entry, and drops flags that are false', () => {
    expect(readAction(withOrder({ note: 'x' }))).to.deep.equal(action);
    expect(readAction({ type: 'cancel', cancels: [], f: false })).to.deep.equal({ type: 'cancel', cancels: [] });
    expect(readAction({ type: 'modify', oid: 1, order, a: true })).to.deep.equal({
      type: 'modify',
      oid: 1,
      order,
      a: true,
    });
  });

  it('refuses malformed envelopes', () => {
    const request = { action, nonce: 1, signature: { r: '0x1', s: '0x1', v: 27 } };
    expect(readSignedRequest({ ...request, vaultAddress: null, other: 1 }).vaultAddress).to.equal(null);
    expect(
      readSignedRequest({ ...request, vaultAddress: '1719884EB866cb12b2287399b15f7db5e7d775ea' }).vaultAddress,
    ).to.equal('0x1719884eb866cb12b2287399b15f7db5e7d775ea');
    for (const change of [
      { nonce: '1' },
      { nonce: -1 },
      { nonce: 2 ** 53 },
      { signature: { r: '0x', s: '0x1', v: 27 } },
      { signature: { r: `0x${'1'.repeat(65)}`, s: '0x1', v: 27 } },
      { signature: { r: '0x1', s: '0x1', v: 0 } },
      { vaultAddress: 'me' },
      { expiresAfter: '1' },
      { action: 'order' },
    ]) {
      expect(() => readSignedRequest({ ...request, ...change }), JSON.stringify(change)).to.throw(WireError);
    }
  });
});
