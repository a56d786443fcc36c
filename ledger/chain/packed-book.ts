/**
 * Stored form of the book behind a curve that a fill hit: bytes in base64, about ten for each order and 27 with a client order id, where the JSON of
 * an order has 120 and more. The books are most of what a fill takes where each hits a curve of its own.
 */
import { toSafeInt } from '../../core/amounts.js';
import { PayloadError, decodeSnapshot, encodeSnapshot } from '../../core/json.js';
import type { Hex, MarketSnapshot, SnapshotOrder } from '../../core/types.js';

/** First number of the bytes. */
const FORMAT = 1n;
const MAKER = /^0x[0-9a-f]{40}$/;
const CLOID = /^0x[0-9a-f]{32}$/;

/** Packs a book; one with a name that is not in lower-case hex stays JSON. The order of its orders is kept. */
export function packBook(book: MarketSnapshot): string {
  const orders = [...book.asks, ...book.bids];
  const isHex = orders.every(({ maker, cloid }) => MAKER.test(maker) && (cloid === undefined || CLOID.test(cloid)));
  if (!isHex) return encodeSnapshot(book);
  const makers = [...new Set(orders.map(({ maker }) => maker))];
  const placeOf = new Map(makers.map((maker, place) => [maker, BigInt(place)]));
  const bytes: number[] = [];
  const hex = (text: string): void => void bytes.push(...Buffer.from(text.slice(2), 'hex'));
  for (const value of [FORMAT, BigInt(book.market), BigInt(book.fillSeq), book.askVolumeUnits, book.bidVolumeUnits])
    put(bytes, value);
  put(bytes, BigInt(makers.length));
  makers.forEach(hex);
  // Neighbours in a book have prices and ids that are near each other, across the sides, too.
  let [lastOid, lastTicks] = [0n, 0n];
  for (const side of [book.asks, book.bids]) {
    put(bytes, BigInt(side.length));
    for (const { oid, maker, priceTicks, sizeLots, cloid } of side) {
      put(bytes, 2n * placeOf.get(maker)! + (cloid === undefined ? 0n : 1n));
      for (const value of [BigInt(oid) - lastOid, priceTicks - lastTicks, sizeLots]) put(bytes, value);
      if (cloid !== undefined) hex(cloid);
      [lastOid, lastTicks] = [BigInt(oid), priceTicks];
    }
  }
  return Buffer.from(bytes).toString('base64');
}

/** Inverse of packBook; reads the JSON of older rows, too. Throws PayloadError or RangeError for anything that packBook does not write. */
export function unpackBook(text: string): MarketSnapshot {
  if (text.startsWith('{')) return decodeSnapshot(text);
  const read = reader(Buffer.from(text, 'base64'));
  if (read.value() !== FORMAT) throw new PayloadError('a stored book has an unknown format');
  const [market, fillSeq] = [read.whole(), read.whole()];
  const [askVolumeUnits, bidVolumeUnits] = [read.value(), read.value()];
  const makers = Array.from({ length: read.count() }, () => read.hex(20));
  let [lastOid, lastTicks] = [0n, 0n];
  const side = (): SnapshotOrder[] =>
    Array.from({ length: read.count() }, () => {
      const name = read.whole();
      const maker = makers[Math.floor(name / 2)];
      if (maker === undefined) throw new PayloadError('a stored book names a maker that it does not list');
      lastOid += read.value();
      lastTicks += read.value();
      const order = { oid: toSafeInt(lastOid), maker, priceTicks: lastTicks, sizeLots: read.value() };
      return name % 2 === 0 ? order : { ...order, cloid: read.hex(16) };
    });
  const book = { market, fillSeq, askVolumeUnits, bidVolumeUnits, asks: side(), bids: side() };
  // Base64 passes over characters that it does not know, and numbers may be written in more than one way.
  if (packBook(book) !== text) throw new PayloadError('a stored book has other bytes than it was written with');
  return book;
}

/** Appends an integer: seven bits in each byte, lowest first, its sign in the lowest bit. */
function put(bytes: number[], value: bigint): void {
  let left = value < 0n ? -2n * value - 1n : 2n * value;
  for (; left > 127n; left >>= 7n) bytes.push(toSafeInt(left & 127n) | 128);
  bytes.push(toSafeInt(left));
}

/** Bytes of the longest integer, which is far longer than any amount. */
const LONGEST = 64;

function reader(bytes: Buffer) {
  let at = 0;
  function take(length: number): Buffer {
    const taken = bytes.subarray(at, at + length);
    if (taken.length < length) throw new PayloadError('a stored book ends too early');
    at += length;
    return taken;
  }
  function value(): bigint {
    let found = 0n;
    for (let i = 0; i < LONGEST; i += 1) {
      const byte = take(1)[0]!;
      found |= BigInt(byte & 127) << BigInt(7 * i);
      if (byte < 128) return (found & 1n) === 0n ? found >> 1n : -((found + 1n) >> 1n);
    }
    throw new PayloadError('a stored book has a number that is out of range');
  }
  const whole = (): number => {
    const number = toSafeInt(value());
    if (number < 0) throw new PayloadError('a stored book has a number that is out of range');
    return number;
  };
  return {
    value,
    whole,
    /** Of things that take a byte each at least. */
    count(): number {
      const number = whole();
      if (number > bytes.length) throw new PayloadError('a stored book ends too early');
      return number;
    },
    hex: (length: number): Hex => `0x${take(length).toString('hex')}`,
  };
}
