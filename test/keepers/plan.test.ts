import { expect } from 'chai';
import type { Address, MarketSnapshot } from '../../core/types.js';
import { planStep, type LastPublication } from '../../keepers/poster/plan.js';

const MAKER: Address = '0x00000000000000000000000000000000000000aa';
const TOUCH_BEFORE_SEC = 6;

function book(overrides: Partial<MarketSnapshot> = {}): MarketSnapshot {
  return {
    market: 0,
    fillSeq: 4,
    askVolumeUnits: 10n,
    bidVolumeUnits: 20n,
    asks: [{ oid: 1, maker: MAKER, priceTicks: 300_000n, sizeLots: 5n }],
    bids: [{ oid: 2, maker: MAKER, priceTicks: 299_000n, sizeLots: 5n }],
    ...overrides,
  };
}

function last(overrides: Partial<LastPublication> = {}): LastPublication {
  return { seq: 7, snapshot: book(), deadlineSec: 112, landed: true, ...overrides };
}

const plan = (before: LastPublication | null, next: MarketSnapshot, timestampSec: number) =>
  planStep(before, next, { timestampSec }, TOUCH_BEFORE_SEC);

describe('what the poster publishes', () => {
  const EMPTY = { asks: [], bids: [] };

  it('posts the first book and ignores an empty one', () => {
    expect(plan(null, book(), 100).kind).to.equal('post');
    expect(plan(null, book(EMPTY), 100).kind).to.equal('none');
  });

  it('leaves an unchanged curve alone while its deadline is far', () => {
    expect(plan(last(), book(), 106).kind).to.equal('none');
  });

  it('touches an unchanged curve when its deadline is near', () => {
    expect(plan(last(), book(), 107)).to.deep.equal({ kind: 'touch', baseSeq: 7 });
  });

  it('posts anew once the curve is dead, or when its transaction has not landed', () => {
    expect(plan(last(), book(), 112).kind).to.equal('post');
    expect(plan(last({ landed: false }), book(), 101).kind).to.equal('post');
  });

  it('posts when the same levels belong to other orders', () => {
    const requoted = book({ asks: [{ oid: 9, maker: MAKER, priceTicks: 300_000n, sizeLots: 5n }] });
    expect(plan(last(), requoted, 101).kind).to.equal('post');
  });

  it('posts when only the reflected volumes moved', () => {
    expect(plan(last(), book({ fillSeq: 5, askVolumeUnits: 11n }), 101).kind).to.equal('post');
  });

  it('posts an emptied book over a live curve, once', () => {
    expect(plan(last(), book(EMPTY), 101).kind).to.equal('post');
    expect(plan(last({ snapshot: book(EMPTY) }), book(EMPTY), 107).kind).to.equal('none');
    expect(plan(last({ snapshot: book(EMPTY), landed: false }), book(EMPTY), 101).kind).to.equal('post');
  });
});
