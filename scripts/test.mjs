#!/usr/bin/env node
/**
 * `npm test`: types, Solidity tests, TypeScript tests, in groups that run beside each other (LANES=1 for one after the other; what a
 * group printed is shown when it has ended). Tests of the database run on SQLite, and once more on PostgreSQL when DATABASE_URL names a
 * server. Arguments go to Mocha, in one process, and leave the rest out: `npm test -- test/core/book.test.ts`.
 * Solidity properties run 10,000 times each; SOLIDITY_RUNS=quick is for the impatient.
 * `--deep` multiplies the runs of each property (RUNS, default 20) and lifts Mocha's time limit.
 * The last line is `N passed, N failed`; the exit code is 0 only when nothing failed.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { ensureCompiled } from './compile.mjs';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { inLanes, laneCount, testGroups } from './lanes.mjs';
import { ensureNode } from './node-version.mjs';
import { run } from './process.mjs';

/** @typedef {{ passed: number, failed: number }} Totals */

/** Everything, unless files are named. */
const TEST_FILES = 'test/{core,economic,ledger,server,keepers,chain,e2e,simulation,sdk}/**/*.test.ts';

const bin = (name) => join(projectRoot, 'node_modules', name);

/** Checks types; counts only when it fails. @returns {Promise<Totals>} */
async function checkTypes() {
  const { code, output } = await run(process.execPath, [bin('typescript/bin/tsc'), '--noEmit', '-p', projectRoot]);
  say(`types: ${code === 0 ? 'ok' : 'FAILED'}`);
  if (code !== 0) process.stdout.write(output);
  return { passed: 0, failed: code === 0 ? 0 : 1 };
}

/** @param {string} runs a profile of hardhat.config.ts @returns {Promise<Totals>} */
async function runSolidityTests(runs) {
  const { code, output } = await run(process.execPath, [bin('hardhat/dist/src/cli.js'), 'test', 'solidity'], {
    env: { SOLIDITY_RUNS: process.env.SOLIDITY_RUNS ?? runs },
  });
  say(`Solidity tests (${runs} runs)`);
  process.stdout.write(output);
  const lines = stripVTControlCharacters(output);
  const count = (word) =>
    [...lines.matchAll(new RegExp(`^\\s*(\\d+) ${word}`, 'gm'))].map((match) => parseInt(match[1], 10));
  const skipped = count('skipped').at(-1) ?? 0;
  return settle('Solidity tests', code, count('passing').at(-1) ?? 0, (count('failing').at(-1) ?? 0) + skipped);
}

/**
 * One process of Mocha. Without `echo` its output is shown when it has ended, under the name.
 * @param {string} name @param {string[]} args @param {Record<string, string>} env @param {boolean} echo @returns {Promise<Totals>}
 */
async function runTypeScriptTests(name, args, env, echo) {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-totals-'));
  const totals = join(folder, 'totals.json');
  try {
    const reporter = [
      '--reporter',
      join(projectRoot, 'scripts', 'mocha-reporter.cjs'),
      '--reporter-option',
      `totals=${totals}`,
    ];
    const startedMs = Date.now();
    const { code, output } = await run(process.execPath, [bin('mocha/bin/mocha.js'), ...reporter, ...args], {
      echo,
      env,
    });
    const { passed, failed } = readTotals(totals);
    say(`${name}: ${passed} passed, ${failed} failed, ${Math.round((Date.now() - startedMs) / 1_000)} s`);
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
    return { passed: 0, failed: 0 };
  }
}

/** A runner that failed as a whole, or ran nothing, counts as one failure. */
function settle(name, code, passed, failed) {
  if (code !== 0 && failed === 0) {
    say(`${name}: ended with code ${code}`);
    return { passed, failed: 1 };
  }
  if (passed + failed === 0) {
    say(`${name}: nothing ran`);
    return { passed, failed: 1 };
  }
  return { passed, failed };
}

await ensureNode();
await ensureInstalled();
await ensureCompiled();
const deep = process.argv.includes('--deep');
const args = process.argv.slice(2).filter((arg) => arg !== '--deep');
const env = deep ? { RUNS: process.env.RUNS ?? '20' } : {};
const limits = deep ? ['--timeout', '0'] : [];
const database = process.env.DATABASE_URL === undefined ? 'SQLite (DATABASE_URL is not set)' : 'SQLite and PostgreSQL';
say(`TypeScript tests on ${database}`);

/** @returns {Promise<Totals[]>} */
async function runEverything() {
  const lanes = laneCount();
  // The one that takes longest first: what is left for the end should be small.
  const jobs = [
    () => runSolidityTests(deep ? 'deep' : 'full'),
    checkTypes,
    ...testGroups().map((files) => () => runTypeScriptTests(nameOf(files), [...limits, ...files], env, lanes === 1)),
  ];
  return inLanes(jobs, lanes);
}

/** The first and the last file of a group. @param {string[]} files */
function nameOf(files) {
  return files.length === 1 ? files[0] : `${files[0]} to ${files.at(-1).split('/').at(-1)}`;
}

/** Arguments for Mocha: the files that they name, or all. @returns {Promise<Totals>} */
function runNamed() {
  const files = args.some((arg) => arg.endsWith('.ts')) ? [] : [TEST_FILES];
  return runTypeScriptTests('TypeScript tests', [...limits, ...args, ...files], env, true);
}

const results = args.length === 0 ? await runEverything() : [await runNamed()];
const passed = results.reduce((sum, result) => sum + result.passed, 0);
const failed = results.reduce((sum, result) => sum + result.failed, 0);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
