/** All TypeScript as JavaScript that Node loads without a loader, for test runs that start many processes. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { placeOfSource } from '../build.mjs';
import { projectRoot } from '../console.mjs';

/** Folders that are skipped: they have no sources. */
const OTHERS = new Set(['artifacts', 'cache', 'coverage', 'dist', 'node_modules']);

/**
 * Writes every module into one new folder, with the same relative paths as the sources; `import.meta.url` of each is the place of its source.
 * @returns {Promise<{ folder: string, remove: () => void }>} the folder, within cache/
 */
export async function transpile() {
  const { build } = await import('esbuild');
  const cache = join(projectRoot, 'cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'js-'));
  await build({
    absWorkingDir: projectRoot,
    entryPoints: [
      'hardhat.config.ts',
      ...readdirSync(projectRoot, { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !OTHERS.has(entry.name))
        .flatMap(({ name }) => filesIn(name))
        .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts') && !file.includes('node_modules')),
    ],
    outdir: folder,
    outbase: projectRoot,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: 'inline',
    sourcesContent: false,
    plugins: [placeOfSource((file) => '../'.repeat(file.split('/').length + 1))],
    logLevel: 'warning',
  });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** All files of a folder. It does not use globSync of node:fs, which an older Node that only re-executes `npm test` does not have. */
function filesIn(folder) {
  return readdirSync(join(projectRoot, folder), { recursive: true }).map((file) => join(folder, file));
}
