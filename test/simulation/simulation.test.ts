import { appendFileSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { fcOptions } from '../support/fc.js';
import { realTurn } from './clock.js';
import { simulateAll } from './crew.js';
import { createDecisions } from './decisions.js';
import { DEFAULT_FAULTS } from './faults.js';
import { withRates } from './search/rates.js';
import { createReport } from './search/report.js';
import { resume } from './search/resume.js';
import { simulate } from './run.js';
import { createScheduler } from './scheduler.js';

const BLOCKS = 100;
/** As many runs reach every fault and every way of recovery. */
const SEEDS = 40;
const PROCESSES = Math.min(2, availableParallelism());

/** Paths of this process's open files; a descriptor may be gone before its path is read. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(join('/proc/self/fd', fd))];
    } catch {
      return [];
    }
  });
}

describe('a run that is gone on with', () => {
  it('leaves out what the same code did, and runs again what was cut off', () => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-resume-'));
    const path = join(folder, 'seeds');
    const run = (code: string, blocks = 100) => resume(path, code, blocks);
    const first = run('aa');
    first.note({ seed: 1, violations: [] });
    first.note({ seed: 2, violations: ['lost', 'more'] });
    expect([...run('aa').done.values()].map(({ seed, violations }) => [seed, violations])).to.deep.equal([
      [1, []],
      [2, ['lost']],
    ]);
    expect(run('bb').done.size).to.equal(0);
    expect(run('aa', 50)).to.include({ others: 2 });
    appendFileSync(path, '{"code":"aa","blo');
    const second = run('aa');
    expect([...second.done.keys()]).to.deep.equal([1, 2]);
    second.note({ seed: 3, violations: [] });
    expect([...run('aa').done.keys()]).to.deep.equal([1, 2, 3]);
    const third = run('aa');
    for (const seed of [5, 4, 9]) third.note({ seed, violations: [] });
    run('bb').note({ seed: 7, violations: [] });
    run('aa').compact();
    expect([...run('aa').done].map(([seed, { violations }]) => [seed, violations.length])).to.deep.equal(
      [1, 2, 3, 4, 5, 9].map((seed) => [seed, seed === 2 ? 1 : 0]),
    );
    expect([...run('bb').done.keys()]).to.deep.equal([7]);
    expect(readFileSync(path, 'utf8').split('\n')).to.have.length(6);
    appendFileSync(path, 'something else\n');
    expect(() => run('aa')).to.throw(RangeError, 'is no line of a run');
    rmSync(folder, { recursive: true });
  });

  it('carries over what other code did only where the file says that no run differs, and runs again what found something', () => {
    const folder = mkdtempSync(join(tmpdir(), 'curvebook-resume-'));
    const path = join(folder, 'seeds');
    const run = (code: string) => resume(path, code, 100);
    for (const seed of [1, 2]) run('aa').note({ seed, violations: [] });
    run('aa').note({ seed: 3, violations: ['lost'] });
    appendFileSync(path, `${JSON.stringify({ code: 'bb', sameRunsAs: 'aa', why: 'reports less' })}\n`);
    expect([...run('bb').done.keys()]).to.deep.equal([1, 2]);
    expect([...run('aa').done.keys()]).to.deep.equal([1, 2, 3]);
    const next = run('bb');
    for (const seed of [3, 4]) next.note({ seed, violations: [] });
    next.compact();
    expect([...run('bb').done.keys()]).to.deep.equal([1, 2, 3, 4]);
    expect([...run('aa').done.keys()]).to.have.members([1, 2, 3]);
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).to.deep.equal([
      { code: 'bb', sameRunsAs: 'aa', why: 'reports less' },
      { code: 'aa', blocks: 100, seed: 3, violations: ['lost'] },
      { code: 'aa', blocks: 100, seed: 1, violations: [], to: 2 },
      { code: 'bb', blocks: 100, seed: 3, violations: [], to: 4 },
    ]);
    expect(run('cc').done.size).to.equal(0);
    rmSync(folder, { recursive: true });
  });
});

describe('the rates of faults', () => {
  it('are the usual ones but for those that are named', () => {
    const raised = withRates(DEFAULT_FAULTS, 'clockStep=0.2, promote=1,reorg=0');
    expect(raised).to.deep.equal({ ...DEFAULT_FAULTS, clockStep: 0.2, promote: 1, reorg: 0 });
    for (const wrong of ['clockSteps=0.2', 'lies=1', 'reorg', 'reorg=2', 'reorg=-0.1', 'reorg=1e9', ''])
      expect(() => withRates(DEFAULT_FAULTS, wrong), wrong).to.throw(RangeError);
  });
});

describe('the whole backend on a virtual clock', () => {
  it('tells whole milliseconds, whatever somebody waits for', async () => {
    const scheduler = createScheduler(1_000, createDecisions(1, null), () => Promise.resolve());
    const seen: number[] = [];
    for (const delayMs of [0.5, 2, -1, 7.2]) scheduler.after(delayMs, () => void seen.push(scheduler.nowMs()));
    await scheduler.runUntil(1_010, () => undefined);
    expect(seen).to.deep.equal([1_000, 1_001, 1_002, 1_008]);
  });

  it('gives the same trace for the same seed, and another for another', async function () {
    this.timeout(120_000);
    const of = async (seed: number) => (await simulate({ seed, blocks: 40, faults: DEFAULT_FAULTS })).digest;
    const first = await of(7);
    expect(await of(7)).to.equal(first);
    expect(await of(8)).to.not.equal(first);
  });

  it('leaves neither memory nor open files behind', async function () {
    this.timeout(120_000);
    // What all of a simulation holds, and nothing else once it has returned.
    const run = async (): Promise<WeakRef<object>> => {
      const faults = { ...DEFAULT_FAULTS };
      await simulate({ seed: 3, blocks: 10, faults });
      return new WeakRef(faults);
    };
    const held = await run();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // What one collection frees may hold more until its finalizers ran, in a later turn.
    for (let rounds = 0; rounds < 20 && held.deref() !== undefined; rounds += 1) {
      await realTurn();
      collect();
    }
    expect(held.deref()).to.equal(undefined);
    expect(openFiles().filter((path) => path.includes('curvebook-simulation-'))).to.deep.equal([]);
  });

  it('stays right while everything around it fails, and goes on when that is over', async function () {
    const { numRuns } = fcOptions(SEEDS);
    this.timeout(60_000 * numRuns);
    const report = createReport();
    const failures: string[] = [];
    await simulateAll({
      seeds: Array.from({ length: numRuns }, (_, i) => i + 1),
      options: { blocks: BLOCKS, faults: DEFAULT_FAULTS },
      processes: PROCESSES,
      onResult(result) {
        report.add(result);
        const { seed, violations } = result;
        if (violations.length > 0)
          failures.push(`npm run simulate -- --seed ${seed} --blocks ${BLOCKS} --trace: ${violations[0]}`);
        return failures.length > 0;
      },
    });
    console.log(`      ${report.lines().at(-1)}`);
    expect(failures).to.deep.equal([]);
    expect(report.missed(DEFAULT_FAULTS)).to.deep.equal([]);
  });
});
