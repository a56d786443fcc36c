/** The quick ways through the wire against slow ones that say the same. */
import { encode } from '@msgpack/msgpack';
import { expect } from 'chai';
import fc from 'fast-check';
import { createBook } from '../../core/book/create-book.js';
import * as json from '../../core/json.js';
import { priceToTicks, sizeToLots } from '../../core/market.js';
import type { OrderEffect, OrderLogRow } from '../../core/types.js';
import { readAction } from '../../core/wire/action.js';
import { canonicalDecimal } from '../../core/wire/decimal.js';
import { WireError } from '../../core/wire/errors.js';
import { encodeMsgpack } from '../../core/wire/msgpack.js';
import { createHistory } from '../../server/orders/history.js';
import { fcOptions } from '../support/fc.js';
import { WETH_USDC } from '../support/markets.js';

const bytes = (value: Uint8Array): string => Buffer.from(value).toString('hex');

/** Numbers around every length that MessagePack has for them. */
const uint = fc.oneof(
  fc.nat(),
  fc.maxSafeNat(),
  fc.constantFrom(0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 40 }),
  fc.constantFrom(31, 32, 255, 256, 65_535, 65_536).map((length) => 'x'.repeat(length)),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    uint,
    text,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('tree'), { maxLength: 20 }),
    fc.dictionary(text, tie('tree'), { maxKeys: 20 }),
  ),
}));

/** Digits and points, so that a good part of the texts are decimals of some form. */
const decimal = fc.oneof(
  fc.string({ unit: fc.constantFrom('0', '1', '9', '.'), maxLength: 14 }),
  fc.constantFrom('', '.', '1.', '.5', '-1', '1e3', '1.123456789', '0.10', '00', '0', '١', `1${'0'.repeat(40)}`),
);

function slowDecimal(value: string): string | null {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(value);
  if (match === null || value.length > 40) return null;
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  const whole = (match[1] ?? '').replace(/^0+(?=\d)/, '');
  if (fraction.length > 8) return null;
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

const HEX = '0123456789abcdefABCDEF'.split('');
/** Mostly what is well formed, so that whole orders are, too. */
const mostly = (valid: fc.Arbitrary<unknown>, ...wrong: unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 15, arbitrary: valid }, { weight: 1, arbitrary: fc.constantFrom(...wrong) });
const number = mostly(
  fc.oneof(
    fc.constantFrom('1', '0.5', '2500.25', '1.50', '007', '10', '0', '0.00000001'),
    decimal.filter((value) => slowDecimal(value) !== null),
  ),
  ...['', '.', '1.', '.5', '-1', '1e3', '1.123456789', '00.1.2', '\u0661', `1${'0'.repeat(40)}`, 1, null, undefined],
);
const order = fc.record({
  a: mostly(uint, -1, 0.5, '1', null, undefined),
  b: mostly(fc.boolean(), 1, null, undefined),
  p: number,
  s: number,
  r: mostly(fc.boolean(), 'false', undefined),
  t: mostly(
    fc.constantFrom({ limit: { tif: 'Gtc' } }, { limit: { tif: 'Alo', more: 1 } }, { limit: { tif: 'Ioc' } }),
    ...[{ limit: { tif: 'gtc' } }, { limit: { tif: 'Gtc' }, trigger: null }, { limit: [] }, { limit: null }],
    ...[[], 'limit', null, undefined],
  ),
  c: mostly(
    fc.oneof(
      fc.string({ unit: fc.constantFrom(...HEX), minLength: 32, maxLength: 32 }).map((digits) => `0x${digits}`),
      fc.constantFrom(null, undefined),
    ),
    'x',
    5,
    '0x',
  ),
  more: fc.constant(1),
});

type Sent = Partial<Record<'a' | 'b' | 'p' | 's' | 'r' | 't' | 'c', unknown>>;

/** What an order means, or null when it is malformed; said once more, field by field. */
function slowOrder({ a, b, p, s, r, t, c }: Sent, canonical: boolean): object | null {
  const isUint = typeof a === 'number' && Number.isSafeInteger(a) && a >= 0;
  if (!isUint || typeof b !== 'boolean' || typeof r !== 'boolean') return null;
  if (typeof p !== 'string' || typeof s !== 'string' || slowDecimal(p) === null || slowDecimal(s) === null) return null;
  const type = t as { limit?: { tif?: unknown } };
  const isLimit = typeof t === 'object' && t !== null && Object.keys(t).join() === 'limit';
  const tif = isLimit ? type.limit?.tif : null;
  if (tif !== 'Gtc' && tif !== 'Alo' && tif !== 'Ioc') return null;
  const read = { a, b, p: canonical ? slowDecimal(p) : p, s: canonical ? slowDecimal(s) : s, r, t: { limit: { tif } } };
  if (c === undefined || (c === null && canonical)) return read;
  if (c === null) return { ...read, c };
  if (typeof c !== 'string' || !/^0x[0-9a-fA-F]{32}$/.test(c)) return null;
  return { ...read, c: canonical ? c.toLowerCase() : c };
}

describe('wire: quick ways', () => {
  it('encodes like the library of MessagePack', () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(bytes(encodeMsgpack(value))).to.equal(bytes(encode(value)));
      }),
      fcOptions(500),
    );
    const large = { text: 'x'.repeat(200_000), list: Array.from({ length: 70_000 }, (_, index) => index) };
    expect(bytes(encodeMsgpack(large))).to.equal(bytes(encode(large)));
  });

  it('encodes nothing that an action can not hold', () => {
    for (const value of [-1, 0.5, 2 ** 53, Number.NaN, 1n, undefined, () => 1])
      expect(() => encodeMsgpack({ value }), String(value)).to.throw(RangeError);
  });

  it('keeps what it returned when it encodes again', () => {
    const first = encodeMsgpack({ type: 'noop' });
    const before = bytes(first);
    encodeMsgpack({ type: 'else' });
    expect(bytes(first)).to.equal(before);
  });

  it('normalises decimals as by their grammar', () => {
    fc.assert(
      fc.property(decimal, (value) => {
        expect(canonicalDecimal(value)).to.equal(slowDecimal(value));
      }),
      fcOptions(2_000),
    );
  });

  it('reads orders as field by field, in the order of signing, and refuses the same ones', () => {
    let [read, refused] = [0, 0];
    fc.assert(
      fc.property(order, fc.boolean(), (sent, canonical) => {
        const wanted = slowOrder(sent, canonical);
        const action = { type: 'order', orders: [sent], grouping: 'na' };
        const reading = () => readAction(action, canonical ? 'canonical' : 'received');
        if (wanted === null) {
          refused += 1;
          expect(reading).to.throw(WireError, /^action\.orders\[0\]/);
        } else {
          read += 1;
          expect(JSON.stringify(reading())).to.equal(JSON.stringify({ ...action, orders: [wanted] }));
        }
      }),
      fcOptions(5_000),
    );
    expect(Math.min(read, refused)).to.be.greaterThan(1_000);
  });

  it('stores effects as the plain serialiser would', () => {
    const digits = fc.bigInt(0n, 2n ** 128n);
    const oid = fc.maxSafeNat();
    const effect: fc.Arbitrary<OrderEffect> = fc.oneof(
      fc.record({
        type: fc.constant('open' as const),
        oid,
        market: fc.nat(9),
        side: fc.constantFrom('ask' as const, 'bid' as const),
        priceTicks: digits,
        sizeLots: digits,
        tif: fc.constantFrom('Gtc' as const, 'Alo' as const),
        cloid: fc.option(fc.string()),
      }),
      fc.record({
        type: fc.constant('close' as const),
        oid,
        reason: fc.constantFrom('canceled' as const, 'replaced' as const),
      }),
      fc.record({ type: fc.constant('reduce' as const), oid, lots: digits }),
    );
    const asText = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value);
    fc.assert(
      fc.property(fc.array(effect, { maxLength: 4 }), (effects) => {
        expect(json.encodeEffects(effects)).to.equal(JSON.stringify(effects, asText));
      }),
      fcOptions(300),
    );
  });

  it('finds the ticks and lots of any decimal as by long division', () => {
    const digits = fc.bigInt(0n, 10n ** 12n);
    fc.assert(
      fc.property(digits, fc.nat(8), (whole, scale) => {
        const padded = whole.toString().padStart(scale + 1, '0');
        const value = scale === 0 ? padded : `${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
        const { base, quote, lotUnits, tickLotUnits } = WETH_USDC;
        // price = ticks x tickLotUnits x 10^base / (lotUnits x 10^quote), and size = lots x lotUnits / 10^base.
        const dividend = whole * lotUnits * 10n ** BigInt(quote.decimals);
        const divisor = tickLotUnits * 10n ** BigInt(base.decimals + scale);
        expect(priceToTicks(WETH_USDC, value)).to.equal(dividend % divisor === 0n ? dividend / divisor : null);
        const units = whole * 10n ** BigInt(base.decimals - scale);
        expect(sizeToLots(WETH_USDC, value)).to.equal(units % lotUnits === 0n ? units / lotUnits : null);
      }),
      fcOptions(1_000),
    );
  });

  it('shares orders between books only while they are the same', () => {
    const maker = `0x${'1'.repeat(40)}` as const;
    const openRow = (orderSeq: number, oid: number): OrderLogRow => {
      const terms = {
        market: 0,
        side: 'bid' as const,
        priceTicks: 1_000n,
        sizeLots: 5n,
        tif: 'Gtc' as const,
        cloid: null,
      };
      return {
        orderSeq,
        timeMs: orderSeq,
        maker,
        signer: null,
        nonce: null,
        kind: 'order',
        effects: [{ type: 'open', oid, ...terms }],
      };
    };
    const reduce: OrderLogRow = { ...openRow(2, 9), effects: [{ type: 'reduce', oid: 1, lots: 2n }] };
    const ahead = createBook([WETH_USDC]);
    const behind = createBook([WETH_USDC]);
    const history = createHistory([WETH_USDC]);
    ahead.apply(openRow(1, 1));
    ahead.apply(reduce);
    behind.apply(openRow(1, 1), ahead);
    history.apply(openRow(1, 1), behind);
    expect(behind.order(1)?.sizeLots).to.equal(5n);
    expect(history.order(1)?.order).to.equal(behind.order(1));
    behind.apply(reduce, ahead);
    expect(behind.order(1)).to.deep.equal(ahead.order(1));
    ahead.apply(openRow(3, 2));
    ahead.applyFills([{ oid: 2, maker, market: 0, side: 'bid', priceTicks: 1_000n, baseUnits: WETH_USDC.lotUnits }]);
    behind.apply(openRow(3, 2), ahead);
    expect(behind.order(2)?.filledUnits).to.equal(0n);
    ahead.apply(openRow(4, 3));
    behind.apply(openRow(4, 3), ahead);
    expect(behind.order(3)).to.equal(ahead.order(3));
  });
});
