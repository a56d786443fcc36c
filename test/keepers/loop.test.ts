import { expect } from 'chai';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { startLoop } from '../../keepers/loop.js';

const logger = pino({ level: 'silent' });

describe('loop of a keeper', () => {
  it('pauses twice as long after each failure in a row, no longer than it may, and as usual after a success', async () => {
    const stop = new AbortController();
    const startsMs: number[] = [];
    const errors: unknown[] = [];
    const loop = startLoop(
      async () => {
        startsMs.push(performance.now());
        if (startsMs.length <= 5) throw new Error(`failure ${startsMs.length}`);
        if (startsMs.length === 30) stop.abort();
      },
      { name: 'test', intervalMs: 20, maxBackoffMs: 160, signal: stop.signal, logger, onError: (e) => errors.push(e) },
    );
    await loop.done;
    const pausesMs = startsMs.slice(1).map((startMs, i) => startMs - startsMs[i]!);
    expect(errors.map(String)).to.deep.equal([1, 2, 3, 4, 5].map((n) => `Error: failure ${n}`));
    for (const [i, expectedMs] of [40, 80, 160, 160, 160, ...Array<number>(24).fill(20)].entries()) {
      // A timer may fire a millisecond early, and much later on a busy machine.
      expect(pausesMs[i], `pause ${i + 1}`).to.be.at.least(expectedMs - 2);
    }
    expect(Math.min(...pausesMs.slice(5)), 'the failures are forgotten').to.be.below(150);
  });

  it('runs one step at a time, at once when it is woken, and ends with its signal in the middle of a pause', async () => {
    const stop = new AbortController();
    let [running, most, steps] = [0, 0, 0];
    const loop = startLoop(
      async () => {
        most = Math.max(most, ++running);
        steps += 1;
        await delay(5);
        running -= 1;
      },
      { name: 'test', intervalMs: 60_000, signal: stop.signal, logger },
    );
    for (let woken = 0; woken < 3; woken += 1) {
      await delay(30);
      loop.wake();
    }
    await delay(30);
    stop.abort();
    await loop.done;
    expect([most, steps]).to.deep.equal([1, 4]);
  });
});
