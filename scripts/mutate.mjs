#!/usr/bin/env node
/**
 * `npm run mutate`: how many small mistakes in the contracts the Solidity tests notice. A seeded sample of mutants (copies with one small change)
 * of the files below is compiled, one at a time, and tested until a test fails. Prints each survivor, a mutant that no test fails on; fails when
 * fewer than 90 % are noticed, or when a survivor is not explained in mutation/survivors.json.
 *
 *     npm run mutate -- --seed 1 --count 155 --only Custodian --at 212
 *
 * `--at` keeps to mutants of one line of the source.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { apply, mutantsOf, shuffled } from './mutation/mutants.mjs';
import { createCompiler } from './mutation/compiler.mjs';
import { createRunner, loadArtifacts } from './mutation/runner.mjs';
import { ensureNode } from './node-version.mjs';
import { runOrExit } from './process.mjs';

const KILL_RATE_PERCENT = 90;

const suite = (path) => `test/solidity/${path}`;
const MATH = suite('libraries/CurveMath.t.sol:CurveMathTest');
const POSTS = suite('unit/CurveBookPosts.t.sol:CurveBookPostsTest');
const CARRY = suite('unit/CurveBookCarry.t.sol:CurveBookCarryTest');
const PARTIAL = suite('unit/CurveBookPartialPosts.t.sol:CurveBookPartialPostsTest');
const MARKETS = suite('unit/CurveBookMarkets.t.sol:CurveBookMarketsTest');
const CUSTODIAN = suite('unit/Custodian.t.sol:CustodianTest');
const CLAIMS = suite('unit/CustodianClaims.t.sol:CustodianClaimsTest');
const ENTRYPOINT = suite('unit/Entrypoint.t.sol:EntrypointTest');
const SETTLER = suite('unit/OrderSettler.t.sol:OrderSettlerTest');
const ROUTES = suite('unit/OrderSettlerRoutes.t.sol:OrderSettlerRoutesTest');
const HOPS = suite('unit/OrderSettlerHops.t.sol:OrderSettlerHopsTest');
const SETTLER_PERMITS = suite('unit/OrderSettlerPermits.t.sol:OrderSettlerPermitsTest');
const PROXIES = suite('unit/Proxies.t.sol:ProxiesTest');
const REENTRANCY = suite('property/Reentrancy.t.sol:ReentrancyTest');
const TRADING = suite('property/Trading.t.sol:TradingTest');
const MARKET = suite('invariant/Market.t.sol:MarketInvariants');

/** For each source its share of the sample, and which contracts to compile before which suites; suites that find most mistakes come first. */
const TARGETS = [
  {
    file: 'contracts/libraries/CurveMath.sol',
    share: 40,
    steps: [
      { contracts: ['contracts/mocks/CurveMathHarness.sol'], suites: [MATH] },
      { contracts: ['contracts/CurveBook.sol'], suites: [CARRY, ENTRYPOINT, PARTIAL, POSTS, TRADING, MARKET] },
    ],
  },
  {
    file: 'contracts/CurveBook.sol',
    share: 25,
    steps: [
      {
        contracts: ['contracts/CurveBook.sol'],
        suites: [POSTS, PARTIAL, MARKETS, ENTRYPOINT, PROXIES, TRADING, MARKET],
      },
    ],
  },
  {
    file: 'contracts/libraries/CurvePosts.sol',
    share: 25,
    steps: [
      {
        contracts: ['contracts/CurveBook.sol'],
        suites: [POSTS, CARRY, PARTIAL, MARKETS, ENTRYPOINT, PROXIES, TRADING, MARKET],
      },
    ],
  },
  {
    file: 'contracts/Custodian.sol',
    share: 25,
    steps: [
      { contracts: ['contracts/Custodian.sol'], suites: [CUSTODIAN, CLAIMS, REENTRANCY, ENTRYPOINT, PROXIES, MARKET] },
    ],
  },
  {
    file: 'contracts/OrderSettler.sol',
    share: 25,
    steps: [{ contracts: ['contracts/OrderSettler.sol'], suites: [SETTLER, ROUTES, HOPS, SETTLER_PERMITS] }],
  },
  {
    file: 'contracts/Entrypoint.sol',
    share: 15,
    steps: [
      {
        contracts: ['contracts/Entrypoint.sol'],
        suites: [ENTRYPOINT, SETTLER, ROUTES, REENTRANCY, PROXIES, TRADING, MARKET],
      },
    ],
  },
];

await ensureNode();
await ensureInstalled();
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string' },
    only: { type: 'string' },
    at: { type: 'string' },
  },
});
const seed = parseInt(values.seed, 10);
const targets = TARGETS.filter(({ file }) => values.only === undefined || file.includes(`/${values.only}.sol`));
const shares = targets.reduce((sum, { share }) => sum + share, 0);
const count = parseInt(values.count ?? `${shares}`, 10);

const hardhat = createRequire(import.meta.url)
  .resolve('hardhat/package.json')
  .replace('package.json', 'dist/src/cli.js');
await runOrExit(process.execPath, [hardhat, 'build']);
const originals = loadArtifacts();
const compiler = createCompiler();
const runSuite = await createRunner({ fuzzRuns: 256, invariantRuns: 24, depth: 48 });
const explained = JSON.parse(readFileSync(new URL('./mutation/survivors.json', import.meta.url), 'utf8'));

const tally = { killed: 0, survived: 0, unexplained: 0, equal: 0, invalid: 0 };
const startedMs = Date.now();
for (const { file, share, steps } of targets) {
  const source = readFileSync(join(projectRoot, file));
  const all = mutantsOf(file, source, compiler.treeOf(file)).filter(
    ({ line }) => values.at === undefined || line === parseInt(values.at, 10),
  );
  const quota = Math.min(all.length, Math.round((share * count) / shares));
  let tried = 0;
  for (const mutant of shuffled(all, seed)) {
    if (tried === quota) break;
    const verdict = await judge(mutant, source, steps);
    if (verdict.outcome === 'killed' || verdict.outcome === 'survived') ++tried;
    ++tally[verdict.outcome];
    report(mutant, verdict);
  }
  say(`${file}: ${tried} of ${all.length} mutants`);
}

const judged = tally.killed + tally.survived;
const permille = judged === 0 ? 0 : Math.floor((tally.killed * 1000) / judged);
const minutes = Math.round((Date.now() - startedMs) / 60_000);
say(
  `${tally.killed} of ${judged} mutants killed (${Math.floor(permille / 10)}.${permille % 10} %), ${tally.survived} survived, ` +
    `${tally.unexplained} of them unexplained; ${tally.equal} compile to the same code and ${tally.invalid} not at all; ${minutes} min`,
);
process.exitCode = permille >= KILL_RATE_PERCENT * 10 && tally.unexplained === 0 ? 0 : 1;

/**
 * @returns {Promise<{ outcome: 'killed' | 'survived' | 'equal' | 'invalid', by?: string }>}
 */
async function judge(mutant, source, steps) {
  const artifacts = new Map(originals);
  const mutated = apply(source, mutant);
  let changed = false;
  for (const { contracts, suites } of steps) {
    for (const contract of contracts) {
      const code = compiler.compile(contract, mutant.file, mutated);
      if (code === undefined) return { outcome: 'invalid' };
      if (code.equal) continue;
      changed = true;
      const name = contract.replace(/.*\/(.*)\.sol/, '$1');
      const key = `${contract}:${name}`;
      const one = artifacts.get(key);
      artifacts.set(key, { ...one, contract: { ...one.contract, ...code.contract } });
    }
    if (!changed) continue;
    for (const one of suites) {
      const failed = await runSuite(artifacts, one);
      if (failed.length !== 0) return { outcome: 'killed', by: `${one.replace(/.*:/, '')}.${failed[0]}` };
    }
  }
  return { outcome: changed ? 'survived' : 'equal' };
}

function report(mutant, { outcome, by }) {
  const what = `${mutant.file}:${mutant.line} ${mutant.kind}: ${oneLine(mutant.original)} -> ${oneLine(mutant.replacement)}`;
  if (outcome !== 'survived') return say(`${outcome} ${what}${by === undefined ? '' : ` by ${by}`}`);
  const reason = explained.find(
    (one) =>
      one.file === mutant.file &&
      one.kind === mutant.kind &&
      one.original === oneLine(mutant.original) &&
      one.replacement === oneLine(mutant.replacement) &&
      one.line === lineOf(mutant),
  );
  if (reason === undefined) ++tally.unexplained;
  say(`SURVIVED ${what} (${reason?.why ?? 'unexplained'})`);
}

/** The text of the mutant's line, by which survivors.json names it: unlike the line's number, it stays when the file changes elsewhere. */
function lineOf({ file, line }) {
  return readFileSync(join(projectRoot, file), 'utf8').split('\n')[line - 1].trim();
}

function oneLine(text) {
  return text.replace(/\s+/g, ' ');
}
