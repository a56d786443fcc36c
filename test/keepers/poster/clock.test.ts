import { expect } from 'chai';
import { createBlockClock, seenAtMs, type BlockClock } from '../../../keepers/poster/clock.js';
import { createMeter, createSamples } from '../../../keepers/poster/metrics.js';

describe('when the poster cuts', () => {
  const INTERVAL_MS = 2_000;

  it('is a set time before the next block, however late scans see blocks', () => {
    const clock = createBlockClock();
    expect(clock.waitMs(0, 500)).to.equal(0);
    // Block n is made at n x 2 s; scans see it up to half a second later.
    const lateness = [400, 0, 130, 490, 250, 0, 333, 120];
    lateness.forEach((lateMs, i) => clock.observe(10 + i, (10 + i) * INTERVAL_MS + lateMs));
    const seenMs = 17 * INTERVAL_MS + 120;
    const waitMs = clock.waitMs(seenMs, 500);
    const cutMs = seenMs + waitMs;
    expect(18 * INTERVAL_MS - 500 - cutMs, 'too early by').to.be.within(-60, 300);
    expect(clock.waitMs(cutMs, 500)).to.equal(0);
    expect(clock.waitMs(cutMs + 5_000, 500)).to.equal(0);
  });

  const lateness = [400, 0, 130, 490, 250, 0, 333, 120];
  /** When block n is seen if block 0 was made at `fromMs`. */
  const seenAt = (n: number, fromMs = 0): number => fromMs + n * INTERVAL_MS + lateness[n % lateness.length]!;
  /** How much too early the cut is for the block after `n`. */
  const tooEarlyBy = (clock: BlockClock, n: number, fromMs = 0): number => {
    const cutMs = seenAt(n, fromMs) + clock.waitMs(seenAt(n, fromMs), 500);
    return fromMs + (n + 1) * INTERVAL_MS - 500 - cutMs;
  };

  it('is the same while the wall clock steps an hour ahead and back, or an hour back and ahead', () => {
    for (const stepMs of [3_600_000, -3_600_000]) {
      const clock = createBlockClock();
      for (let n = 0; n < 60; n++) {
        const monotonicMs = seenAt(n);
        const wallAt = (ms: number) => 1_700_000_000_000 + ms + (n >= 40 && n < 45 ? stepMs : 0);
        // The scan was stored a little before it is read; at block 40 the step came in between.
        const scannedMs = wallAt(monotonicMs - 20) - (n === 40 ? stepMs : 0);
        clock.observe(n, seenAtMs(scannedMs, { wallMs: wallAt(monotonicMs), monotonicMs }));
        if (n < 16) continue;
        expect(clock.waitMs(monotonicMs, 500), `block ${n}`).to.be.at.most(INTERVAL_MS);
        expect(clock.intervalMs(), `block ${n}`).to.be.within(INTERVAL_MS - 100, INTERVAL_MS + 100);
      }
    }
  });

  it('is that again soon after the chain stood still', () => {
    for (const stallMs of [2_000, 60_000]) {
      const clock = createBlockClock();
      for (let n = 0; n < 40; n++) clock.observe(n, seenAt(n));
      for (let n = 40; n < 50; n++) {
        clock.observe(n, seenAt(n, stallMs));
        const early = tooEarlyBy(clock, n, stallMs);
        // Early costs freshness, late costs a block.
        expect(early, `block ${n}`).to.be.at.least(-60);
        if (n >= 44) expect(early, `block ${n}`).to.be.below(400);
      }
    }
  });

  it('does not come late because scans did', () => {
    const clock = createBlockClock();
    for (let n = 0; n < 40; n++) clock.observe(n, seenAt(n));
    // One scan takes three seconds, and sees two blocks at once.
    clock.observe(41, seenAt(40) + 3_000);
    expect(43 * INTERVAL_MS - (seenAt(40) + 3_000 + clock.waitMs(seenAt(40) + 3_000, 500))).to.be.at.least(440);
    for (let n = 42; n < 60; n++) {
      clock.observe(n, seenAt(n));
      expect(tooEarlyBy(clock, n), `block ${n}`).to.be.within(-60, 400);
    }
  });

  it('is at once when the block is due already, and never more than a block away', () => {
    const clock = createBlockClock();
    for (let i = 0; i < 40; i++) clock.observe(i, i * 250);
    expect(clock.waitMs(39 * 250, 500)).to.equal(0);
    expect(clock.waitMs(39 * 250 - 10_000, 100)).to.equal(250);
    // An old block changes nothing.
    clock.observe(5, 1_000_000);
    expect(clock.waitMs(39 * 250, 100)).to.equal(150);
  });
});

describe('what the poster measures', () => {
  it('are quantiles of the newest samples', () => {
    const samples = createSamples();
    expect(samples.quantiles()).to.deep.equal({ p50: null, p99: null, count: 0 });
    for (let i = 0; i < 1_500; i++) samples.add(i < 476 ? 1_000_000 : i);
    expect(samples.quantiles()).to.deep.equal({ p50: 988, p99: 1_489, count: 1_500 });
  });

  it('counts an order until the curve that it is in, or a later one, has landed', () => {
    const meter = createMeter();
    meter.ordered(0, 1_000);
    meter.ordered(0, 1_400);
    meter.signed(0, 1, 2_000);
    meter.ordered(0, 3_000);
    meter.signed(0, 2, 4_000);
    // The first one was replaced; both count when the second one lands.
    meter.landed(0, 2, 6_000);
    meter.landed(0, 2, 9_000);
    const [latency] = meter.read(() => 'A-B').latency;
    expect(latency).to.deep.equal({
      pair: 'A-B',
      orderToSignMs: { p50: 1_000, p99: 1_000, count: 3 },
      orderToLandedMs: { p50: 4_600, p99: 5_000, count: 3 },
    });
  });
});
