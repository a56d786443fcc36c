import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import hardhatToolboxMochaEthers from '@nomicfoundation/hardhat-toolbox-mocha-ethers';
import hardhatUpgrades from '@openzeppelin/hardhat-upgrades';
import { defineConfig } from 'hardhat/config';

const solcPath = createRequire(import.meta.url).resolve('solc/soljson.js');

export default defineConfig({
  plugins: [hardhatToolboxMochaEthers, hardhatUpgrades],
  solidity: {
    version: '0.8.37',
    path: solcPath,
    settings: {
      viaIR: true,
      evmVersion: 'prague',
      optimizer: { enabled: true, runs: 1_000_000 },
      metadata: { bytecodeHash: 'none' },
    },
  },
  paths: {
    sources: fileURLToPath(new URL('./contracts', import.meta.url)),
    tests: { solidity: fileURLToPath(new URL('./test/solidity', import.meta.url)) },
  },
  /** Every call of a test is a transaction of its own, so that transient storage and warm slots end with it. */
  test: { solidity: { isolate: true, fuzz: { runs: 256 } } },
  typechain: { outDir: './typechain-types' },
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
