/** Runs Solidity tests in this process, on artifacts held in memory. */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectRoot } from '../console.mjs';

const edr = createRequire(createRequire(import.meta.url).resolve('hardhat/package.json'))('@nomicfoundation/edr');

const SOLC = '0.8.37';
/** Enough for any test, and low enough that an endless loop ends soon. */
const GAS_LIMIT = 200_000_000n;

/** @returns {Map<string, any>} EDR's artifacts by `source:name` */
export function loadArtifacts() {
  const artifacts = new Map();
  const folder = join(projectRoot, 'artifacts');
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.json') || entry.parentPath.endsWith('build-info')) continue;
    const one = JSON.parse(readFileSync(join(entry.parentPath, entry.name), 'utf8'));
    if (one.contractName === undefined) continue;
    artifacts.set(`${one.sourceName}:${one.contractName}`, {
      id: { name: one.contractName, solcVersion: SOLC, source: one.inputSourceName ?? one.sourceName },
      contract: {
        abi: JSON.stringify(one.abi),
        bytecode: one.bytecode,
        linkReferences: one.linkReferences,
        deployedBytecode: one.deployedBytecode,
        deployedLinkReferences: one.deployedLinkReferences,
      },
    });
  }
  return artifacts;
}

/**
 * @param {{ fuzzRuns: number, invariantRuns: number, depth: number }} effort
 * @returns {Promise<(artifacts: Map<string, any>, suite: string) => Promise<string[]>>} runs one suite, named `source:name`, and returns
 * the names of its tests that failed
 */
export async function createRunner({ fuzzRuns, invariantRuns, depth }) {
  const context = new edr.EdrContext();
  await context.registerSolidityTestRunnerFactory(edr.L1_CHAIN_TYPE, edr.l1SolidityTestRunnerFactory());
  const config = {
    projectRoot,
    hardfork: edr.PRAGUE,
    isolate: true,
    localPredeploys: edr.l1GenesisState(edr.l1HardforkFromString(edr.PRAGUE)),
    disableBlockGasLimit: true,
    disableTransactionGasCap: true,
    gasLimit: GAS_LIMIT,
    rpcCachePath: join(projectRoot, 'cache', 'edr'),
    collectStackTraces: edr.CollectStackTraces.OnFailure,
    includeTraces: edr.IncludeTraces.None,
    fuzz: { runs: fuzzRuns, seed: '0x1' },
    invariant: { runs: invariantRuns, depth, failOnRevert: true, shrinkRunLimit: 0 },
  };
  return async (artifacts, suite) => {
    const wanted = artifacts.get(suite);
    if (wanted === undefined) throw new Error(`no such suite: ${suite}`);
    let result;
    const done = new Promise((resolve) => {
      result = resolve;
    });
    await context.runSolidityTests(
      edr.L1_CHAIN_TYPE,
      [...artifacts.values()],
      [wanted.id],
      config,
      { buildInfos: [], ignoreContracts: true },
      result,
    );
    const { testResults } = await done;
    if (testResults.length === 0) throw new Error(`${suite} has no tests`);
    return testResults.filter(({ status }) => status === 'Failure').map(({ name }) => name);
  };
}
