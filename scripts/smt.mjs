#!/usr/bin/env node
/**
 * `npm run smt`: the claims of test/smt/Proofs.sol, proved for every input by the compiler's model checker with z3. Without z3 (Debian: the
 * package of that name) it says so and does nothing. Fails when a claim is refuted; one that is not decided in time is named.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';

const TIMEOUT_MS = 20_000;
const FILE = 'test/smt/Proofs.sol';

await ensureNode();
await ensureInstalled();
if (spawnSync('z3', ['--version']).status !== 0) {
  say('skipped: z3 absent');
  process.exit(0);
}
const require = createRequire(import.meta.url);
const solc = require('solc');
const smtSolver = require('solc/smtsolver');
const { smtCallback } = require('solc/smtchecker');

const text = readFileSync(join(projectRoot, FILE), 'utf8');
const claims = [...text.matchAll(/function (\w+)\(/g)].map(([, name]) => name);
const input = {
  language: 'Solidity',
  sources: { [FILE]: { content: text } },
  settings: {
    modelChecker: {
      contracts: { [FILE]: ['Proofs'] },
      // No claim has a loop or reads storage, so that bounded checking decides all of it; horn clauses leave the divisions undecided.
      engine: 'bmc',
      targets: ['assert', 'underflow', 'overflow', 'divByZero'],
      solvers: ['smtlib2'],
      timeout: TIMEOUT_MS,
      showProvedSafe: true,
      showUnproved: true,
    },
    outputSelection: { [FILE]: { Proofs: ['abi'] } },
  },
};
const output = JSON.parse(
  solc.compile(JSON.stringify(input), {
    import: (path) => {
      const file = join(projectRoot, path);
      return existsSync(file) ? { contents: readFileSync(file, 'utf8') } : { error: `no such file: ${path}` };
    },
    smtSolver: smtCallback(
      smtSolver.smtSolver,
      smtSolver.availableSolvers.find(({ command }) => command === 'z3'),
    ),
  }),
);
const checks = { proved: 0, undecided: 0, refuted: 0 };
for (const { message, formattedMessage, severity } of output.errors ?? []) {
  if (severity === 'error') throw new Error(formattedMessage);
  const verdict = /is safe!/.test(message)
    ? 'proved'
    : /happens here/.test(message)
      ? 'refuted'
      : /might happen here/.test(message)
        ? 'undecided'
        : undefined;
  if (verdict !== undefined) ++checks[verdict];
  if (verdict !== 'proved' && !/BMC engine .* deprecated/.test(message)) say(formattedMessage.trim());
}
say(
  `${claims.length} claims: ${checks.proved} checks proved, ${checks.undecided} not decided in time, ${checks.refuted} refuted`,
);
process.exitCode = checks.refuted === 0 && checks.proved > 0 ? 0 : 1;
