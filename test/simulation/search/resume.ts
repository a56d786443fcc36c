/** A file that says which seeds a long run has done, so that it can be stopped and gone on with. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { RunResult } from '../run.js';

interface Done {
  /** Of the code that ran: what other code did says nothing about this one. */
  commit: string;
  blocks: number;
  seed: number;
  violations: readonly string[];
}

interface Resumed {
  /** Those of the same code and length that ran before. */
  readonly done: ReadonlyMap<number, Done>;
  /** Lines of other code or another length, which are left as they are. */
  readonly others: number;
  /** Writes a run down. */
  note(result: Pick<RunResult, 'seed' | 'violations'>): void;
}

/** The commit that is checked out. Throws RangeError when something in it was changed: nobody could say later what ran. */
export function currentCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  if (git('status', '--porcelain') !== '')
    throw new RangeError('--resume: commit first, so that the file can name what ran');
  return git('rev-parse', 'HEAD');
}

/** Reads what runs have noted; the file need not exist. Throws RangeError for a file of another kind. */
export function resume(path: string, commit: string, blocks: number): Resumed {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const lines = text.split('\n');
  // What comes after the last end of a line was cut off when the run was stopped: that seed runs again.
  const torn = lines.pop()!;
  const noted = lines.map((line, i) => parse(line, `${path}:${i + 1}`));
  const own = noted.filter((one) => one.commit === commit && one.blocks === blocks);
  const done = new Map(own.map((one) => [one.seed, one]));
  let gap = torn === '' ? '' : '\n';
  return {
    done,
    others: noted.length - own.length,
    note({ seed, violations }) {
      const one: Done = { commit, blocks, seed, violations: violations.slice(0, 1) };
      done.set(seed, one);
      appendFileSync(path, `${gap}${JSON.stringify(one)}\n`);
      gap = '';
    },
  };
}

function parse(line: string, where: string): Done {
  // Behind a line that was cut off stands an end of its own.
  try {
    const one = JSON.parse(line) as Done;
    if (typeof one.seed === 'number' && typeof one.commit === 'string' && Array.isArray(one.violations)) return one;
  } catch {
    if (line.startsWith('{')) return { commit: '', blocks: 0, seed: 0, violations: [] };
  }
  throw new RangeError(`--resume: ${where} is no line of a run`);
}
