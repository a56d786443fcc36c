import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import hardhatToolboxMochaEthers from '@nomicfoundation/hardhat-toolbox-mocha-ethers';
import hardhatUpgrades from '@openzeppelin/hardhat-upgrades';
import { defineConfig } from 'hardhat/config';
import type { HardhatPlugin } from 'hardhat/types/plugins';

const solcPath = createRequire(import.meta.url).resolve('solc/soljson.js');

const root = fileURLToPath(new URL('.', import.meta.url));
/** Coverage works on a marked copy of contracts and tests, and keeps its artifacts and types, which hold marked code, apart. */
const solidityRoot = join(root, process.env['SOLIDITY_ROOT'] ?? '');
const solidityTests = join(solidityRoot, 'test', 'solidity');

const compiler = {
  version: '0.8.37',
  path: solcPath,
  settings: {
    viaIR: true,
    evmVersion: 'prague',
    optimizer: { enabled: true, runs: 1_000_000 },
    metadata: { bytecodeHash: 'none' },
  },
};

/** Tests deploy contracts from their artifacts, so how they are compiled themselves only has to be fast. */
const testCompiler = {
  ...compiler,
  settings: { ...compiler.settings, viaIR: false, optimizer: { enabled: false } },
};

/** Tests of the arithmetic run it so often, within themselves, that optimizing it costs less than running it as it is. */
const arithmeticTestCompiler = {
  ...testCompiler,
  settings: { ...testCompiler.settings, optimizer: { enabled: true, runs: 200 } },
};
const ARITHMETIC = /[\\/](?:libraries|types)[\\/][^\\/]+\.t\.sol$/;

/** How thorough the Solidity tests are, by SOLIDITY_RUNS: runs of each property, runs and calls of each invariant. */
const SOLIDITY_RUNS = {
  quick: { fuzz: 256, invariant: 16, depth: 64 },
  most: { fuzz: 1_000, invariant: 128, depth: 64 },
  full: { fuzz: 10_000, invariant: 128, depth: 64 },
  deep: { fuzz: 50_000, invariant: 512, depth: 128 },
};
const runs = SOLIDITY_RUNS[(process.env['SOLIDITY_RUNS'] ?? 'quick') as keyof typeof SOLIDITY_RUNS];
if (runs === undefined) throw new Error(`SOLIDITY_RUNS must be one of ${Object.keys(SOLIDITY_RUNS).join(', ')}`);

/** Hardhat compiles together what shares one configuration object, and resolves each override to one of its own. */
const sharedTestCompiler: HardhatPlugin = {
  id: 'curvebook-test-compiler',
  hookHandlers: {
    config: async () => ({
      default: async () => ({
        resolveUserConfig: async (userConfig, resolveConfigurationVariable, next) => {
          const resolved = await next(userConfig, resolveConfigurationVariable);
          for (const { overrides } of Object.values(resolved.solidity.profiles)) {
            const shared = new Map<string, (typeof overrides)[string]>();
            for (const [source, own] of Object.entries(overrides)) {
              const key = JSON.stringify(own);
              overrides[source] = shared.get(key) ?? own;
              shared.set(key, overrides[source]);
            }
          }
          return resolved;
        },
      }),
    }),
  },
};

/**
 * TypeChain writes its lists in the order in which it gets the artifacts, which is the file system's and differs from build to build. This
 * plugin comes before it and gets the same array.
 */
const sortedArtifacts: HardhatPlugin = {
  id: 'curvebook-sorted-artifacts',
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        processArtifactsAfterSuccessfulBuild: async (_context, artifactPaths) => {
          (artifactPaths as string[]).sort();
        },
      }),
    }),
  },
};

const testSources = readdirSync(solidityTests, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
  .map((entry) => relative(root, join(entry.parentPath, entry.name)));

export default defineConfig({
  plugins: [sortedArtifacts, hardhatToolboxMochaEthers, hardhatUpgrades, sharedTestCompiler],
  solidity: {
    compilers: [compiler],
    overrides: Object.fromEntries(
      testSources.map((source) => [source, ARITHMETIC.test(source) ? arithmeticTestCompiler : testCompiler]),
    ),
  },
  paths: {
    sources: join(solidityRoot, 'contracts'),
    artifacts: join(solidityRoot, 'artifacts'),
    cache: join(solidityRoot, 'cache'),
    tests: { solidity: solidityTests },
  },
  coverage: { skipFiles: ['**/mocks/**'] },
  /** Every call of a test is a transaction of its own, so that transient storage and warm slots end with it. */
  test: {
    solidity: {
      isolate: true,
      fuzz: { runs: runs.fuzz },
      invariant: { runs: runs.invariant, depth: runs.depth, failOnRevert: true },
    },
  },
  typechain: { outDir: join(solidityRoot, 'typechain-types') },
  networks: {
    /** In-process chain of tests; the sandbox's chain is the same one behind HTTP. */
    default: { type: 'edr-simulated', chainType: 'generic', chainId: 8453, hardfork: 'prague' },
    node: {
      type: 'edr-simulated',
      chainType: 'generic',
      chainId: 8453,
      hardfork: 'prague',
      mining: { auto: false, interval: 2000 },
    },
  },
});
