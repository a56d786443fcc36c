import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What no plugin looks at. */
const BUILD = {
  force: false,
  buildProfile: 'default',
  isolated: false,
  concurrency: 1,
  quiet: true,
  cleanupArtifacts: true,
  scope: 'contracts',
} as const;

/** Content by path within the folder. */
function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

describe('The types of the contracts', () => {
  it('are the committed ones, in whatever order a build finds its artifacts', async () => {
    const outDir = mkdtempSync(join(tmpdir(), 'curvebook-types-'));
    try {
      // Mocha requires test files; what they require would be another Hardhat than the one that the configuration imports.
      const { createHardhatRuntimeEnvironment, importUserConfig } = await import('hardhat/hre');
      const config = await importUserConfig(join(ROOT, 'hardhat.config.ts'));
      const hre = await createHardhatRuntimeEnvironment({ ...config, typechain: { outDir } }, {}, ROOT);
      // Solidity tests leave artifacts of their own beside those of the contracts, as no build sees them.
      const contracts = join(ROOT, 'artifacts', 'contracts');
      const found = [...(await hre.artifacts.getAllArtifactPaths())].filter((path) => path.startsWith(contracts));
      const artifacts = found.sort().reverse();
      await hre.hooks.runSequentialHandlers('solidity', 'processArtifactsAfterSuccessfulBuild', [artifacts, [], BUILD]);
      expect(filesOf(outDir)).to.deep.equal(filesOf(join(ROOT, 'typechain-types')));
    } finally {
      rmSync(outDir, { recursive: true });
    }
  });
});
