import { expect } from 'chai';
import fc from 'fast-check';
import { encodeSnapshot, PayloadError } from '../../../core/json.js';
import { snapshotHash } from '../../../core/snapshot.js';
import type { Address, MarketSnapshot, SnapshotOrder } from '../../../core/types.js';
import { packBook, unpackBook } from '../../../ledger/chain/packed-book.js';
import { fcOptions } from '../../support/fc.js';

const MAX_INT = Number.MAX_SAFE_INTEGER;
const hex = (digits: number) =>
  fc
    .uint8Array({ minLength: digits / 2, maxLength: digits / 2 })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`);
const makers = fc.array(hex(40), { minLength: 1, maxLength: 4 });
const side = fc.array(
  fc.record({
    oid: fc.integer({ min: 0, max: MAX_INT }),
    place: fc.nat(3),
    priceTicks: fc.bigInt(0n, 2n ** 128n),
    sizeLots: fc.bigInt(0n, 2n ** 256n),
    cloid: fc.option(hex(32)),
  }),
  { maxLength: 6 },
);
const books: fc.Arbitrary<MarketSnapshot> = fc
  .record({
    market: fc.nat(),
    fillSeq: fc.nat(MAX_INT),
    volumes: fc.tuple(fc.bigInt(0n, 2n ** 200n), fc.bigInt(0n, 2n ** 200n)),
    makers,
    sides: fc.tuple(side, side),
  })
  .map(({ market, fillSeq, volumes, makers: names, sides }) => {
    const [asks, bids] = sides.map((orders) =>
      orders.map(({ place, cloid, ...order }): SnapshotOrder => {
        const maker = names[place % names.length] as Address;
        return cloid === null ? { ...order, maker } : { ...order, maker, cloid };
      }),
    );
    const [askVolumeUnits, bidVolumeUnits] = volumes;
    return { market, fillSeq, askVolumeUnits, bidVolumeUnits, asks: asks!, bids: bids! };
  });

/** A book as the bots of the sandbox quote it: two makers with five orders on each side. */
function quoted(change: Partial<SnapshotOrder> = {}): MarketSnapshot {
  const orders = (sign: bigint): SnapshotOrder[] =>
    Array.from({ length: 10 }, (_, i) => ({
      oid: 1_000_000 + 7 * i,
      maker: `0x${['15d34aaf', '9965507d'][i % 2]!.repeat(5)}`,
      priceTicks: 250_000n + sign * BigInt(100 + 50 * i),
      sizeLots: 4_000n + 2_000n * BigInt(i),
      ...change,
    }));
  return {
    market: 0,
    fillSeq: 123_456,
    askVolumeUnits: 10n ** 24n,
    bidVolumeUnits: 10n ** 24n,
    asks: orders(1n),
    bids: orders(-1n),
  };
}

describe('packed books', () => {
  it('are read as they were written, whatever their numbers', () => {
    fc.assert(
      fc.property(books, (book) => {
        const text = packBook(book);
        expect(text).to.match(/^[A-Za-z0-9+/]+=*$/);
        expect(unpackBook(text)).to.deep.equal(structuredClone(book));
        expect(snapshotHash(unpackBook(text))).to.equal(snapshotHash(book));
        expect(unpackBook(encodeSnapshot(book)), 'of an older row').to.deep.equal(structuredClone(book));
      }),
      fcOptions(300),
    );
  });

  it('take about ten bytes for each order, and 27 with a client order id', () => {
    expect(packBook(quoted()).length).to.be.within(20 * 7, 20 * 16);
    expect(packBook(quoted({ cloid: `0x${'c1'.repeat(16)}` })).length).to.be.within(20 * 24, 20 * 38);
    expect(encodeSnapshot(quoted()).length).to.be.greaterThan(20 * 100);
  });

  it('stay JSON where a name is no lower-case hex', () => {
    const changes: Partial<SnapshotOrder>[] = [{ cloid: 'mine' }, { maker: `0x${'A'.repeat(40)}` }];
    for (const change of changes) {
      const book = quoted(change);
      expect(packBook(book)).to.equal(encodeSnapshot(book));
      expect(unpackBook(packBook(book))).to.deep.equal(book);
    }
  });

  it('are refused when a byte is missing, added or another one, unless they say another book', () => {
    const text = packBook(quoted());
    const bytes = Buffer.from(text, 'base64');
    const read = (changed: Buffer | string): MarketSnapshot | null => {
      try {
        return unpackBook(typeof changed === 'string' ? changed : changed.toString('base64'));
      } catch (error) {
        expect(error instanceof PayloadError || error instanceof RangeError, `${error as Error}`).to.equal(true);
        return null;
      }
    };
    for (let end = 0; end < bytes.length; end += 1)
      expect(read(bytes.subarray(0, end)), `cut at ${end}`).to.equal(null);
    expect(read(Buffer.concat([bytes, Buffer.of(0)]))).to.equal(null);
    for (const other of [`${text.slice(0, 9)}!${text.slice(9)}`, `${text}\n`, '', '[]', '{}'])
      expect(read(other), other).to.equal(null);
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1 << (at % 8);
      const found = read(changed);
      if (found !== null) expect(found, `byte ${at}`).to.not.deep.equal(unpackBook(text));
    }
    // A count that no book of so few bytes has is refused before anything is made for it.
    expect(read(Buffer.from('0200000000feffffffffff1f', 'hex'))).to.equal(null);
  });
});
