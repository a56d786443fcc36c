/** Compiles the contracts when their sources changed since the last time, without loading Hardhat otherwise. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot, withProgress } from './console.mjs';
import { runOrExit } from './process.mjs';

const stampPath = join(projectRoot, 'artifacts', '.curvebook-inputs');

/**
 * Leaves artifacts/ and typechain-types/ in line with contracts/, hardhat.config.ts and the locked compiler.
 * @param {{ force?: boolean }} [options] force: ask Hardhat even when no input changed
 * @returns {Promise<void>}
 */
export async function ensureCompiled({ force = false } = {}) {
  const wanted = inputsHash();
  if (!force && existsSync(stampPath) && readFileSync(stampPath, 'utf8') === wanted) return;
  const hardhat = join(projectRoot, 'node_modules', 'hardhat', 'dist', 'src', 'cli.js');
  await withProgress('compiling contracts', () => runOrExit(process.execPath, [hardhat, 'build', '--no-tests']));
  mkdirSync(join(projectRoot, 'artifacts'), { recursive: true });
  writeFileSync(stampPath, wanted);
}

function inputsHash() {
  const hash = createHash('sha256');
  const files = ['hardhat.config.ts', 'package-lock.json', ...sources('contracts')];
  for (const file of files)
    hash
      .update(file)
      .update('\0')
      .update(readFileSync(join(projectRoot, file)))
      .update('\0');
  return hash.digest('hex');
}

function sources(folder) {
  return readdirSync(join(projectRoot, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
    .sort();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await ensureCompiled({ force: true });
