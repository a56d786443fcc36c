#!/usr/bin/env node
/** `npm run packages [-- <folder>]`: builds the npm packages and packs them into tarballs, in dist/packages/ unless a folder is named. */
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { browserHash } from './build-web.mjs';
import { projectRoot, say } from './console.mjs';
import { runOrExit } from './process.mjs';

const SDK = join(projectRoot, 'sdk');
const CONTRACTS = join(projectRoot, 'contracts-package');
const ENTRIES = ['index', 'stream', 'maker', 'taker', 'verify', 'viem', 'ethers'];

/**
 * Bundles entry points for browsers as modules: with `platform: browser` the build fails on imports of Node's own modules.
 * @param {string[]} entries names of the entry points
 * @param {Partial<import('esbuild').BuildOptions>} [options]
 */
export async function bundleSdk(entries = ENTRIES, options = {}) {
  const { build } = await import('esbuild');
  return build({
    entryPoints: entries.map((name) => join(SDK, 'src', `${name}.ts`)),
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    splitting: true,
    outdir: join(SDK, 'dist'),
    chunkNames: 'chunks/[name]-[hash]',
    plugins: [browserHash],
    logLevel: 'warning',
    ...options,
  });
}

/** @returns {Promise<string[]>} paths of the tarballs */
export async function packPackages(folder = join(projectRoot, 'dist', 'packages')) {
  const tsc = join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');
  mkdirSync(folder, { recursive: true });
  rmSync(join(SDK, 'dist'), { recursive: true, force: true });
  rmSync(join(CONTRACTS, 'dist'), { recursive: true, force: true });
  rmSync(join(CONTRACTS, 'interfaces'), { recursive: true, force: true });
  await bundleSdk();
  for (const place of [SDK, CONTRACTS]) await runOrExit(process.execPath, [tsc, '-p', place]);
  const interfaces = join(projectRoot, 'contracts', 'interfaces');
  mkdirSync(join(CONTRACTS, 'interfaces'), { recursive: true });
  for (const name of readdirSync(interfaces)) copyFileSync(join(interfaces, name), join(CONTRACTS, 'interfaces', name));
  const tarballs = [];
  for (const place of [SDK, CONTRACTS]) {
    const output = await runOrExit('npm', [
      'pack',
      place,
      '--silent',
      '--ignore-scripts',
      '--pack-destination',
      folder,
    ]);
    tarballs.push(join(folder, output.trim().split('\n').at(-1) ?? ''));
  }
  return tarballs;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const tarball of await packPackages(process.argv[2] === undefined ? undefined : resolve(process.argv[2])))
    say(tarball);
}
