/** Several commands at once, as many as there are processors: how `npm test` shares the machine among its test files. */
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, sep } from 'node:path';
import { projectRoot } from './console.mjs';

/** Above it a lane costs more memory than it saves time: each holds a chain and a compiler's types. */
const MOST_LANES = 4;

/**
 * How many commands run at once: the number in the variable LANES, else one per processor, at most four.
 * @returns {number}
 */
export function laneCount() {
  const said = parseInt(process.env.LANES ?? '', 10);
  return Math.max(1, Math.min(MOST_LANES, Number.isInteger(said) ? said : availableParallelism()));
}

/**
 * Runs jobs in the order given, `lanes` of them at a time; each lane takes the next one when it has ended its own.
 * @template T
 * @param {(() => Promise<T>)[]} jobs
 * @param {number} lanes
 * @returns {Promise<T[]>} the results, in the order of the jobs
 */
export async function inLanes(jobs, lanes) {
  /** @type {T[]} */
  const results = [];
  let next = 0;
  const lane = async () => {
    while (next < jobs.length) {
      const at = next++;
      results[at] = await jobs[at]();
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

/**
 * Folders of test/ by how long their files take, the longest first, and how many files go into one process: starting one takes seconds.
 * Other folders come before them, a process for each file.
 */
const FOLDERS = [
  ['e2e', 1],
  ['economic', 2],
  ['chain', 3],
  ['keepers', 5],
  ['server', 9],
  ['ledger', 7],
  ['core', 14],
];

/**
 * Every test file, in the groups that share a process, relative to the project's root.
 * @returns {string[][]}
 */
export function testGroups() {
  const known = new Set(FOLDERS.map(([folder]) => folder));
  const others = readdirSync(join(projectRoot, 'test')).filter((name) => !known.has(name));
  return [...others.map((folder) => [folder, 1]), ...FOLDERS].flatMap(([folder, size]) => {
    const files = readdirSync(join(projectRoot, 'test', folder), { recursive: true })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) =>
        relative(projectRoot, join(projectRoot, 'test', folder, name))
          .split(sep)
          .join('/'),
      )
      .sort();
    return Array.from({ length: Math.ceil(files.length / size) }, (_, i) => files.slice(i * size, (i + 1) * size));
  });
}
