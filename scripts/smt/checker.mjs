/** One run of the compiler's model checker over a contract of claims, with z3 behind it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withoutBits } from './query.mjs';

/**
 * @param {string} query SMT-LIB
 * @param {number} timeoutSec
 * @param {number} seed
 * @returns {string} what z3 says of it, `unknown` after the time.
 */
export function ask(query, timeoutSec, seed) {
  const folder = mkdtempSync(join(tmpdir(), 'smt-'));
  try {
    const file = join(folder, 'query.smt2');
    writeFileSync(file, query);
    const { stdout, error } = spawnSync('z3', ['-smt2', `-T:${timeoutSec}`, `smt.random_seed=${seed}`, file], {
      encoding: 'utf8',
      maxBuffer: 1 << 30,
    });
    if (error !== undefined) throw error;
    return stdout.startsWith('timeout') ? 'unknown\n' : stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Seconds for each seed: depending on the seed, z3 decides a query quickly or not at all. */
const TRY_SEC = 4;
const SEEDS = [0, 7, 13, 29, 41, 53];

/** Asks a query with bit operations first without the meaning of these, which proves most claims, and then with it. */
function answer(query, timeoutSec) {
  if (!query.includes('bv2nat')) return ask(query, timeoutSec, 0);
  const [forgetful, exact] = [true, false].map((forget) => withoutBits(query, { forget }));
  const deadline = Date.now() + timeoutSec * 1000;
  let isForgetfulOpen = true;
  for (const seed of SEEDS) {
    if (isForgetfulOpen) {
      const first = ask(forgetful, TRY_SEC, seed);
      if (first.startsWith('unsat')) return first;
      isForgetfulOpen = !first.startsWith('sat');
    }
    const second = ask(exact, TRY_SEC, seed);
    if (second.startsWith('unsat') || second.startsWith('sat')) return second;
    if (Date.now() > deadline) break;
  }
  return 'unknown\n';
}

const VERDICTS = [
  ['proved', /is safe!/],
  ['refuted', /happens here/],
  ['undecided', /might happen here/],
];

/**
 * @param {object} solc the compiler.
 * @param {{path: string, contract: string, text: string, open: ReturnType<typeof import('./sources.mjs').sourcesOf>, timeoutSec: number}} claims
 * @returns {{verdict: 'proved' | 'refuted' | 'undecided', text: string, place: string}[]} each thing that was checked.
 */
export function check(solc, { path, contract, text, open, timeoutSec }) {
  const input = {
    language: 'Solidity',
    sources: { [path]: { content: text } },
    settings: {
      modelChecker: {
        contracts: { [path]: [contract] },
        engine: 'bmc',
        // One iteration is enough: the loops of the claims are over the knots of a word that has one.
        bmcLoopIterations: 1,
        targets: ['assert', 'underflow', 'overflow', 'divByZero', 'outOfBounds', 'popEmptyArray'],
        solvers: ['smtlib2'],
        timeout: timeoutSec * 1000,
        showProvedSafe: true,
        showUnproved: true,
      },
      outputSelection: { [path]: { [contract]: ['abi'] } },
    },
  };
  const smtSolver = (query) => {
    try {
      return { contents: answer(query, timeoutSec) };
    } catch (error) {
      return { error: String(error) };
    }
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: open(text), smtSolver }));
  const checks = [];
  for (const { message, formattedMessage, severity } of output.errors ?? []) {
    if (severity === 'error') throw new Error(formattedMessage);
    const verdict = VERDICTS.find(([, pattern]) => pattern.test(formattedMessage))?.[0];
    const [, file, line] = /--> ([^\n]+?):(\d+):\d+:/.exec(formattedMessage) ?? [];
    if (verdict !== undefined)
      checks.push({
        verdict,
        place: `${file}:${line}`,
        text: /^[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*/.exec(formattedMessage)?.[0] ?? message,
      });
  }
  return checks;
}
