/** Several commands at once, as many as there are processors: how `npm test` shares the machine among its test files. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join, posix, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { projectRoot } from '../console.mjs';

/** More lanes would need more memory than the time that they save is worth: each has a chain and transpiled code in memory. */
const MOST_LANES = 4;
/** Two that go on in the order, so that what waits longest begins early, and one from the end, where files are short. */
const SPARE_LANES = ['next', 'next', 'last'];

/**
 * How many commands run at once, however busy the processors are: the number in the variable LANES, else as many as there are processors; at most four.
 * @returns {number}
 */
export function laneCount() {
  const said = parseInt(process.env.LANES ?? '', 10);
  return Math.max(1, Math.min(MOST_LANES, Number.isInteger(said) ? said : availableParallelism()));
}

/** How often a spare lane looks whether processors are idle, and how much of them all must have been since. */
const LOOK_MS = 500;
const IDLE_SHARE = 0.1;

/**
 * Runs jobs in the order given, `lanes` of them at a time; each lane takes the next one when it has ended its own. Spare lanes take one, the next or the last
 * that nobody has, whenever processors had nothing to do because those that run wait. On a machine that is busy enough they take none: what waits for
 * a processor there would only wait longer, and what has a limit of time would miss it.
 * @template T
 * @param {(() => Promise<T>)[]} jobs
 * @param {number} lanes
 * @param {{ spare?: readonly string[], idleShare?: () => number, waitMs?: number }} [options] spare: which job each spare lane takes, `next` or `last`;
 * idleShare: how much of the processors nobody used since the last call
 * @returns {Promise<T[]>} the results, in the order of the jobs
 */
export async function inLanes(jobs, lanes, { spare = [], idleShare = createIdleMeter(), waitMs = LOOK_MS } = {}) {
  /** @type {T[]} */
  const results = [];
  let next = 0;
  let end = jobs.length;
  const lane = async () => {
    while (next < end) {
      const at = next++;
      results[at] = await jobs[at]();
    }
  };
  // They look in turn, since what one has begun, the next one must find busy.
  let looks = Promise.resolve();
  const isIdle = () => {
    const since = looks.then(() => void idleShare());
    const look = since.then(() => delay(waitMs)).then(() => idleShare() >= IDLE_SHARE);
    looks = look.then(() => undefined);
    return look;
  };
  const spareLane = async (which) => {
    while (next < end) {
      if (!(await isIdle()) || next >= end) continue;
      const at = which === 'next' ? next++ : --end;
      results[at] = await jobs[at]();
    }
  };
  await Promise.all([...Array.from({ length: lanes }, lane), ...spare.map(spareLane)]);
  return results;
}

/** The spare lanes of a run with so many lanes; none beside one lane, which runs one after the other. @param {number} lanes */
export const spareLanes = (lanes) => (lanes > 1 ? SPARE_LANES : []);

function createIdleMeter() {
  const read = () => {
    const times = cpus().map((one) => one.times);
    const sum = (pick) => times.reduce((total, one) => total + pick(one), 0);
    return { idle: sum(({ idle }) => idle), all: sum((one) => Object.values(one).reduce((a, b) => a + b, 0)) };
  };
  let before = read();
  return () => {
    const now = read();
    const share = (now.idle - before.idle) / Math.max(1, now.all - before.all);
    before = now;
    return share;
  };
}

/** Folders whose files start programs, and wait for them: beside files that don't, so that no processor waits with them. */
const WAITING = ['simulation', 'e2e'];
/** Of the others, those whose files take longest come first. */
const COMPUTING = ['economic', 'keepers', 'chain', 'server'];
/** Files that need neither a chain nor a process, but take long: searches, and what needs many rows. */
const LONG = [
  'test/economic/',
  'test/core/market-model',
  'test/core/swap/swap-planner',
  'test/keepers/archive/archive-kept',
  'test/ledger/chain/compact-fills',
  'test/server/activity/',
  'test/server/downloads',
  'test/server/fuzz',
  'test/server/paging',
  'test/server/read-fuzz',
];

/**
 * Of the files that need neither and are not `LONG`, those that wait or take longest: they are spread over the first part of the others, so that
 * not all lanes wait at once, and no lane has one of them alone at the end.
 */
const SLOW = [
  'test/server/conformance/',
  'test/server/standby',
  'test/server/edge/',
  'test/server/stream/',
  'test/sdk/trust',
  'test/core/swap/',
];
const FIRST_PART = 0.6;

/**
 * Every test file, relative to the project's root, in the order in which they should start.
 * @param {{ quick?: boolean, leftOut?: readonly string[] }} [options] quick: only those that start neither a chain nor a process
 * @returns {{ name: string, isQuick: boolean }[]} isQuick: it starts neither a chain nor a process
 */
export function orderedFiles({ quick = false, leftOut = [] } = {}) {
  const files = testFiles().filter((file) => !leftOut.includes(file));
  const isQuick = quickFiles(files);
  const folderOf = (file) => file.split('/')[1];
  const isSlow = (file) => SLOW.some((beginning) => file.startsWith(beginning));
  const quickNames = files.filter((file) => isQuick.has(file));
  const fast = quickNames.filter((file) => !isSlow(file));
  // Servers wait for their clients' timers; the rest computes.
  const fastOnes = mixed(
    fast.filter((file) => folderOf(file) === 'server'),
    fast.filter((file) => folderOf(file) !== 'server'),
  );
  const quickOnes = mixed(quickNames.filter(isSlow), fastOnes, FIRST_PART).map((name) => ({ name, isQuick: true }));
  if (quick) return quickOnes;
  const rank = (folders, file) => (folders.includes(folderOf(file)) ? folders.indexOf(folderOf(file)) : folders.length);
  const byRank = (folders) => (one, other) => rank(folders, one) - rank(folders, other);
  const slow = files.filter((file) => !isQuick.has(file));
  const isWaiting = (file) => WAITING.includes(folderOf(file));
  return [
    ...mixed(
      slow.filter(isWaiting).sort(byRank(WAITING)),
      slow.filter((file) => !isWaiting(file)).sort(byRank(COMPUTING)),
    ).map((name) => ({ name, isQuick: false })),
    // Short ones remain for the end, so that lanes end at about the same time.
    ...quickOnes,
  ];
}

/** Both lists in their order, each spread evenly over the whole, or the first over a part of it only. */
function mixed(some, others, part = 1) {
  const placed = (list, share = 1) => list.map((item, i) => ({ item, place: ((i + 0.5) / list.length) * share }));
  return [...placed(some, part), ...placed(others)].sort((a, b) => a.place - b.place).map(({ item }) => item);
}

/** Whether a file looks at the memory of its process, which then runs nothing else. @param {string} file */
export const needsOwnProcess = (file) =>
  /\bmemoryUsage\b|\/garbage\.js'|^import .*\/memory\.js'/m.test(readFileSync(join(projectRoot, file), 'utf8'));

/** Files that have tests for PostgreSQL alone, within other conditions too: without a server nothing in them would run. @returns {string[]} */
export function postgresFiles() {
  return testFiles().filter((file) => /^ *forPostgres\w+\(/m.test(readFileSync(join(projectRoot, file), 'utf8')));
}

function testFiles() {
  return readdirSync(join(projectRoot, 'test'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name.split(sep).join('/')}`)
    .sort();
}

/** Modules that start a chain or another process. */
const STARTERS = /^(hardhat\b|node:child_process$)/;
const IMPORTS = /(?:^|\n)(?:import|export)(?! type)[^;]*?from '([^']+)'|\bimport\('([^']+)'\)|\nimport '([^']+)'/g;

const isLong = (file) => LONG.some((beginning) => file.startsWith(beginning));

/** The files that import no starter, directly or through other modules, and that are not `LONG`. */
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
  return new Set(files.filter((file) => !isLong(file) && !startsSomething(file)));
}
