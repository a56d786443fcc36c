/** A file that says which seeds long runs have done with which code, so that ten thousand can be done at several times and places. */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';
import type { RunResult } from '../run.js';

/** A run, or with `to` all runs of consecutive seeds, none of which found anything. */
interface Done {
  /** Of the code that ran: what other code did says nothing about this one. */
  code: string;
  blocks: number;
  seed: number;
  to?: number;
  violations: readonly string[];
}

/**
 * Says that runs of `code` are those of `sameRunsAs`, and why, for a change after which no run differs and none violates more than before: a
 * judge that only observes and now reports less. Runs that found something are not carried over, but run again.
 */
interface Same {
  code: string;
  sameRunsAs: string;
  why: string;
}

interface Resumed {
  /** Those of the same code and length that ran before, by seed, and what was carried over. */
  readonly done: ReadonlyMap<number, Done>;
  /** Lines of other code or another length, which are left as they are. */
  readonly others: number;
  /** Writes a run down. */
  note(result: Pick<RunResult, 'seed' | 'violations'>): void;
  /** Writes the file anew, with one line for consecutive seeds that found nothing. */
  compact(): void;
}

/** A hash of every module that a run consists of, and of the versions of the packages that it uses. */
export async function currentCode(): Promise<string> {
  const { metafile } = await build({
    ...{ entryPoints: ['test/simulation/run.ts'], bundle: true, write: false, metafile: true },
    ...{ packages: 'external', platform: 'node', format: 'esm', logLevel: 'silent' },
  });
  const hash = createHash('sha256');
  for (const path of [...Object.keys(metafile.inputs), 'package-lock.json'].sort())
    hash.update(`${path} ${createHash('sha256').update(readFileSync(path)).digest('hex')}\n`);
  return hash.digest('hex').slice(0, 16);
}

const seedsOf = ({ seed, to = seed }: Done): number[] => Array.from({ length: to - seed + 1 }, (_, i) => seed + i);

/** Reads what runs have noted; the file need not exist. Throws RangeError for a file of another kind. */
export function resume(path: string, code: string, blocks: number): Resumed {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const lines = text.split('\n');
  // What comes after the last end of a line was cut off when the run was stopped: that seed runs again.
  const torn = lines.pop()!;
  const read = lines.map((line, i) => parse(line, `${path}:${i + 1}`));
  const noted = read.filter((one): one is Done => 'seed' in one);
  const sames = read.filter((one): one is Same => 'sameRunsAs' in one);
  const carried = new Set(sames.filter((one) => one.code === code).map(({ sameRunsAs }) => sameRunsAs));
  const counts = (one: Done): boolean => one.code === code || (carried.has(one.code) && one.violations.length === 0);
  const own = noted.filter((one) => counts(one) && one.blocks === blocks);
  const others = noted.filter((one) => !own.includes(one));
  const done = new Map(own.flatMap((one) => seedsOf(one).map((seed) => [seed, { ...one, seed }])));
  let gap = torn === '' ? '' : '\n';
  return {
    done,
    others: others.length,
    note({ seed, violations }) {
      const one: Done = { code, blocks, seed, violations: violations.slice(0, 1) };
      done.set(seed, one);
      appendFileSync(path, `${gap}${JSON.stringify(one)}\n`);
      gap = '';
    },
    compact() {
      const ranges: Done[] = [];
      for (const one of [...done.values()].sort((a, b) => a.seed - b.seed)) {
        const last = ranges.at(-1);
        const isNext = last?.code === one.code && (last.to ?? last.seed) === one.seed - 1;
        if (isNext && last.violations.length + one.violations.length === 0) last.to = one.seed;
        else ranges.push({ code: one.code, blocks, seed: one.seed, violations: one.violations });
      }
      const kept = others.filter((one) => one.seed > 0);
      writeFileSync(`${path}.new`, [...sames, ...kept, ...ranges].map((one) => `${JSON.stringify(one)}\n`).join(''));
      renameSync(`${path}.new`, path);
    },
  };
}

function parse(line: string, where: string): Done | Same {
  // Behind a line that was cut off stands an end of its own.
  try {
    const one = JSON.parse(line) as Done & Same;
    if ([one.code, one.sameRunsAs, one.why].every((part) => typeof part === 'string')) return one;
    if (typeof one.seed === 'number' && typeof one.code === 'string' && Array.isArray(one.violations)) return one;
  } catch {
    if (line.startsWith('{')) return { code: '', blocks: 0, seed: 0, violations: [] };
  }
  throw new RangeError(`--resume: ${where} is no line of a run`);
}
