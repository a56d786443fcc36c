#!/usr/bin/env node
/**
 * `npm run build`: bundles the programs of the project into dist/, with source maps. Packages stay outside: some are native, and they are
 * installed wherever this runs. `npm start`, `curvebook`, `npm run deploy` and the tests build by themselves when a source changed, by its
 * content; with `--if-stale` this does nothing when none did.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundleDocs, bundleWeb } from './build-web.mjs';
import { projectRoot, say } from './console.mjs';

const OUTPUT = join(projectRoot, 'dist');
const STAMP = join(OUTPUT, '.inputs.json');
/** The source of each program, by its name: it becomes dist/<name>.js. */
const PROGRAMS = {
  'cli/main': 'cli/main.ts',
  'cli/sandbox': 'cli/sandbox.ts',
  'deploy/main': 'deploy/main.ts',
  'deploy/chain': 'deploy/sandbox/chain-main.ts',
  // The bots of `npm start`.
  'examples/maker': 'examples/maker.ts',
  'examples/taker': 'examples/taker.ts',
  'examples/gasless-taker': 'examples/gasless-taker.ts',
};
/** Files that determine the build besides the sources. */
const RECIPE = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'web/tsconfig.json',
  'web/index.html',
  'scripts/build.mjs',
  'scripts/build-web.mjs',
];
/** If sources change while they are bundled, they are bundled again, at most this often. */
const MAX_BUILDS = 3;
/** Folders from which old files are not removed: a process or a page that started from an older build may still load them. */
const OLD_ONES_STAY = ['chunks', join('web', 'assets')];
const KEEP_CHUNKS_MS = 24 * 3_600_000;

/**
 * Leaves dist/ in line with the sources, by their contents; takes some 50 ms when it is. Several processes may do so at once.
 * @param {{ force?: boolean }} [options] force: build even when no source changed
 * @returns {Promise<void>}
 */
export async function ensureBuilt({ force = false } = {}) {
  // An image has the bundle and no sources.
  if (!existsSync(join(projectRoot, PROGRAMS['cli/main']))) return;
  if (!force && isCurrent()) return;
  const startedMs = Date.now();
  const { files, inputs } = await bundleAll();
  // The stamp is removed first, so that a partial build, or one that another process is overwriting, is not taken for a complete one.
  rmSync(STAMP, { force: true });
  // Imported files are written before their importers, and the stamp last, so that no process starts from a partial build.
  const rank = ({ path }) => (OLD_ONES_STAY.some((folder) => path.startsWith(join(OUTPUT, folder))) ? 0 : 1);
  for (const { path, contents } of files.sort((a, b) => rank(a) - rank(b))) replaceFile(path, contents);
  removeOldChunks(new Set(files.map(({ path }) => path)));
  const outputs = Object.fromEntries(
    files.map(({ path, contents }) => [relative(projectRoot, path), hashOf(contents)]),
  );
  replaceFile(STAMP, JSON.stringify({ inputs, outputs }));
  say(`built dist/ in ${Date.now() - startedMs} ms`);
}

/**
 * Hands over to a program of dist/ in this very process, once it is in line with its sources.
 * @param {string} name e.g. `cli/main`
 * @returns {Promise<void>}
 */
export async function runBuilt(name) {
  await ensureBuilt();
  process.setSourceMapsEnabled(true);
  process.argv[1] = join(OUTPUT, `${name}.js`);
  await import(pathToFileURL(process.argv[1]).href);
}

/** Whether all files that dist/ was built from still have the same contents. */
function isCurrent() {
  if (!existsSync(STAMP)) return false;
  const { inputs, outputs } = JSON.parse(readFileSync(STAMP, 'utf8'));
  return Object.entries({ ...inputs, ...outputs }).every(([file, hash]) => contentHash(file) === hash);
}

/** Null for a file that is not there. */
function contentHash(file) {
  const path = join(projectRoot, file);
  return existsSync(path) ? hashOf(readFileSync(path)) : null;
}

function hashOf(contents) {
  return createHash('sha256').update(contents).digest('base64');
}

/** All bundles, and the contents' hash of each file that they were made of. Throws when files keep changing meanwhile. */
async function bundleAll() {
  for (let i = 0; i < MAX_BUILDS; i++) {
    const startedMs = Date.now();
    const builds = await Promise.all([bundle(), bundleWeb(OUTPUT), bundleDocs(OUTPUT)]);
    const sources = builds.flatMap(({ metafile }) => Object.keys(metafile.inputs));
    // Files of packages are left out: the lock file, which is in RECIPE, determines them.
    const names = [...RECIPE, ...sources.filter((file) => !file.includes('node_modules/'))];
    const inputs = Object.fromEntries(names.map((file) => [file, contentHash(file)]));
    const isSettled = names.every((file) => changedMs(file) < startedMs);
    if (isSettled) return { files: builds.flatMap(({ outputFiles }) => outputFiles), inputs };
  }
  throw new Error(`sources changed while they were built, ${MAX_BUILDS} times`);
}

/** When a file was last written; 0 for a file that does not exist. */
function changedMs(file) {
  return statSync(join(projectRoot, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

async function bundle() {
  const { build } = await import('esbuild');
  return build({
    absWorkingDir: projectRoot,
    entryPoints: Object.entries(PROGRAMS).map(([name, source]) => ({ in: source, out: name })),
    outdir: OUTPUT,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node22',
    packages: 'external',
    sourcemap: true,
    // Every file of the build is two folders below the project's root.
    plugins: [placeOfSource(() => '../../')],
    write: false,
    metafile: true,
    logLevel: 'warning',
  });
}

/**
 * A plugin of esbuild by which `import.meta.url` of a module stays the place of its source.
 * @param {(file: string) => string} rootFrom the way to the project's root from what becomes of a source file
 * @returns {import('esbuild').Plugin}
 */
export function placeOfSource(rootFrom) {
  return {
    name: 'place-of-source',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        if (!text.includes('import.meta.url')) return undefined;
        const file = relative(projectRoot, path).split(sep).join('/');
        const place = JSON.stringify(rootFrom(file) + file);
        return {
          contents: text.replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`),
          loader: 'ts',
        };
      });
    },
  };
}

/** Atomic: a concurrent reader gets the old file or the new one. */
function replaceFile(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  const written = `${path}.${process.pid}`;
  writeFileSync(written, contents);
  renameSync(written, path);
}

function removeOldChunks(current) {
  const kept = OLD_ONES_STAY.map((folder) => join(OUTPUT, folder));
  for (const folder of kept) mkdirSync(folder, { recursive: true });
  const paths = kept.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  for (const path of paths) {
    if (!current.has(path) && Date.now() - statSync(path).mtimeMs > KEEP_CHUNKS_MS) rmSync(path, { force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { ensureNode } = await import('./node-version.mjs');
  const { ensureInstalled } = await import('./install.mjs');
  await ensureNode();
  await ensureInstalled();
  await ensureBuilt({ force: !process.argv.includes('--if-stale') });
}
