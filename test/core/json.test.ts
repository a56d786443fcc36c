import { expect } from 'chai';
import fc from 'fast-check';
import * as json from '../../core/json.js';
import type { CloseReason, MarketSnapshot, OrderEffect } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';

const big = fc.bigInt(0n, 2n ** 128n);
const oid = fc.integer({ min: 1, max: 2 ** 50 });
const address = fc.stringMatching(/^0x[0-9a-f]{40}$/) as fc.Arbitrary<`0x${string}`>;
const effect: fc.Arbitrary<OrderEffect> = fc.oneof(
  fc.record({
    type: fc.constant('open' as const),
    oid,
    market: fc.nat(9),
    side: fc.constantFrom('ask' as const, 'bid' as const),
    priceTicks: big,
    sizeLots: big,
    tif: fc.constantFrom('Gtc' as const, 'Alo' as const),
    cloid: fc.option(fc.stringMatching(/^0x[0-9a-f]{32}$/)),
  }),
  fc.record({
    type: fc.constant('close' as const),
    oid,
    reason: fc.constantFrom<CloseReason>(
      'canceled',
      'scheduledCancel',
      'inventory',
      'suspended',
      'delisted',
      'replaced',
    ),
  }),
  fc.record({ type: fc.constant('reduce' as const), oid, lots: big }),
  fc.record({ type: fc.constant('schedule' as const), timeMs: fc.option(oid) }),
  fc.record({ type: fc.constant('trigger' as const), timeMs: oid }),
  fc.record({
    type: fc.constant('agent' as const),
    name: fc.string({ maxLength: 16 }),
    agent: fc.option(address),
    sinceMs: oid,
    validUntilMs: oid,
  }),
);
const orders = fc.array(fc.record({ oid, maker: address, priceTicks: big, sizeLots: big }), { maxLength: 5 });
const snapshot: fc.Arbitrary<MarketSnapshot> = fc.record({
  market: fc.nat(9),
  fillSeq: oid,
  askVolumeUnits: big,
  bidVolumeUnits: big,
  asks: orders,
  bids: orders,
});
/** fast-check builds records without a prototype, which deep equality tells apart. */
const plain = <T>(value: T): T => structuredClone(value);

describe('core/json', () => {
  it('writes bigint as integers of full precision', () => {
    expect(json.stringify({ a: 2n ** 200n, b: [-1n, '1', null], c: { d: 0n } })).to.equal(
      `{"a":${2n ** 200n},"b":[-1,"1",null],"c":{"d":0}}`,
    );
  });

  it('gives stored payloads back', () => {
    fc.assert(
      fc.property(
        fc.array(effect, { maxLength: 6 }),
        snapshot,
        fc.array(fc.record({ oid, lots: big })),
        (effects, snap, trims) => {
          expect(json.decodeEffects(json.encodeEffects(effects))).to.deep.equal(plain(effects));
          expect(json.decodeSnapshot(json.encodeSnapshot(snap))).to.deep.equal(plain(snap));
          expect(json.decodeTrims(json.encodeTrims(trims))).to.deep.equal(plain(trims));
        },
      ),
      fcOptions(100),
    );
    const words = [0n, 1n, 2n ** 256n - 1n];
    expect(json.decodeWords(json.encodeWords(words))).to.deep.equal(words);
  });

  it('refuses payloads of another shape', () => {
    const bad = [
      '',
      '{}',
      '[1]',
      '[{"type":"open"}]',
      '[{"type":"close","oid":"1","reason":"canceled"}]',
      '[{"type":"close","oid":1,"reason":"x"}]',
    ];
    for (const text of bad) expect(() => json.decodeEffects(text), text).to.throw(json.PayloadError);
    expect(() => json.decodeSnapshot('[]')).to.throw(json.PayloadError);
    expect(() => json.decodeTrims('[{"oid":1,"lots":5}]')).to.throw(json.PayloadError);
    expect(() => json.decodeWords('["0x1"]')).to.throw(json.PayloadError);
  });
});
