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
  return { seq: 7, snapshot: book(), deadlineSec: 112, blockNumber: 50, signed: true, landed: true, ...overrides };
}

const plan = (
  before: LastPublication | null,
  next: MarketSnapshot,
  timestampSec: number,
  context: { blockNumber?: number; deadlineSec?: number } = {},
) =>
  planStep(before, next, {
    head: { timestampSec, blockNumber: context.blockNumber ?? 52 },
    deadlineSec: context.deadlineSec ?? timestampSec + 12,
    touchBeforeSec: TOUCH_BEFORE_SEC,
  });

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

  it('posts anew once the curve is dead, or so near to it that a touch might come too late', () => {
    expect(plan(last(), book(), 112)).to.deep.equal({ kind: 'post', amend: false });
    expect(plan(last(), book(), 110)).to.deep.equal({ kind: 'post', amend: false });
    expect(plan(last(), book(), 109).kind).to.equal('touch');
  });

  it('gives an unchanged publication one block to land, and sends it anew after two', () => {
    const waiting = last({ landed: false });
    expect(plan(waiting, book(), 101, { blockNumber: 51 })).to.deep.equal({ kind: 'none', reason: 'in_flight' });
    expect(plan(waiting, book(), 103, { blockNumber: 52 })).to.deep.equal({ kind: 'post', amend: false });
    expect(plan(last({ landed: false, signed: false }), book(), 101, { blockNumber: 50 }).kind).to.equal('post');
  });

  it('amends only a live curve that landed and has time left', () => {
    const moved = book({ fillSeq: 5 });
    expect(plan(last(), moved, 109)).to.deep.equal({ kind: 'post', amend: true });
    expect(plan(last(), moved, 110)).to.deep.equal({ kind: 'post', amend: false });
    expect(plan(last({ landed: false }), moved, 101)).to.deep.equal({ kind: 'post', amend: false });
  });

  it('publishes nothing that would be dead when it lands, and prolongs nothing that a scheduled cancel caps', () => {
    expect(plan(null, book(), 100, { deadlineSec: 100 })).to.deep.equal({ kind: 'none', reason: 'born_expired' });
    expect(plan(last(), book({ fillSeq: 5 }), 100, { deadlineSec: 99 }).kind).to.equal('none');
    expect(plan(last(), book(), 108, { deadlineSec: 112 })).to.deep.equal({ kind: 'none', reason: 'unchanged' });
    expect(plan(last(), book(), 108, { deadlineSec: 113 }).kind).to.equal('touch');
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
