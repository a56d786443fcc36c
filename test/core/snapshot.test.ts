import { expect } from 'chai';
import { keccak256 as ethersKeccak, toUtf8Bytes } from 'ethers';
import fc from 'fast-check';
import { createBook } from '../../core/book/create-book.js';
import {
  candidateOf,
  canonicalSnapshot,
  snapshotChanged,
  snapshotHash,
  snapshotOf,
  trimSnapshot,
} from '../../core/snapshot.js';
import type { MarketSnapshot, OrderEffect } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import { oneSided, orderDraw } from '../support/snapshots.js';

const market = coarseMarkets()[0]!;
const progress = { fillSeq: 7, askVolumeUnits: 40n, bidVolumeUnits: 3n };

const bookWith = (
  orders: readonly [oid: number, maker: number, side: 'ask' | 'bid', ticks: bigint, lots: bigint][],
) => {
  const book = createBook([market]);
  orders.forEach(([oid, maker, side, priceTicks, sizeLots]) => {
    const effect: OrderEffect = { type: 'open', oid, market: 0, side, priceTicks, sizeLots, tif: 'Gtc', cloid: null };
    book.apply({
      orderSeq: oid,
      timeMs: oid,
      maker: MAKERS[maker]!,
      signer: null,
      nonce: null,
      kind: 'order',
      effects: [effect],
    });
  });
  return book;
};

describe('snapshot', () => {
  it('orders by price, maker, oid, floors to lots, and leaves out what is trimmed to nothing or excluded', () => {
    const book = bookWith([
      [1, 1, 'ask', 10n, 5n],
      [2, 0, 'ask', 10n, 4n],
      [3, 0, 'ask', 9n, 3n],
      [4, 1, 'ask', 10n, 2n],
      [5, 2, 'bid', 7n, 6n],
      [6, 0, 'bid', 8n, 1n],
    ]);
    book.applyFills([{ oid: 1, maker: MAKERS[1]!, market: 0, side: 'ask', priceTicks: 10n, baseUnits: 11n }]);
    const trims = [
      { oid: 2, lots: 1n },
      { oid: 4, lots: 2n },
      { oid: 99, lots: 1n },
    ];
    const snapshot = snapshotOf(book, market, progress, trims, new Set([MAKERS[2]!]));
    expect(snapshot).to.deep.equal({
      market: 0,
      ...progress,
      asks: [
        { oid: 3, maker: MAKERS[0]!, priceTicks: 9n, sizeLots: 3n },
        { oid: 2, maker: MAKERS[0]!, priceTicks: 10n, sizeLots: 3n },
        { oid: 1, maker: MAKERS[1]!, priceTicks: 10n, sizeLots: 3n },
      ],
      bids: [{ oid: 6, maker: MAKERS[0]!, priceTicks: 8n, sizeLots: 1n }],
    });
    const candidate = candidateOf(book, market, progress, new Set([MAKERS[2]!]));
    expect(trimSnapshot(candidate, trims)).to.deep.equal(snapshot);
  });

  it('never crosses: order by order the smaller one goes, of equal ones the newer, and nothing that trims took displaces', () => {
    const crossed = (lots: bigint, trimmedLots = 0n): MarketSnapshot => {
      const book = bookWith([
        [1, 0, 'ask', 20n, 55n],
        [2, 0, 'bid', 10n, 100n],
        [3, 1, 'bid', 22n, lots],
        [4, 1, 'bid', 21n, lots],
        [5, 2, 'ask', 9n, 10n],
      ]);
      return snapshotOf(book, market, progress, trimmedLots === 0n ? [] : [{ oid: 3, lots: trimmedLots }]);
    };
    const oids = ({ asks, bids }: MarketSnapshot) => [asks, bids].map((side) => side.map(({ oid }) => oid));
    // Many small ones add up to nothing: each bid is worth less than the ask at 20, and both together more.
    expect(oids(crossed(45n))).to.deep.equal([[1], [2]]);
    // 50 lots at 22 and 55 at 20 are worth the same: the older one stays.
    expect(oids(crossed(50n))).to.deep.equal([[1], [2]]);
    expect(oids(crossed(51n))).to.deep.equal([[], [3, 4, 2]]);
    expect(oids(crossed(51n, 2n))).to.deep.equal([[1], [2]]);
    expect(oids(crossed(51n, 51n))).to.deep.equal([[1], [2]]);
  });

  it('has one text and one hash, fixed for ever', () => {
    const snapshot = snapshotOf(
      bookWith([
        [1, 0, 'ask', 10n, 5n],
        [2, 1, 'bid', 9n, 4n],
      ]),
      market,
      progress,
    );
    expect(canonicalSnapshot(snapshot)).to.equal(
      'snapshot 1 0 7 40 3\n' +
        'ask 1 0x1111111111111111111111111111111111111111 10 5\n' +
        'bid 2 0x2222222222222222222222222222222222222222 9 4\n',
    );
    expect(snapshotHash(snapshot)).to.equal('0xd4d4296fc9ee8839c0cfb2b846b99654660723e1de83b69b1716e3dcc18d6931');
    expect(snapshotHash(snapshot)).to.equal(ethersKeccak(toUtf8Bytes(canonicalSnapshot(snapshot))));
  });

  it('calls two snapshots changed exactly when their texts differ', () => {
    const change = fc.constantFrom<(one: MarketSnapshot) => MarketSnapshot>(
      (one) => ({ ...one, asks: [...one.asks] }),
      (one) => ({ ...one, fillSeq: one.fillSeq + 1 }),
      (one) => ({ ...one, askVolumeUnits: one.askVolumeUnits + 1n }),
      (one) => ({ ...one, bidVolumeUnits: one.bidVolumeUnits + 1n }),
      (one) => ({ ...one, asks: one.asks.slice(1) }),
      (one) => ({ ...one, asks: one.asks.map((order) => ({ ...order, oid: order.oid + 1 })) }),
      (one) => ({ ...one, asks: one.asks.map((order) => ({ ...order, sizeLots: order.sizeLots + 1n })) }),
      (one) => ({ ...one, asks: one.asks.map((order) => ({ ...order, priceTicks: order.priceTicks + 1n })) }),
      (one) => ({ ...one, asks: one.asks.map((order) => ({ ...order, maker: MAKERS[3]! })) }),
      (one) => ({ ...one, asks: [], bids: one.asks }),
    );
    fc.assert(
      fc.property(fc.array(orderDraw(), { maxLength: 6 }), change, (draws, changed) => {
        const before = oneSided(market, 'ask', draws);
        const after = changed(before);
        expect(snapshotChanged(before, after)).to.equal(canonicalSnapshot(before) !== canonicalSnapshot(after));
        expect(snapshotHash(before) !== snapshotHash(after)).to.equal(snapshotChanged(before, after));
      }),
      fcOptions(200),
    );
  });
});
