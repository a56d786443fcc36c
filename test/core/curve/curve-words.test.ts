import { expect } from 'chai';
import fc from 'fast-check';
import { keccak256 as ethersKeccak, concat, toBeHex } from 'ethers';
import { CurveError } from '../../../core/curve/errors.js';
import { amendedWords, decodePost, encodePost, wordChanges, type PostRecord } from '../../../core/curve/post.js';
import * as words from '../../../core/curve/words.js';
import type { Hex } from '../../../core/types.js';
import { fcOptions } from '../../support/fc.js';
import { WETH_USDC } from '../../support/markets.js';

const uint = (bits: bigint): fc.Arbitrary<bigint> => fc.bigInt(0n, 2n ** bits - 1n);
const knot = fc.record({ mantissa: fc.bigInt(1n, 4095n), exponent: uint(4n), offset: uint(16n) });
const packedSide = fc.record({
  shift: uint(4n),
  basePrice: uint(25n),
  knots: fc.array(knot, { minLength: 1, maxLength: 31 }),
});
const plain = <T>(value: T): T => structuredClone(value);
const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof CurveError) return error.code;
    throw error;
  }
  return 'none';
};

describe('core/curve/words', () => {
  it('lays out the first word as documented', () => {
    const knots = [{ mantissa: 0xabcn, exponent: 0xdn, offset: 0x1234n }];
    const packed = words.packSide({ shift: 0x7n, basePrice: 0x1ffffffn, knots });
    // g 0111 | words used 001 | base 1 1111 ...: 0111 0011 1111... = 0x73ffffff
    expect(packed).to.deep.equal([BigInt(`0x73ffffff${'abcd1234'}${'0'.repeat(48)}`)]);
  });

  it('gives packed sides back', () => {
    fc.assert(
      fc.property(packedSide, (side) => {
        const packed = words.packSide(side);
        expect(packed.length).to.equal(words.wordsFor(side.knots.length));
        expect(words.unpackSide(packed)).to.deep.equal(plain(side));
        expect(words.unpackSide([...packed, 2n ** 256n - 1n]), 'a word beyond those used').to.deep.equal(plain(side));
      }),
      fcOptions(200),
    );
  });

  it('needs one word for 7 knots, two for 15, three for 23, four for 31', () => {
    const table = [0, 1, 7, 8, 15, 16, 23, 24, 31].map((knots) => words.wordsFor(knots));
    expect(table).to.deep.equal([0, 1, 1, 2, 2, 3, 3, 4, 4]);
    expect([0, 1, 2, 3, 4].map((count) => words.knotsIn(count))).to.deep.equal([0, 7, 15, 23, 31]);
    expect(words.packSide({ shift: 0n, basePrice: 0n, knots: [] })).to.deep.equal([]);
    expect(words.decodeSide(WETH_USDC, 'ask', [])).to.deep.equal([]);
    expect(words.decodeSide(WETH_USDC, 'bid', [0n])).to.deep.equal([]);
  });

  it('ends a side at a zero mantissa and at a price that is not positive', () => {
    const knots = [1n, 2n, 3n].map((mantissa, i) => ({ mantissa, exponent: 1n, offset: BigInt(i * 5) }));
    const packed = words.packSide({ shift: 2n, basePrice: 10n, knots });
    expect(words.decodeSide(WETH_USDC, 'bid', packed)).to.deep.equal([
      { lengthUnits: 2n * WETH_USDC.lotUnits, subticks: 40n },
      { lengthUnits: 4n * WETH_USDC.lotUnits, subticks: 20n },
    ]);
    expect(words.decodeSide(WETH_USDC, 'ask', packed).map(({ subticks }) => subticks)).to.deep.equal([40n, 60n, 80n]);
    const withoutSecond = (packed[0] ?? 0n) & ~(0xfff00000n << 160n);
    expect(words.decodeSide(WETH_USDC, 'ask', [withoutSecond])).to.have.length(1);
  });

  it('refuses what does not fit', () => {
    const one = { mantissa: 1n, exponent: 0n, offset: 0n };
    const pack = (change: Partial<words.PackedSide>): string =>
      codeOf(() => words.packSide({ shift: 0n, basePrice: 0n, knots: [one], ...change }));
    expect(pack({})).to.equal('none');
    expect(pack({ shift: 16n })).to.equal('field_overflow');
    expect(pack({ basePrice: 2n ** 25n })).to.equal('field_overflow');
    expect(pack({ basePrice: -1n })).to.equal('field_overflow');
    expect(pack({ knots: [{ ...one, mantissa: 4096n }] })).to.equal('field_overflow');
    expect(pack({ knots: [{ ...one, offset: 65536n }] })).to.equal('field_overflow');
    expect(pack({ knots: [{ ...one, mantissa: 0n }] })).to.equal('empty_knot');
    expect(pack({ knots: Array.from({ length: 32 }, () => one) })).to.equal('too_many_knots');
    const two = words.packSide({ shift: 0n, basePrice: 1n, knots: Array.from({ length: 8 }, () => one) });
    expect(codeOf(() => words.unpackSide(two.slice(0, 1)))).to.equal('missing_words');
  });

  it('packs the words of swaps and posts, each field in its place', () => {
    const swap = fc.record({
      cumAsk: uint(96n),
      cumBid: uint(96n),
      fillSeq: uint(40n),
      lotExponent: uint(5n),
      tickLotMantissa: uint(10n),
      tickLotExponent: uint(5n),
      flags: uint(4n),
    });
    const post = fc.record({
      snapAsk: uint(92n),
      snapBid: uint(92n),
      maxTtlSec: uint(8n),
      deadlineSec: uint(32n),
      seq: uint(32n),
    });
    fc.assert(
      fc.property(swap, post, (a, b) => {
        const scale = (a.lotExponent << 19n) | (a.tickLotMantissa << 9n) | (a.tickLotExponent << 4n) | a.flags;
        expect(words.packSwapWord(a)).to.equal((a.cumAsk << 160n) | (a.cumBid << 64n) | (a.fillSeq << 24n) | scale);
        expect(words.unpackSwapWord(words.packSwapWord(a))).to.deep.equal(plain(a));
        const times = (b.maxTtlSec << 64n) | (b.deadlineSec << 32n) | b.seq;
        expect(words.packPostWord(b)).to.equal((b.snapAsk << 164n) | (b.snapBid << 72n) | times);
        expect(words.unpackPostWord(words.packPostWord(b))).to.deep.equal(plain(b));
      }),
      fcOptions(100),
    );
    const word = { snapAsk: 2n ** 92n, snapBid: 0n, maxTtlSec: 0n, deadlineSec: 0n, seq: 0n };
    expect(codeOf(() => words.packPostWord(word))).to.equal('field_overflow');
  });

  it('hashes ask words, then bid words', () => {
    const [asks, bids] = [[1n, 2n ** 255n], [3n]];
    expect(words.wordsHash(asks, bids)).to.equal(ethersKeccak(concat([...asks, ...bids].map((w) => toBeHex(w, 32)))));
    expect(words.wordsHash([], [])).to.equal(ethersKeccak('0x'));
  });
});

describe('core/curve/post', () => {
  const id: Hex = `0x${'ab'.repeat(32)}`;
  const hash: Hex = `0x${'0123456789abcdef'.repeat(4)}`;
  const block = { number: 0x010203, hash };
  const full: PostRecord = {
    kind: 'full',
    marketId: id,
    seq: 5,
    deadlineSec: 0x12345678,
    snapAskUnits: 1n,
    snapBidUnits: 2n ** 92n + 7n,
    exactAskKnots: 15,
    exactBidKnots: 0,
    askWords: [1n, 2n],
    bidWords: [3n],
  };
  const touch: PostRecord = { kind: 'touch', marketId: id, seq: 6, deadlineSec: 9, baseSeq: 5 };
  const partial: PostRecord = {
    kind: 'partial',
    marketId: id,
    seq: 7,
    deadlineSec: 10,
    baseSeq: 6,
    snapAskUnits: 4n,
    snapBidUnits: 2n ** 92n + 5n,
    exactAskKnots: 0,
    exactBidKnots: 3,
    askChanges: [null, 0x11n, null, 0x12n],
    bidChanges: [0x13n],
  };

  it('writes records byte by byte as documented', () => {
    const word = (value: string): string => value.padStart(64, '0');
    const volume = (value: string, exact = '0'): string => exact + value.padStart(23, '0');
    const reference = '000000010203' + '0123456789abcdef01234567';
    const first = `01${'ab'.repeat(32)}0000000512345678${volume('1', 'f')}${volume('7')}21${word('1')}${word('2')}${word('3')}`;
    const second = `02${'ab'.repeat(32)}000000060000000900000005`;
    const masks = ((0b1010 << 4) | 0b0001).toString(16);
    const volumes = `${volume('4')}${volume('5', '3')}`;
    const third =
      `03${'ab'.repeat(32)}000000070000000a00000006${volumes}${masks}` + `${word('11')}${word('12')}${word('13')}`;
    expect(encodePost(block, [full, touch, partial])).to.equal(`0x${reference}${first}${second}${third}`);
  });

  it('refuses a count of exact segments that has no place', () => {
    for (const exactAskKnots of [16, -1]) {
      const post = { ...full, exactAskKnots } as PostRecord;
      expect(codeOf(() => encodePost(block, [post]))).to.equal('field_overflow');
    }
  });

  it('has the size on which the gas of a post is reckoned', () => {
    const fifteen = { ...full, askWords: [1n, 2n], bidWords: [3n, 4n] };
    expect((encodePost(block, [fifteen]).length - 2) / 2).to.equal(18 + 41 + 25 + 4 * 32);
  });

  it('reads its own posts back', () => {
    const sides = fc.array(uint(256n), { maxLength: 4 });
    // The last of the changes is one, since what follows it stays anyway.
    const changes = fc
      .array(fc.option(uint(256n), { nil: null }), { maxLength: 4 })
      .filter((side) => side.at(-1) !== null);
    const record: fc.Arbitrary<PostRecord> = fc.oneof(
      fc.record({
        kind: fc.constant('full' as const),
        marketId: fc.constant(id),
        seq: fc.nat(2 ** 31 - 1),
        deadlineSec: fc.nat(2 ** 31 - 1),
        snapAskUnits: uint(92n),
        snapBidUnits: uint(92n),
        exactAskKnots: fc.nat(15),
        exactBidKnots: fc.nat(15),
        askWords: sides,
        bidWords: sides,
      }),
      fc.record({
        kind: fc.constant('touch' as const),
        marketId: fc.constant(id),
        seq: fc.nat(2 ** 31 - 1),
        deadlineSec: fc.nat(2 ** 31 - 1),
        baseSeq: fc.nat(2 ** 31 - 1),
      }),
      fc.record({
        kind: fc.constant('partial' as const),
        marketId: fc.constant(id),
        seq: fc.nat(2 ** 31 - 1),
        deadlineSec: fc.nat(2 ** 31 - 1),
        baseSeq: fc.nat(2 ** 31 - 1),
        snapAskUnits: uint(92n),
        snapBidUnits: uint(92n),
        exactAskKnots: fc.nat(15),
        exactBidKnots: fc.nat(15),
        askChanges: changes,
        bidChanges: changes,
      }),
    );
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 4 }), (records) => {
        const decoded = decodePost(encodePost(block, records));
        expect(decoded.block).to.deep.equal({ number: block.number, hash: block.hash.slice(0, 26) });
        expect(decoded.records).to.deep.equal(plain(records));
      }),
      fcOptions(100),
    );
  });

  it('finds the changes between two sides, which turn the one into the other', () => {
    const side = fc.option(packedSide, { nil: null }).map((one) => (one === null ? [] : words.packSide(one)));
    const pairs = fc.tuple(side, side, fc.array(fc.boolean(), { minLength: 4, maxLength: 4 })).map(([a, b, same]) => {
      const after = b.map((word, i) => (same[i] && a[i] !== undefined && i > 0 ? a[i] : word));
      return [a, after] as const;
    });
    fc.assert(
      fc.property(pairs, ([before, after]) => {
        const changes = wordChanges(before, after);
        expect(amendedWords(before, changes)).to.deep.equal([...after]);
        for (const [i, word] of changes.entries()) {
          if (word === null) expect(before[i]).to.equal(after[i]);
        }
        if (before.length === after.length && before.every((word, i) => word === after[i])) {
          expect(changes).to.deep.equal([]);
        }
      }),
      fcOptions(200),
    );
  });

  it('refuses changes that the chain would refuse', () => {
    const head = (used: bigint): bigint => used << 249n;
    const two = [head(2n), 5n];
    expect(amendedWords(two, [null, 6n])).to.deep.equal([head(2n), 6n]);
    expect(amendedWords(two, [head(1n)])).to.deep.equal([head(1n)]);
    expect(amendedWords(two, [0n])).to.deep.equal([]);
    expect(amendedWords([], [])).to.deep.equal([]);
    const bad: [bigint[], (bigint | null)[]][] = [
      [two, [null, null, 7n]],
      [two, [head(3n)]],
      [two, [head(5n), 1n, 2n, 3n]],
      [two, [1n]],
      [two, [0n, 6n]],
      [[], [null, 6n]],
      [[], [head(2n)]],
    ];
    for (const [before, changes] of bad) {
      expect(
        codeOf(() => amendedWords(before, changes)),
        String(changes),
      ).to.equal('malformed_post');
    }
  });

  it('refuses bad input', () => {
    expect(codeOf(() => encodePost(block, []))).to.equal('empty_post');
    expect(codeOf(() => encodePost({ ...block, hash: '0x12' }, [touch]))).to.equal('bad_hash');
    expect(codeOf(() => encodePost(block, [{ ...touch, marketId: '0x12' }]))).to.equal('bad_market');
    expect(codeOf(() => encodePost(block, [{ ...touch, seq: 2 ** 32 }]))).to.equal('field_overflow');
    expect(codeOf(() => encodePost(block, [{ ...full, askWords: [1n, 2n, 3n, 4n, 5n] }]))).to.equal('too_many_words');
    const fiveChanges = [null, null, null, null, 5n];
    expect(codeOf(() => encodePost(block, [{ ...partial, bidChanges: fiveChanges }]))).to.equal('too_many_words');
    const bytes = encodePost(block, [full, touch, partial]);
    for (let cut = 2; cut < bytes.length; cut += 2) {
      const recordEnds = [18, 18 + 41 + 25 + 96, 18 + 41 + 25 + 96 + 45].map((end) => 2 + 2 * end);
      const code = codeOf(() => decodePost(bytes.slice(0, cut) as Hex));
      expect(code, `cut at ${cut}`).to.equal(recordEnds.includes(cut) ? 'none' : 'malformed_post');
    }
    expect(codeOf(() => decodePost(`${bytes.slice(0, 38)}04${bytes.slice(40)}` as Hex))).to.equal('malformed_post');
  });
});
