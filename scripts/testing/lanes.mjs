/** Several commands at once, as many as there are processors: how `npm test` shares the machine among its test files. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, posix, sep } from 'node:path';
import { projectRoot } from '../console.mjs';

/** More lanes would need more memory than the time that they save is worth: each has a chain and transpiled code in memory. */
const MOST_LANES = 4;

/**
 * How many commands run at once: the number in the variable LANES, else two more than there are processors, since many tests wait for
 * blocks; at most four.
 * @returns {number}
 */
export function laneCount() {
  const said = parseInt(process.env.LANES ?? '', 10);
  return Math.max(1, Math.min(MOST_LANES, Number.isInteger(said) ? said : availableParallelism() + 2));
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

/** How many of the files that start chains or processes share one process of Mocha: few, so that no long group remains at the end of a run. */
const FILES_PER_PROCESS = { e2e: 1, economic: 1, chain: 2, keepers: 3, server: 4 };
/** Folders whose files take longest come first. */
const ORDER = ['simulation', ...Object.keys(FILES_PER_PROCESS)];
/** How many processes share the files that start neither: few if nothing else runs, more and shorter ones at the end of a whole run. */
const QUICK_PROCESSES = { alone: 4, atTheEnd: 10 };
/** Files that need neither a chain nor a process, but take long. */
const SEARCHES = 'test/economic/';

/**
 * Every test file, in the groups that share a process, relative to the project's root.
 * @param {{ quick?: boolean, leftOut?: readonly string[] }} [options] quick: only those that start neither a chain nor a process
 * @returns {string[][]}
 */
export function testGroups({ quick = false, leftOut = [] } = {}) {
  const files = testFiles().filter((file) => !leftOut.includes(file));
  const isQuick = quickFiles(files);
  const quickOnes = files.filter((file) => isQuick.has(file));
  // The files are distributed in turn, so that each process gets some of every folder.
  const processes = quick ? QUICK_PROCESSES.alone : QUICK_PROCESSES.atTheEnd;
  const quickGroups = Array.from({ length: processes }, (_, i) =>
    quickOnes.filter((_file, index) => index % processes === i),
  );
  if (quick) return quickGroups;
  const folders = Object.groupBy(
    files.filter((file) => !isQuick.has(file)),
    (file) => file.split('/')[1],
  );
  const rank = (folder) => (ORDER.includes(folder) ? ORDER.indexOf(folder) : ORDER.length);
  const slowGroups = Object.keys(folders)
    .sort((a, b) => rank(a) - rank(b))
    .flatMap((folder) => inGroups(folders[folder], FILES_PER_PROCESS[folder] ?? 1));
  return [...slowGroups, ...quickGroups];
}

/** Files that have tests for PostgreSQL alone: without a server nothing in them would run. @returns {string[]} */
export function postgresFiles() {
  return testFiles().filter((file) => /^forPostgresUrl\(/m.test(readFileSync(join(projectRoot, file), 'utf8')));
}

function testFiles() {
  return readdirSync(join(projectRoot, 'test'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name.split(sep).join('/')}`)
    .sort();
}

function inGroups(files, size) {
  return Array.from({ length: Math.ceil(files.length / size) }, (_, i) => files.slice(i * size, (i + 1) * size));
}

/** Modules that start a chain or another process. */
const STARTERS = /^(hardhat\b|node:child_process$)/;
const IMPORTS = /(?:^|\n)(?:import|export)(?! type)[^;]*?from '([^']+)'|\bimport\('([^']+)'\)|\nimport '([^']+)'/g;

/** The files that import no starter, directly or through other modules, and that are not in `SEARCHES`. */
function quickFiles(files) {
  const known = new Map();
  const importsOf = (file) => {
    if (!known.has(file)) {
      const found = existsSync(join(projectRoot, file)) ? readFileSync(join(projectRoot, file), 'utf8') : '';
      known.set(
        file,
        [...found.matchAll(IMPORTS)].map((match) => match[1] ?? match[2] ?? match[3]),
      );
    }
    return known.get(file);
  };
  const startsSomething = (file, seen = new Set()) => {
    seen.add(file);
    return importsOf(file).some((name) => {
      if (!name.startsWith('.')) return STARTERS.test(name);
      const imported = posix.join(posix.dirname(file), name).replace(/\.js$/, '.ts');
      return !seen.has(imported) && startsSomething(imported, seen);
    });
  };
  return new Set(files.filter((file) => !file.startsWith(SEARCHES) && !startsSomething(file)));
}
