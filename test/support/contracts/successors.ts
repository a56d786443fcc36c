/** Other versions of the contracts, to upgrade to. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import hardhatUpgrades from '@openzeppelin/hardhat-upgrades';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import project from '../../../hardhat.config.js';
import { readBuild } from '../../../deploy/build.js';
import type { Build } from '../../../deploy/build.js';
import { until } from '../stack.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SOURCES = 'test/fixtures/upgrades';

/** The least optimization with which all variables fit on the stack. */
const HASTY = {
  enabled: true,
  runs: 1,
  details: { yul: true, yulDetails: { stackAllocation: true, optimizerSteps: 'dhfoDgvulfn:' } },
};

const FOLDER = join(ROOT, 'cache', 'successors');
const PLACES = { artifacts: join(FOLDER, 'artifacts'), cache: join(FOLDER, 'cache') };
/** On a machine that runs other tests beside it. */
const COMPILE_TIMEOUT_MS = 200_000;

/** The contracts of test/fixtures/upgrades, compiled into a folder of their own. Of several processes of `npm test` the first one compiles. */
export async function buildSuccessors(): Promise<Build> {
  const run = process.env.TRANSPILED;
  if (run === undefined) await compile();
  else await once(join(run, 'successors'), compile);
  return readBuild({ ...PLACES, sources: SOURCES });
}

/** Does the work in the first process that asks, and waits for it in the others; fails in each of them if it fails. */
async function once(folder: string, work: () => Promise<void>): Promise<void> {
  const [ended, failed] = [join(folder, 'ended'), join(folder, 'failed')];
  if (mkdirSync(folder, { recursive: true }) === undefined) {
    await until('another process to compile', () => Promise.resolve(existsSync(ended)), COMPILE_TIMEOUT_MS);
    if (existsSync(failed)) throw new Error('another process could not compile them');
    return;
  }
  try {
    await work();
  } catch (error) {
    writeFileSync(failed, '');
    throw error;
  } finally {
    writeFileSync(ended, '');
  }
}

/** Compile time matters, their gas does not. What is compiled already stays. */
async function compile(): Promise<void> {
  const { compilers } = project.solidity as { compilers: { version: string; path: string }[] };
  const hre = await createHardhatRuntimeEnvironment(
    {
      plugins: [hardhatUpgrades],
      solidity: {
        version: compilers[0]!.version,
        path: compilers[0]!.path,
        settings: { viaIR: true, evmVersion: 'prague', optimizer: HASTY, metadata: { bytecodeHash: 'none' } },
      },
      paths: { ...PLACES, sources: join(ROOT, SOURCES) },
    },
    { config: join(ROOT, 'hardhat.config.ts') },
    ROOT,
  );
  await hre.tasks.getTask('build').run({ quiet: true, noTests: true });
}
