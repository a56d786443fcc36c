#!/usr/bin/env node
/**
 * `npm test`: types, Solidity tests, files of TypeScript tests, as many beside each other as there are processors, and up to three more while those are idle (LANES=1 for one after the
 * other; what a file printed is shown when it has ended). Each process of Mocha takes one file after the other. Tests run on SQLite; with DATABASE_URL, which names a PostgreSQL server, those that storage
 * decides run on both, and the others there. Arguments go to Mocha, in one process, and leave the rest out:
 * `npm test -- test/core/book.test.ts`.
 * Solidity properties of the arithmetic run 10,000 times each, others 1,000 times; SOLIDITY_RUNS chooses otherwise for all.
 * `--quick` runs only what needs neither a chain nor another process, on SQLite.
 * `--deep` multiplies the runs of each property (RUNS, default 20), takes both databases for all, and lifts Mocha's time limit.
 * A file that failed runs once more by itself, with the same seed of its properties, when all others have ended, eight files at most. What
 * passes then is reported as unsteady, with its reason: it depends on how fast the machine is, and is a defect of the test or of the product.
 * At the end come the slowest tests, the files that took most CPU time, and what failed with its reasons. The last line is `N passed, N failed`; the exit code is 0 only when nothing failed.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { ensureBuilt } from './build.mjs';
import { ensureCompiled } from './compile.mjs';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { readCpuMs } from './testing/cpu.mjs';
import { inLanes, laneCount, needsOwnProcess, orderedFiles, postgresFiles, spareLanes } from './testing/lanes.mjs';
import { ensureNode } from './node-version.mjs';
import { run } from './process.mjs';
import { transpile } from './testing/transpile.mjs';
import { createWorkers } from './testing/workers.mjs';

/** @typedef {{ passed: number, failed: number }} Totals */

/** Everything, unless files are named. */
const TEST_FILES = 'test/**/*.test.ts';
/** Solidity tests of the arithmetic on which all money rests. */
const ARITHMETIC = ['libraries', 'types'];
const SLOWEST = 20;
/** What .mocharc.json says, but for the loader. */
const MOCHA_OPTIONS = { timeout: 60_000, forbidOnly: true, forbidPending: true };

/** What tests, and files and programs (groups), took, for the tables at the end. */
const took = { tests: [], groups: [] };
/** Failures, printed again at the very end, so that a truncated log has them, too. @type {{ group: string, title: string, reason: string }[]} */
const failures = [];
/** What failed among other groups and passed alone. @type {typeof failures} */
const unsteady = [];
/** If more files fail, none runs again: so many failures are no unsteadiness. */
const MOST_REPEATED = 8;
const MAX_REASON_CHARS = 2_000;

const bin = (name) => join(projectRoot, 'node_modules', name);

/**
 * Runs a program of node_modules; what it took goes to the table of groups under `name`.
 * @param {string} name @param {string[]} command @param {{ env?: Record<string, string>, echo?: boolean }} [options]
 * @returns {Promise<import('./process.mjs').Finished & { told: string }>} told: what it took, for a line of output
 */
async function runGroup(name, [program, ...args], { env = {}, echo = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-cpu-'));
  const startedMs = Date.now();
  try {
    const counting = ['--import', pathToFileURL(join(projectRoot, 'scripts', 'testing', 'cpu.mjs')).href];
    const finished = await run(process.execPath, [...counting, bin(program), ...args], {
      env: { ...env, CPU_FILE: join(folder, 'cpu'), CPU_PARENT: String(process.pid) },
      echo,
    });
    const tookMs = Date.now() - startedMs;
    const cpuMs = readCpuMs(join(folder, 'cpu'));
    took.groups.push({ title: name, tookMs, cpuMs });
    return { ...finished, told: `${seconds(tookMs)} s, ${seconds(cpuMs)} s of CPU` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const seconds = (ms) => Math.round(ms / 1_000);

/** Checks types, by the native compiler, and in a deep run by the one that it follows; counts only when it fails. @returns {Promise<Totals>} */
async function checkTypes() {
  const compiler = deep ? 'typescript/bin/tsc' : '@typescript/native-preview/bin/tsgo';
  const check = (name, folder) => runGroup(name, [compiler, '--noEmit', '-p', folder]);
  const checked = await check('types', projectRoot);
  const { code, output, told } = checked.code === 0 ? await check('types of web/', join(projectRoot, 'web')) : checked;
  say(`types: ${code === 0 ? 'ok' : 'FAILED'}, ${told}`);
  if (code !== 0) process.stdout.write(output);
  if (code !== 0) failures.push({ group: 'types', title: 'types', reason: output });
  return { passed: 0, failed: code === 0 ? 0 : 1 };
}

/**
 * Arithmetic by the first profile of hardhat.config.ts, the rest by the second, or all by that of SOLIDITY_RUNS.
 * @param {string} arithmetic @param {string} others @returns {Promise<Totals>}
 */
async function runSolidityTests(arithmetic, others) {
  const files = readdirSync(join(projectRoot, 'test', 'solidity'), { recursive: true })
    .filter((name) => name.endsWith('.t.sol'))
    .map((name) => join('test', 'solidity', name));
  const isArithmetic = (file) => ARITHMETIC.some((folder) => file.startsWith(join('test', 'solidity', folder)));
  const parts = [
    await runSolidityFiles(process.env.SOLIDITY_RUNS ?? arithmetic, files.filter(isArithmetic)),
    await runSolidityFiles(
      process.env.SOLIDITY_RUNS ?? others,
      files.filter((file) => !isArithmetic(file)),
    ),
  ];
  return sumOf(parts);
}

/** @param {string} runs a profile of hardhat.config.ts @param {string[]} files @returns {Promise<Totals>} */
async function runSolidityFiles(runs, files) {
  const name = `Solidity tests (${runs} runs)`;
  const command = ['hardhat/dist/src/cli.js', 'test', 'solidity', ...files];
  const { code, output, told } = await runGroup(name, command, { env: { SOLIDITY_RUNS: runs } });
  say(`${name}: ${told}`);
  process.stdout.write(output);
  const lines = stripVTControlCharacters(output);
  const count = (word) =>
    [...lines.matchAll(new RegExp(`^\\s*(\\d+) ${word}`, 'gm'))].map((match) => parseInt(match[1], 10));
  const skipped = count('skipped').at(-1) ?? 0;
  if (code !== 0) failures.push({ group: name, title: name, reason: output.slice(-MAX_REASON_CHARS) });
  return settle(name, code, count('passing').at(-1) ?? 0, (count('failing').at(-1) ?? 0) + skipped);
}

/** @param {Totals[]} all @returns {Totals} */
function sumOf(all) {
  return all.reduce((sum, one) => ({ passed: sum.passed + one.passed, failed: sum.failed + one.failed }), {
    passed: 0,
    failed: 0,
  });
}

/**
 * Runs Mocha, by a function that has it write its totals into the file that it is given, and counts what it says.
 * @param {string} name @param {(totals: string) => Promise<{ code: number, output: string, told: string }>} runMocha @param {boolean} echo whether
 * the output has been shown @returns {Promise<Totals>}
 */
async function counted(name, runMocha, echo) {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-totals-'));
  const totals = join(folder, 'totals.json');
  try {
    const { code, output, told } = await runMocha(totals);
    const { passed, failed, tests, reasons } = readTotals(totals);
    took.tests.push(...tests);
    failures.push(...reasons.map((one) => ({ group: name, ...one })));
    say(`${name}: ${passed} passed, ${failed} failed, ${told}`);
    if (!echo) process.stdout.write(output);
    return settle(name, code, passed, failed);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Zeroes when Mocha ended before its reporter could count. */
function readTotals(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, tests: [], reasons: [] };
  }
}

/** A runner that failed as a whole, or ran nothing, counts as one failure. */
function settle(name, code, passed, failed) {
  if (code !== 0 && failed === 0) {
    say(`${name}: ended with code ${code}`);
    failures.push({ group: name, title: name, reason: `ended with code ${code}` });
    return { passed, failed: 1 };
  }
  if (passed + failed === 0) {
    say(`${name}: nothing ran`);
    failures.push({ group: name, title: name, reason: 'nothing ran' });
    return { passed, failed: 1 };
  }
  return { passed, failed };
}

/** Those that took most first. @param {{ title: string, tookMs: number, cpuMs?: number }[]} rows @param {string} heading */
function printSlowest(rows, heading) {
  const costOf = ({ tookMs, cpuMs }) => cpuMs ?? tookMs;
  const slowest = [...rows].sort((a, b) => costOf(b) - costOf(a)).slice(0, SLOWEST);
  const column = (ms) => `${(ms / 1_000).toFixed(1).padStart(8)} s`;
  process.stdout.write(`\n${heading}\n`);
  for (const { title, tookMs, cpuMs } of slowest)
    process.stdout.write(
      `${cpuMs === undefined ? '' : column(cpuMs)}${column(tookMs)}  ${title.replace(/\s+/g, ' ').slice(0, 160)}\n`,
    );
}

/** @param {string} heading @param {typeof failures} list */
function printFailures(heading, list) {
  if (list.length === 0) return;
  process.stdout.write(`\n${heading}\n`);
  for (const { title, reason } of list) process.stdout.write(`  ${title}\n${reason.slice(0, MAX_REASON_CHARS)}\n`);
}

await ensureNode();
await ensureInstalled();
await ensureCompiled();
await ensureBuilt();
const MODES = ['--deep', '--quick'];
const [deep, quick] = MODES.map((mode) => process.argv.includes(mode));
const args = process.argv.slice(2).filter((arg) => !MODES.includes(arg));
const env = { ...(deep ? { RUNS: process.env.RUNS ?? '20' } : {}), ...(quick ? { DATABASE_URL: '' } : {}) };
const isSqlite = quick || !/^postgres(ql)?:/.test(process.env.DATABASE_URL ?? '');
say(`TypeScript tests on ${isSqlite ? 'SQLite (DATABASE_URL names no PostgreSQL server)' : 'SQLite and PostgreSQL'}`);

/** @returns {Promise<Totals[]>} */
async function runAll() {
  const lanes = laneCount();
  const { folder, remove } = await transpile();
  const js = (file) => join(folder, file.replace(/ts$/, 'js'));
  // Test files find it there: they share what one run needs once.
  process.env.TRANSPILED = folder;
  // Compiled by the first process that loads a module, for the hundreds that tests start.
  process.env.NODE_COMPILE_CACHE ??= join(folder, 'compiled');
  const leftOut = isSqlite ? postgresFiles() : [];
  if (leftOut.length > 0) say(`left out, they need PostgreSQL: ${leftOut.join(', ')}`);
  const faults = [];
  const workers = createWorkers({
    requires: [js('test/support/every-answer.ts')],
    options: { ...MOCHA_OPTIONS, ...(deep ? { timeout: 0 } : {}) },
    env,
    echo: lanes === 1,
    onFault: (file, reason) => faults.push({ group: file, title: `the process of ${file}`, reason }),
  });
  /** How the properties of each file were chosen, so that those that failed fail again. @type {Map<string, string>} */
  const seeds = new Map();
  const runFile = ({ name: file, isQuick }, alone) => {
    // Hardhat changes what Chai's assertions do.
    const pool = isQuick ? 'without a chain' : 'with chains';
    const runMocha = async (totals) => {
      const startedMs = Date.now();
      const seed = process.env.SEED ?? seeds.get(file);
      const ran = await workers.run(js(file), totals, { alone, seed, pool });
      const tookMs = Date.now() - startedMs;
      seeds.set(file, ran.seed);
      took.groups.push({ title: file, tookMs, cpuMs: ran.cpuMs });
      const told = `${seconds(tookMs)} s, ${seconds(ran.cpuMs)} s of CPU, SEED=${ran.seed}`;
      return { code: ran.isWhole ? 0 : 1, output: ran.output, told };
    };
    return counted(file, runMocha, lanes === 1);
  };
  const files = orderedFiles({ quick, leftOut }).map((file) => ({
    name: file.name,
    start: (alone = needsOwnProcess(file.name)) => runFile(file, alone),
  }));
  const others = [() => (deep ? runSolidityTests('deep', 'deep') : runSolidityTests('full', 'most')), checkTypes];
  try {
    const first = quick ? [] : others;
    const results = await inLanes(
      [
        ...first,
        ...files.map(
          ({ start }) =>
            () =>
              start(),
        ),
      ],
      lanes,
      { spare: spareLanes(lanes) },
    );
    await workers.close();
    const again = await repeatFailed(files, results.slice(first.length));
    failures.push(...faults);
    return [...results.slice(0, first.length), ...again, { passed: 0, failed: faults.length }];
  } finally {
    await workers.close();
    if (!isSqlite) await dropSpareSchemas(js);
    remove();
  }
}

/**
 * Runs the files that failed once more, one after the other, each in a process of its own. What failed then counts; what did not fail again is unsteady.
 * @param {{ name: string, start(alone?: boolean): Promise<Totals> }[]} files @param {Totals[]} results in the order of the files
 * @returns {Promise<Totals[]>}
 */
async function repeatFailed(files, results) {
  const failed = files.filter((_file, at) => results[at].failed > 0);
  if (failed.length > MOST_REPEATED) return results;
  for (const file of failed) {
    const before = failures.filter((one) => one.group === file.name);
    failures.splice(0, Infinity, ...failures.filter((one) => one.group !== file.name));
    say(`${file.name}: once more, by itself`);
    results[files.indexOf(file)] = await file.start(true);
    const still = new Set(failures.map(({ title }) => title));
    unsteady.push(...before.filter(({ title }) => !still.has(title)));
  }
  return results;
}

/** Removes what test files left to each other on the PostgreSQL server. @param {(file: string) => string} js */
async function dropSpareSchemas(js) {
  try {
    const spares = await import(pathToFileURL(js('test/support/databases/spare-schemas.ts')).href);
    await spares.dropSpareSchemas(process.env.DATABASE_URL);
  } catch (error) {
    say(`spare schemas stay on the PostgreSQL server: ${error.message}`);
  }
}

/** Mocha as it is, with its arguments: for the files that they name, or all. @returns {Promise<Totals>} */
function runNamed() {
  const files = args.some((arg) => arg.endsWith('.ts')) ? [] : [TEST_FILES];
  const runMocha = (totals) => {
    const reporter = ['--reporter', join(projectRoot, 'scripts', 'testing', 'mocha-reporter.cjs')];
    const command = ['mocha/bin/mocha.js', ...reporter, '--reporter-option', `totals=${totals}`];
    const limits = deep ? ['--timeout', '0'] : [];
    return runGroup('TypeScript tests', [...command, ...limits, ...args, ...files], { env, echo: true });
  };
  return counted('TypeScript tests', runMocha, true);
}

const startedMs = Date.now();
const { passed, failed } = sumOf(args.length === 0 ? await runAll() : [await runNamed()]);
if (args.length === 0) {
  printSlowest(took.tests, `The slowest ${SLOWEST} tests and hooks`);
  printSlowest(took.groups, 'The files that took most CPU time (first), with what they started, and their time');
  const cpuMs = took.groups.reduce((sum, group) => sum + group.cpuMs, 0);
  process.stdout.write(`\nAll in ${seconds(Date.now() - startedMs)} s, ${seconds(cpuMs)} s of CPU\n`);
}
printFailures('Unsteady: failed among others, and passed alone', unsteady);
printFailures('What failed', failures);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
