/** Compiles the contracts if their sources changed since the last time; otherwise Hardhat is not loaded. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot, withProgress } from './console.mjs';
import { runOrExit } from './process.mjs';

const stampPath = join(projectRoot, 'artifacts', '.curvebook-inputs');

/**
 * Leaves artifacts/ and typechain-types/ in line with contracts/, hardhat.config.ts, the locked compiler, and the locked packages that contracts import.
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
  const add = (name, contents) => hash.update(name).update('\0').update(contents).update('\0');
  const files = ['hardhat.config.ts', ...sources('contracts')].map((name) => ({
    name,
    text: readFileSync(join(projectRoot, name), 'utf8'),
  }));
  for (const { name, text } of files) add(name, text);
  for (const [name, locked] of lockedPackages(files.map(({ text }) => text))) add(name, locked);
  return hash.digest('hex');
}

/** Packages that take part in compiling contracts. */
const COMPILERS = /^node_modules\/(hardhat|solc|typechain|@nomicfoundation\/.+|@typechain\/.+)$/;
/** The package of an import statement that does not name a relative path. */
const IMPORTED = /from\s+["']((?:@[^/"']+\/)?[^./"'@][^/"']*)\//g;

/**
 * The packages that determine the compiled contracts, those that compile and those that contracts import, each with the hash of its contents.
 * @param {string[]} texts @returns {[string, string][]}
 */
function lockedPackages(texts) {
  const imported = new Set(
    texts.flatMap((text) => [...text.matchAll(IMPORTED)].map(([, name]) => `node_modules/${name}`)),
  );
  const { packages } = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([name]) => COMPILERS.test(name) || imported.has(name))
    .map(([name, { version, integrity }]) => [name, `${version} ${integrity}`]);
}

function sources(folder) {
  return readdirSync(join(projectRoot, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
    .sort();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await ensureCompiled({ force: true });
