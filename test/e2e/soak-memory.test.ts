/** The soak's own judgement of memory: it must let V8 be V8, and catch whatever grows with time. */
import { expect } from 'chai';
import { judgeMemory, MAX_GROWTH, PROBE_ARGS, pressAndMeasure, type MemorySample } from '../soak/memory.js';
import { startChild } from '../support/child.js';

const MB = 1_048_576;
const COUNT = 40;

/** What a run of `COUNT` samples measures when live and other memory are these functions of the time, from 0 to 1. */
const run = (liveMb: (time: number) => number, otherMb: (time: number) => number = () => 270): MemorySample[] =>
  Array.from({ length: COUNT }, (_, i) => {
    const [live, other] = [liveMb(i / COUNT), otherMb(i / COUNT)];
    return { liveBytes: Math.round(live * MB), residentBytes: Math.round((live + other) * MB), pauseMs: i };
  });

describe('memory of a soak', () => {
  it('is flat when everything that grows has stopped growing by half time', () => {
    const filling = run((time) => 40 + 16 * Math.min(1, 2 * time));
    expect(judgeMemory(filling)).to.deep.include({ problems: [], longestPauseMs: COUNT - 1 });
    const wavering = run((time) => 56 + Math.sin(time * 50) / 2);
    expect(judgeMemory(wavering).problems).to.deep.equal([]);
  });

  it('is not flat when something grows with time, in the heap or outside of it', () => {
    // Between the middles of the last two quarters lies a quarter of the time.
    const live = run((time) => 56 * (1 + 4.5 * MAX_GROWTH.live * time));
    expect(judgeMemory(live).problems.join()).to.match(
      /^live memory grew by 3\.\d % over the last half; 3\.0 % are allowed$/,
    );
    const native = run(
      () => 56,
      (time) => 270 * (1 + 8 * MAX_GROWTH.resident * time),
    );
    expect(judgeMemory(native).problems).to.have.length(1);
    expect(judgeMemory(native).problems[0]).to.match(/^resident memory grew/);
  });

  it('is not judged by fewer samples than it takes', () => {
    const samples = run(() => 56);
    expect(judgeMemory(samples.slice(0, 3)).problems).to.deep.equal(["memory can't be judged by 3 samples"]);
    expect(judgeMemory(samples.slice(0, 4)).problems).to.deep.equal([]);
  });

  it('counts what a process keeps, and not what it dropped', async () => {
    const child = startChild('test/soak/hoarder.ts', [], {}, PROBE_ARGS);
    try {
      await child.line((line) => line === 'ready', 50_000);
      const samples: MemorySample[] = [];
      for (let i = 0; i < 3; i++) {
        samples.push(await pressAndMeasure(child, 20_000));
        child.process.kill('SIGHUP');
        await child.line((line) => line === `kept ${i + 1}`, 20_000);
      }
      for (const [i, { liveBytes }] of samples.entries()) {
        if (i === 0) continue;
        // It drops ten times as much as it keeps.
        expect(liveBytes - samples[i - 1]!.liveBytes).to.be.within(4 * MB, 6 * MB);
      }
    } finally {
      await child.end('SIGKILL');
    }
  });
});
