import { expect } from 'chai';
import type { FillJson } from '../../../server/read/fills.js';
import type { StatusBody } from '../../../server/read/status.js';
import type { SendQueue } from '../../../server/stream/send-queue.js';
import { createPlatformFeed, FIRST_FILLS, NEXT_FILLS } from '../../../server/stream/platform.js';
import type { PlatformFacts, PlatformFeed, PlatformSubscription } from '../../../server/stream/platform.js';
import { conformFrame } from '../../support/api/asyncapi.js';

interface Got extends SendQueue {
  frames: { channel: string; data: { isSnapshot?: true; fills: FillJson[] } & StatusBody }[];
}

const hash = `0x${'a'.repeat(64)}`;
const address = `0x${'b'.repeat(40)}`;

const fill = (fillSeq: number): FillJson => ({
  pair: 'A-B',
  fill_seq: fillSeq,
  curve_seq: 1,
  direction: 'buy',
  token_in: 'B',
  amount_in: '1',
  token_out: 'A',
  amount_out: '1',
  fee: { taker: address, token: 'A', amount: '0' },
  taker: address,
  recipient: address,
  block_number: fillSeq,
  block_hash: hash,
  tx_hash: hash,
  timestamp_ms: fillSeq,
});

const FILLS: PlatformSubscription = { type: 'fills', market: 0, pair: 'A-B', key: 'fills:A-B' };
const CURVES: PlatformSubscription = { type: 'curves', market: 0, pair: 'A-B', key: 'curves:A-B' };
const STATUS: PlatformSubscription = { type: 'status', key: 'status' };

function statusOf(change: Partial<StatusBody> = {}): StatusBody {
  const curve = { pair: 'A-B', state: 'live' as const, curve_seq: 3, deadline_sec: 9, block_number: 2 };
  return {
    version: '1',
    chain_id: 1,
    deployment_id: 'd',
    time_ms: 0,
    ready: true,
    reason: null,
    halt: null,
    ledger: {
      generation: 1,
      block_number: 1,
      block_hash: hash,
      scan_age_ms: 0,
      head_age_ms: 0,
      replica_lag_ms: null,
      holdings: [],
      suspense: { fills: 0, settlements: 0, executions: 0 },
    },
    watcher: { target_block: 1, head: 1, next_block: 2, lag_blocks: 0 },
    tokens: [],
    curves: [{ ...curve, consumed_ask: '0', consumed_bid: '0', prepared_seq: 3, fill_seq: 0 }],
    keepers: [],
    transactions: [],
    checkpoint: null,
    last_reversal: null,
    ...change,
  };
}

describe('Frames for everybody', () => {
  let feed: PlatformFeed;
  let fills: FillJson[];
  let status: StatusBody;
  let nowMs: number;
  let reads: number;
  let isBroken: boolean;

  beforeEach(() => {
    fills = [];
    status = statusOf();
    nowMs = 1_000;
    reads = 0;
    isBroken = false;
    const facts: PlatformFacts = {
      async fills(_market, limit, before = Infinity) {
        reads += 1;
        if (isBroken) throw new Error('the database is away');
        return fills.filter(({ fill_seq }) => fill_seq < before).slice(-limit);
      },
      async status() {
        reads += 1;
        return status;
      },
    };
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
    feed = createPlatformFeed(facts, { repeatMs: 5_000 }, () => nowMs, silent);
  });
  afterEach(() => feed.stop());

  function queue(): Got {
    const frames: Got['frames'] = [];
    const take = (bytes: Buffer): void => {
      const frame = JSON.parse(bytes.toString()) as Got['frames'][number];
      conformFrame(frame);
      frames.push(frame);
    };
    return {
      frames,
      reply: take,
      event: ({ frame }) => take(frame),
      latest: (_key, frame) => take(frame),
      drop: () => undefined,
      check: () => undefined,
    };
  }

  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
  const seqsOf = (got: Got): number[] => got.frames.flatMap(({ data }) => data.fills.map(({ fill_seq }) => fill_seq));

  async function generation(): Promise<void> {
    feed.changed();
    await settled();
  }

  it('give each fill once, after the newest ones, whenever somebody comes', async () => {
    fills = Array.from({ length: FIRST_FILLS + 5 }, (_, i) => fill(i + 1));
    const [first, second] = [queue(), queue()];
    feed.subscribe(FILLS, first);
    await settled();
    expect(first.frames.map(({ data }) => data.isSnapshot)).to.deep.equal([true]);
    expect(seqsOf(first)).to.deep.equal(Array.from({ length: FIRST_FILLS }, (_, i) => i + 6));
    fills.push(fill(56), fill(57));
    // It comes in the middle of a look that finds new fills.
    feed.changed();
    feed.subscribe(FILLS, second);
    await settled();
    fills.push(fill(58));
    await generation();
    expect(seqsOf(first).slice(-3)).to.deep.equal([56, 57, 58]);
    expect(new Set(seqsOf(first)).size).to.equal(seqsOf(first).length);
    expect(new Set(seqsOf(second)).size).to.equal(seqsOf(second).length);
    expect(seqsOf(second).slice(-3)).to.deep.equal([56, 57, 58]);
  });

  it('miss none when a look fails, and cost nothing once nobody listens', async () => {
    const got = queue();
    feed.subscribe(FILLS, got);
    await settled();
    fills.push(fill(1));
    isBroken = true;
    await generation();
    isBroken = false;
    fills.push(fill(2));
    await generation();
    expect(seqsOf(got)).to.deep.equal([1, 2]);
    feed.unsubscribe(FILLS, got);
    const before = reads;
    fills.push(fill(3));
    await generation();
    expect([reads, seqsOf(got)]).to.deep.equal([before, [1, 2]]);
  });

  it('begin again after a reversal, whatever came in the place of what it took away', async () => {
    const mined = (seqs: number[], fork: string): FillJson[] =>
      seqs.map((seq) => ({ ...fill(seq), block_hash: `0x${fork.repeat(64)}` }));
    fills = mined([1, 2, 3], 'a');
    const got = queue();
    feed.subscribe(FILLS, got);
    await settled();
    const newest = () => [
      got.frames.at(-1)?.data.isSnapshot ?? false,
      got.frames.at(-1)?.data.fills.map((one) => one.fill_seq),
    ];
    fills = fills.slice(0, 1);
    await generation();
    expect(newest()).to.deep.equal([true, [1]]);
    fills = [...fills, ...mined([2, 3], 'b')];
    await generation();
    expect(newest()).to.deep.equal([false, [2, 3]]);
    fills = [...fills.slice(0, 1), ...mined([2, 3, 4], 'c')];
    await generation();
    expect(newest()).to.deep.equal([true, [1, 2, 3, 4]]);
    fills = [];
    await generation();
    expect(newest()).to.deep.equal([true, []]);
    fills = mined([1, 2], 'd');
    await generation();
    expect(newest()).to.deep.equal([false, [1, 2]]);
    const { length } = got.frames;
    await generation();
    expect(got.frames.length).to.equal(length);
  });

  it('leave none out however many come between two looks', async () => {
    const got = queue();
    fills = [fill(1)];
    feed.subscribe(FILLS, got);
    await settled();
    for (let seq = 2; seq <= 2 * NEXT_FILLS + 50; seq += 1) fills.push(fill(seq));
    await generation();
    expect(seqsOf(got)).to.deep.equal(fills.map(({ fill_seq }) => fill_seq));
    expect(Math.max(...got.frames.map(({ data }) => data.fills.length))).to.equal(NEXT_FILLS);
  });

  it('give a state when it changes, not when only time passes, and again after a while', async () => {
    const [curves, states] = [queue(), queue()];
    feed.subscribe(CURVES, curves);
    feed.subscribe(STATUS, states);
    await settled();
    status = statusOf({ time_ms: 7 });
    await generation();
    expect([curves.frames.length, states.frames.length]).to.deep.equal([1, 1]);
    status = statusOf({ halt: { code: 'by_operator', message: 'lunch', by_operator: true }, ready: false });
    await generation();
    expect([curves.frames.length, states.frames.length]).to.deep.equal([1, 2]);
    expect(states.frames[1]?.data.halt?.message).to.equal('lunch');
    nowMs += 5_000;
    await generation();
    expect([curves.frames.length, states.frames.length]).to.deep.equal([2, 3]);
  });

  it('reads once for a thousand listeners', async () => {
    const all = Array.from({ length: 1_000 }, queue);
    for (const one of all) feed.subscribe(STATUS, one);
    await settled();
    const before = reads;
    status = statusOf({ ready: false, reason: 'halted' });
    await generation();
    expect(reads - before).to.equal(1);
    expect(all.every(({ frames }) => frames.at(-1)?.data.ready === false)).to.equal(true);
  });
});
