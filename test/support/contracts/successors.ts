/** Other versions of the contracts, to upgrade to. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import hardhatUpgrades from '@openzeppelin/hardhat-upgrades';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import project from '../../../hardhat.config.js';
import { readBuild } from '../../../deploy/build.js';
import type { Build } from '../../../deploy/build.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SOURCES = 'test/fixtures/upgrades';

/** The least optimization with which all variables fit on the stack. */
const HASTY = {
  enabled: true,
  runs: 1,
  details: { yul: true, yulDetails: { stackAllocation: true, optimizerSteps: 'dhfoDgvulfn:' } },
};

/** Compiles the contracts of test/fixtures/upgrades into a folder of their own, unless that is done. Compile time matters, their gas does not. */
export async function buildSuccessors(): Promise<Build> {
  const folder = join(ROOT, 'cache', 'successors');
  const places = { artifacts: join(folder, 'artifacts'), cache: join(folder, 'cache') };
  const { compilers } = project.solidity as { compilers: { version: string; path: string }[] };
  const hre = await createHardhatRuntimeEnvironment(
    {
      plugins: [hardhatUpgrades],
      solidity: {
        version: compilers[0]!.version,
        path: compilers[0]!.path,
        settings: { viaIR: true, evmVersion: 'prague', optimizer: HASTY, metadata: { bytecodeHash: 'none' } },
      },
      paths: { ...places, sources: join(ROOT, SOURCES) },
    },
    { config: join(ROOT, 'hardhat.config.ts') },
    ROOT,
  );
  await hre.tasks.getTask('build').run({ quiet: true, noTests: true });
  return readBuild({ ...places, sources: SOURCES });
}
