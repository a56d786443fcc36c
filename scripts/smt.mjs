#!/usr/bin/env node
/**
 * `npm run smt`: the claims of test/smt/, proved for every input by the compiler's model checker with z3, about the functions of contracts/
 * themselves. Without z3 (Debian: the package of that name) it says so and does nothing.
 *
 * Fails when a claim is refuted, and names those that are not decided in time. `--only Amounts` takes the claims of one contract.
 *
 * `--mistakes` checks that the claims can fail: it puts the mistakes of scripts/smt/mistakes.mjs into the contracts, one after the other, and
 * fails unless a claim is refuted for each. It also asserts something false at the end of each claim and fails unless that is refuted: if it
 * is not, the claim's assumptions contradict each other and it would hold of anything.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';

const FOLDER = 'test/smt';
const TIMEOUT_SEC = 60;
/** Where only the verdict `proved` matters, a query that is not decided within this time counts as undecided. */
const SHORT_TIMEOUT_SEC = 3;

await ensureNode();
await ensureInstalled();
if (spawnSync('z3', ['--version']).status !== 0) {
  say('skipped: z3 absent');
  process.exit(0);
}
const solc = createRequire(import.meta.url)('solc');
const { ask, check } = await import('./smt/checker.mjs');
const { LANES, laneClaims } = await import('./smt/lanes.mjs');
const { MISTAKES } = await import('./smt/mistakes.mjs');
const { FUNCTION, sourcesOf } = await import('./smt/sources.mjs');
const { values } = parseArgs({ options: { only: { type: 'string' }, mistakes: { type: 'boolean' } } });

const claims = readdirSync(join(projectRoot, FOLDER)).flatMap((file) => {
  const path = `${FOLDER}/${file}`;
  const text = readFileSync(join(projectRoot, path), 'utf8');
  const [, contract] = /^contract (\w+)/m.exec(text) ?? [];
  return contract === undefined || (values.only ?? contract) !== contract ? [] : [{ path, contract, text }];
});
if ((values.only ?? LANES) === LANES) claims.push({ contract: LANES });
const tally = ({ proved, undecided, refuted }) =>
  `${proved} checks proved, ${undecided} not decided in time, ${refuted} refuted`;

/** Splits a contract into one for each of its claims, without functions that the claim does not call: the compiler puts all that it reads into each query. */
function apart({ path, contract, text }) {
  const start = text.indexOf(`contract ${contract} {`);
  const [helpers, body] = [text.slice(0, start), text.slice(start)];
  const kept = (part, isKept) =>
    part.replace(FUNCTION, (all, name) => (isKept(all, name) ? all : all.replace(/[^\n]/g, '')));
  const isClaim = (all) => /\) external /.test(all);
  return [...body.matchAll(FUNCTION)]
    .filter(([all]) => isClaim(all))
    .map(([claim, name]) => ({
      path,
      contract,
      name,
      text:
        kept(helpers, (_, each) => claim.includes(`Steps.${each}(`)) +
        kept(body, (all, each) => each === name || (!isClaim(all) && claim.includes(`${each}(`))),
    }));
}

const TALLY = /(?<proved>\d+) checks proved, (?<undecided>\d+) not decided in time, (?<refuted>\d+) refuted/;

const isSound =
  values.mistakes === true ? findsMistakes() : claims.length === 1 ? provesOne(claims[0]) : await provesAll();
process.exitCode = isSound ? 0 : 1;

/** Checks one contract of claims, and says what is not proved. */
function provesOne(each) {
  const counts = { proved: 0, undecided: 0, refuted: 0 };
  if (each.contract === LANES) {
    for (const { name, query } of laneClaims(solc)) {
      const verdict = verdictOf(query, TIMEOUT_SEC);
      ++counts[verdict];
      if (verdict !== 'proved') say(`${verdict}: ${name}`);
    }
    say(`${LANES}: ${tally(counts)}`);
    return counts.proved > 0 && counts.refuted === 0;
  }
  const open = sourcesOf(solc);
  for (const claim of apart(each)) {
    for (const { verdict, text } of check(solc, { ...claim, open, timeoutSec: TIMEOUT_SEC })) {
      ++counts[verdict];
      if (verdict !== 'proved') say(text);
    }
  }
  say(`${each.contract}: ${tally(counts)}`);
  return counts.proved > 0 && counts.refuted === 0;
}

/** The verdict on a claim that is true if its query has no model. */
function verdictOf(query, timeoutSec) {
  const answer = ask(query, timeoutSec, 0).trim();
  if (answer === 'unsat') return 'proved';
  if (answer === 'sat') return 'refuted';
  if (answer === 'unknown') return 'undecided';
  throw new Error(`z3: ${answer}`);
}

/** The claim about lanes that a mistake in the contract refutes. */
function refutedLanes({ path, correct, wrong }) {
  const text = readFileSync(join(projectRoot, path), 'utf8');
  if (text.split(correct).length !== 2) throw new Error(`not once in ${path}: ${correct}`);
  return laneClaims(
    solc,
    text.replace(correct, () => wrong),
  ).find(({ query }) => verdictOf(query, SHORT_TIMEOUT_SEC) === 'refuted');
}

/** Checks each contract in a process of its own, as many at a time as there are cores. */
async function provesAll() {
  const total = { proved: 0, undecided: 0, refuted: 0 };
  const left = [...claims];
  let isSound = left.length > 0;
  async function work() {
    for (let each = left.shift(); each !== undefined; each = left.shift()) {
      const child = spawn(process.execPath, [process.argv[1], '--only', each.contract], {
        stdio: ['ignore', 'inherit', 'pipe'],
      });
      const [chunks, [code]] = await Promise.all([child.stderr.toArray(), once(child, 'close')]);
      const text = Buffer.concat(chunks).toString();
      process.stderr.write(text);
      const counts = TALLY.exec(text)?.groups;
      isSound &&= code === 0 && counts !== undefined;
      for (const key of Object.keys(total)) total[key] += Number.parseInt(counts?.[key] ?? '0', 10);
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  say(`${claims.length} contracts of claims: ${tally(total)}`);
  return isSound;
}

/** Whether a false assertion at the end of a claim would be proved, since no input reaches it. */
function isVacuous({ path, contract, text }, open) {
  const bare = text.replace(/\bassert\([^;]*;/g, (all) => `{${all.replace(/[^\n]/g, '')}}`);
  const end = bare.lastIndexOf('\n    }\n');
  const falsified = `${bare.slice(0, end)} assert(false);${bare.slice(end)}`;
  const place = `${path}:${bare.slice(0, end).split('\n').length}`;
  const found = check(solc, { path, contract, text: falsified, open, timeoutSec: SHORT_TIMEOUT_SEC });
  return found.some((each) => each.verdict === 'proved' && each.place === place);
}

function findsMistakes() {
  let missed = 0;
  const sources = sourcesOf(solc);
  const solidity = claims.filter(({ contract }) => contract !== LANES);
  for (const claim of solidity.flatMap(apart)) {
    if (!isVacuous(claim, sources)) continue;
    ++missed;
    say(`holds of nothing: ${claim.contract}.${claim.name}`);
  }
  for (const { path, correct, wrong, contract } of MISTAKES) {
    const each = claims.find((candidate) => candidate.contract === contract);
    if (each === undefined) continue;
    if (contract === LANES) {
      const refuted = refutedLanes({ path, correct, wrong });
      if (refuted === undefined) ++missed;
      say(`${refuted === undefined ? 'MISSED' : `refuted by ${LANES}, ${refuted.name}`}: ${wrong}`);
      continue;
    }
    const open = sourcesOf(solc, (file, text) => {
      if (file !== path) return text;
      if (text.split(correct).length !== 2) throw new Error(`not once in ${path}: ${correct}`);
      return text.replace(correct, () => wrong);
    });
    const refuted = apart(each).find((claim) =>
      check(solc, { ...claim, open, timeoutSec: SHORT_TIMEOUT_SEC }).some(({ verdict }) => verdict === 'refuted'),
    );
    if (refuted === undefined) ++missed;
    say(`${refuted === undefined ? 'MISSED' : `refuted by ${contract}.${refuted.name}`}: ${wrong}`);
  }
  return missed === 0;
}
