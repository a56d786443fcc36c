import { MerklePatriciaTrie } from '@ethereumjs/mpt';
import { expect } from 'chai';
import { decodeRlp, encodeRlp } from 'ethers';
import fc from 'fast-check';
import { bytesToHex, hexToBytes, keccakText } from '../../../core/hash.js';
import type { Hex } from '../../../core/types.js';
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { encodeReceipt, indexedRoot, receiptsRoot, type RpcReceipt } from '../../../keepers/chain/receipts-root.js';
import { rlp, scalar, type RlpItem } from '../../../keepers/chain/rlp.js';

const NOTHING = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421';
const NO_LOGS = `0x${'00'.repeat(256)}`;
const ZERO = `0x${'00'.repeat(32)}`;

/** Values as bytes, without 0x. */
async function oracleRoot(values: readonly string[]): Promise<Hex> {
  const trie = new MerklePatriciaTrie();
  for (const [index, value] of values.entries()) {
    const key = encodeRlp(scalar(`0x${index.toString(16)}`));
    await trie.put(hexToBytes(key), hexToBytes(`0x${value}`));
  }
  return bytesToHex(trie.root());
}

describe('RLP', () => {
  it('is what ethers makes of the same', () => {
    const data = fc.oneof(
      fc.uint8Array({ maxLength: 3 }),
      fc.uint8Array({ minLength: 54, maxLength: 57 }),
      fc.uint8Array({ minLength: 254, maxLength: 257 }),
    );
    const { item } = fc.letrec<{ item: RlpItem; list: RlpItem[] }>((tie) => ({
      item: fc.oneof({ depthSize: 'small' }, data.map(bytesToHex), tie('list')),
      list: fc.array(tie('item'), { maxLength: 4 }),
    }));
    fc.assert(
      fc.property(item, (one) => {
        expect(`0x${rlp(one)}`).to.equal(encodeRlp(one as Parameters<typeof encodeRlp>[0]));
      }),
    );
    expect(() => rlp('0x123')).to.throw(RangeError);
    expect(() => rlp('12')).to.throw(RangeError);
  });

  it('writes quantities without leading zeros', () => {
    expect(['0x0', '0x00', '0x7', '0x0ff', '0x100'].map(scalar)).to.deep.equal(['0x', '0x', '0x07', '0xff', '0x0100']);
    for (const text of ['', '0x', '1', '0xg']) expect(() => scalar(text), text).to.throw(RangeError);
  });
});

describe("root of a block's receipts", () => {
  const receipt = (change: Partial<RpcReceipt> = {}): RpcReceipt => ({
    type: '0x2',
    status: '0x1',
    cumulativeGasUsed: '0x5208',
    logsBloom: NO_LOGS,
    logs: [],
    ...change,
  });

  it('of no receipts, and of the first transaction of Ethereum (block 46,147)', () => {
    expect(receiptsRoot([])).to.equal(NOTHING);
    const root = '0x96a8e009d2b88b1483e6941e6812e32263b05683fac202abc622a3e31aed1957';
    const first = { root, cumulativeGasUsed: '0x5208', logsBloom: NO_LOGS, logs: [] };
    expect(receiptsRoot([first])).to.equal('0xfe2bf2a941abf41d72637e5b91750332a30283efd40c424dc522b77e6f0ed8c4');
  });

  it('of a receipt with an access list, as other implementations have it', () => {
    // One empty log of the zero address; the filter is that of no real log. reth's tests have the same vector.
    const log = { address: `0x${'00'.repeat(20)}`, topics: [], data: '0x' };
    const logsBloom = `0x${'00'.repeat(255)}01`;
    const odd = receipt({ type: '0x1', cumulativeGasUsed: '0x18eb4', logsBloom, logs: [log] });
    expect(receiptsRoot([odd])).to.equal('0xfe70ae4a136d98944951b2123859698d59ad251a381abc9960fa81cae3d0d4a0');
  });

  it('is that of an ordinary trie of the same values, whatever they are and how many', async () => {
    // Around the numbers at which the keys get longer, and with values that a node holds inline.
    for (const count of [1, 2, 15, 16, 17, 127, 128, 129, 200, 255, 256, 257, 300]) {
      const values = Array.from({ length: count }, (_, i) =>
        keccakText(`value ${i}`)
          .slice(2)
          .repeat(i % 5 === 0 ? 9 : 1),
      );
      expect(indexedRoot(values), `${count} values`).to.equal(await oracleRoot(values));
    }
    const value = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => bytesToHex(bytes).slice(2));
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 40 }), async (values) => {
        expect(indexedRoot(values)).to.equal(await oracleRoot(values));
      }),
    );
  });

  it('is of no receipt that begins as one and goes on in what somebody logged', () => {
    const forged = receipt({ logs: [{ address: `0x${'cc'.repeat(20)}`, topics: [ZERO], data: '0x1234' }] });
    const logged = `0x${encodeReceipt(forged).slice(2)}`;
    const real = encodeReceipt(receipt({ logs: [{ address: `0x${'ab'.repeat(20)}`, topics: [], data: logged }] }));
    expect(real.endsWith(logged.slice(2))).to.equal(true);
    const beginning = `0x${real.slice(0, real.length - logged.length + 2)}`;
    expect(() => receiptsRoot([{ ...forged, type: beginning }])).to.throw(RangeError, 'no type of a receipt');
    for (const type of ['0x80', '0xff', '0x100', '0x02f9']) {
      expect(() => encodeReceipt(receipt({ type })), type).to.throw(RangeError);
    }
    expect(encodeReceipt(receipt({ type: '0x7f' })).slice(0, 2)).to.equal('7f');
  });

  it('takes type, outcome, gas, filter and logs of a receipt, and nothing else', () => {
    const log = { address: `0x${'ab'.repeat(20)}`, topics: [ZERO], data: '0x1234' };
    const encoded = encodeReceipt(receipt({ logs: [log] }));
    expect(encoded.slice(0, 2)).to.equal('02');
    expect(decodeRlp(`0x${encoded.slice(2)}`)).to.deep.equal([
      '0x01',
      '0x5208',
      NO_LOGS,
      [[log.address, [ZERO], '0x1234']],
    ]);
    const more = { ...receipt({ logs: [log] }), blockHash: ZERO, gasUsed: '0x1', contractAddress: null };
    expect(encodeReceipt(more)).to.equal(encoded);
    expect(decodeRlp(`0x${encodeReceipt(receipt({ status: '0x0' })).slice(2)}`)).to.have.property('0', '0x');
    // Legacy ones have no type; types that nobody knows are like the others.
    expect(encodeReceipt(receipt({ type: '0x0' }))).to.equal(encodeReceipt(receipt()).slice(2));
    expect(encodeReceipt(receipt({ type: null }))).to.equal(encodeReceipt(receipt()).slice(2));
    expect(encodeReceipt(receipt({ type: '0x7d' }))).to.equal(`7d${encodeReceipt(receipt()).slice(2)}`);
  });

  it("takes the nonce of a rollup's deposit only together with its version", () => {
    const fields = (change: Partial<RpcReceipt>): unknown =>
      decodeRlp(`0x${encodeReceipt(receipt({ type: '0x7e', ...change })).slice(2)}`);
    expect(fields({})).to.have.length(4);
    expect(fields({ depositNonce: '0x3d3bbf' }), 'Regolith').to.have.length(4);
    const canyon = fields({ depositNonce: '0x3d3bbf', depositReceiptVersion: '0x1' });
    expect(canyon).to.deep.include.members(['0x3d3bbf', '0x01']).and.have.lengthOf(6);
    expect(fields({ depositNonce: '0x0', depositReceiptVersion: '0x1' })).to.have.property('4', '0x');
    const other = encodeReceipt(receipt({ depositNonce: '0x1', depositReceiptVersion: '0x1' }));
    expect(decodeRlp(`0x${other.slice(2)}`), 'no deposit').to.have.length(4);
  });

  it('refuses what is no receipt', () => {
    for (const bad of [
      {},
      receipt({ cumulativeGasUsed: 'x' }),
      receipt({ logsBloom: '0xzz' }),
      receipt({ logs: [{ address: '0x0', topics: [], data: '0x' }] }),
      receipt({ type: '0x100' }),
    ]) {
      let root: string | null = null;
      try {
        root = receiptsRoot([bad as RpcReceipt]);
      } catch (error) {
        expect(error instanceof RangeError || error instanceof TypeError, String(error)).to.equal(true);
      }
      expect(root).not.to.equal(receiptsRoot([receipt()]));
    }
  });
});

describe('hash of a header', () => {
  const genesis = {
    parentHash: ZERO,
    sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
    miner: `0x${'00'.repeat(20)}`,
    stateRoot: '0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544',
    transactionsRoot: NOTHING,
    receiptsRoot: NOTHING,
    logsBloom: NO_LOGS,
    difficulty: '0x400000000',
    number: '0x0',
    gasLimit: '0x1388',
    gasUsed: '0x0',
    timestamp: '0x0',
    extraData: '0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa',
    mixHash: ZERO,
    nonce: '0x0000000000000042',
  };

  it("is that of Ethereum's first block", () => {
    expect(headerHash(genesis)).to.equal('0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3');
  });

  it('changes with every field of it, and with no other', () => {
    const all = {
      ...genesis,
      baseFeePerGas: '0x7',
      withdrawalsRoot: NOTHING,
      blobGasUsed: '0x0',
      excessBlobGas: '0x0',
      parentBeaconBlockRoot: ZERO,
      requestsHash: ZERO,
      blockAccessListHash: ZERO,
      slotNumber: '0x5',
    };
    const hash = headerHash(all);
    for (const [name, value] of Object.entries(all)) {
      const last = value.endsWith('1') ? '2' : '1';
      const changed = value === '0x' ? '0x01' : value.slice(0, -1) + last;
      expect(headerHash({ ...all, [name]: changed }), name).not.to.equal(hash);
    }
    expect(headerHash({ ...all, size: '0x1', totalDifficulty: '0x2', hash: ZERO })).to.equal(hash);
    expect(headerHash({ ...all, slotNumber: undefined })).not.to.equal(hash);
    // What comes behind a field that is absent is none of the header's.
    expect(headerHash({ ...genesis, requestsHash: ZERO })).to.equal(headerHash(genesis));
    for (const name of Object.keys(genesis)) {
      expect(() => headerHash({ ...genesis, [name]: undefined }), name).to.throw(RangeError);
    }
  });
});
