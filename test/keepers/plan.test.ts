import { expect } from 'chai';
import type { Address, MarketSnapshot } from '../../core/types.js';
import { planStep, type LastPublication } from '../../keepers/poster/plan.js';
import { mayWait } from '../../keepers/poster/small.js';
import type { MarketView, PosterView } from '../../keepers/poster/view.js';
import { WETH_USDC } from '../support/markets.js';

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
  context: { blockNumber?: number; deadlineSec?: number; waiting?: { deadlineSec: number } } = {},
) =>
  planStep(before, next, {
    head: { timestampSec, blockNumber: context.blockNumber ?? 52 },
    deadlineSec: context.deadlineSec ?? timestampSec + 12,
    touchBeforeSec: TOUCH_BEFORE_SEC,
    waiting: context.waiting ?? null,
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

  it('lets a small change wait while the curve lives on, and touches that one meanwhile', () => {
    const moved = book({ asks: [{ oid: 9, maker: MAKER, priceTicks: 300_100n, sizeLots: 5n }] });
    const waiting = { deadlineSec: 119 };
    expect(plan(last(), moved, 106, { waiting })).to.deep.equal({ kind: 'none', reason: 'small_change' });
    expect(plan(last(), moved, 107, { waiting })).to.deep.equal({ kind: 'touch', baseSeq: 7 });
    // What can't be prolonged, is dead or was lost is posted with the change in it.
    expect(plan(last(), moved, 107, { waiting: { deadlineSec: 112 } })).to.deep.equal({ kind: 'post', amend: true });
    expect(plan(last(), moved, 110, { waiting })).to.deep.equal({ kind: 'post', amend: false });
    expect(plan(last(), moved, 112, { waiting })).to.deep.equal({ kind: 'post', amend: false });
    const unlanded = last({ landed: false });
    expect(plan(unlanded, moved, 101, { blockNumber: 51, waiting })).to.deep.equal({
      kind: 'none',
      reason: 'in_flight',
    });
    expect(plan(unlanded, moved, 103, { waiting }).kind).to.equal('post');
    // Nothing prolongs a curve that nobody quotes any more.
    expect(plan(last(), book(EMPTY), 107, { waiting })).to.deep.equal({ kind: 'none', reason: 'small_change' });
    expect(plan(last(), book(EMPTY), 107).kind).to.equal('post');
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

describe('which changes may wait', () => {
  const CUT = { orderSeq: 5, generation: 1, timeMs: 100_000 };
  const waits = (
    next: MarketSnapshot,
    on: {
      timeMs?: number;
      armedMs?: number;
      triggeredSeq?: number;
      isSuspended?: boolean;
      isTrimmed?: boolean;
      intervalMs?: number;
      quoteUnits?: bigint;
    } = {},
  ): boolean => {
    const view = {
      cut: { ...CUT, timeMs: on.timeMs ?? 101_000 },
      operator: { suspended: new Set(on.isSuspended === true ? [MAKER] : []) },
      armed: () => on.armedMs ?? null,
      triggeredSeq: () => on.triggeredSeq ?? 0,
    } as unknown as PosterView;
    const live = { ...last(), publication: { cut: CUT, deadlineSec: 112 } };
    const trimmed = new Set(on.isTrimmed === true ? [MAKER] : []);
    const small = { quoteUnits: () => on.quoteUnits ?? 15_010_000n, intervalMs: on.intervalMs ?? 6_000 };
    return mayWait(view, { market: WETH_USDC, last: live } as unknown as MarketView, next, small, trimmed);
  };
  const ask = (oid: number, priceTicks: bigint, sizeLots: bigint) => ({ oid, maker: MAKER, priceTicks, sizeLots });
  // Lots of 0.0001 at 3,000: an order of five of them is worth 1.5 USDC.
  const moved = book({ asks: [ask(9, 300_100n, 5n)] });

  it('are worth less than a size, on either side, in what went and in what came', () => {
    expect(waits(moved, { quoteUnits: 1_500_501n })).to.equal(true);
    expect(waits(moved, { quoteUnits: 1_500_500n })).to.equal(false);
    expect(waits(book({ asks: [] }), { quoteUnits: 1_500_001n })).to.equal(true);
    expect(waits(book({ asks: [] }), { quoteUnits: 1_500_000n })).to.equal(false);
    expect(waits(book({ asks: [ask(1, 300_000n, 3n)] }), { quoteUnits: 600_001n })).to.equal(true);
    expect(waits(book({ asks: [ask(1, 300_000n, 3n)] }), { quoteUnits: 600_000n })).to.equal(false);
    // Many small ones together are a large one.
    expect(waits(book({ asks: [], bids: [] }), { quoteUnits: 2_995_000n })).to.equal(false);
    expect(waits(moved, { quoteUnits: 0n })).to.equal(false);
  });

  it('reflect no fill, and wait no longer than the interval, whatever the clock does', () => {
    expect(waits({ ...moved, fillSeq: 5 })).to.equal(false);
    expect(waits({ ...moved, bidVolumeUnits: 21n })).to.equal(false);
    expect(waits(moved, { timeMs: 105_999 })).to.equal(true);
    expect(waits(moved, { timeMs: 106_000 })).to.equal(false);
    expect(waits(moved, { timeMs: 99_999 })).to.equal(false);
  });

  it('take no order away from a maker who must be gone before the curve is', () => {
    // Its cut at 101 s has 4 s to land in; until then whoever moves its scheduled cancel on and on makes no post of each block.
    expect(waits(moved, { armedMs: 105_000 })).to.equal(true);
    expect(waits(moved, { armedMs: 104_999 })).to.equal(false);
    expect(waits(moved, { armedMs: 112_000, timeMs: 105_999 })).to.equal(true);
    expect(waits(moved, { armedMs: 109_998, timeMs: 105_999 })).to.equal(false);
    expect(waits(moved, { triggeredSeq: 5 })).to.equal(true);
    expect(waits(moved, { triggeredSeq: 6 })).to.equal(false);
    expect(waits(moved, { isSuspended: true })).to.equal(false);
    const added = book({ asks: [ask(1, 300_000n, 5n), ask(9, 300_100n, 5n)] });
    expect(waits(added, { armedMs: 105_000, triggeredSeq: 6 })).to.equal(true);
  });

  it('wait for an order of a trimmed maker like others, but not until its orders elsewhere keep prices away again', () => {
    const minute = { intervalMs: 60_000 };
    expect(waits(moved, { isTrimmed: true })).to.equal(true);
    expect(waits(moved, { ...minute, isTrimmed: true, timeMs: 105_999 })).to.equal(true);
    expect(waits(moved, { ...minute, isTrimmed: true, timeMs: 106_000 })).to.equal(false);
    expect(waits(moved, { ...minute, timeMs: 106_000 })).to.equal(true);
    const added = book({ asks: [ask(1, 300_000n, 5n), ask(9, 300_100n, 5n)] });
    expect(waits(added, { ...minute, isTrimmed: true, timeMs: 106_000 })).to.equal(true);
  });
});
