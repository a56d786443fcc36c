/** The console in web/, bundled for browsers: files named by their contents, and the page that names them. */
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { projectRoot } from './console.mjs';

/**
 * What core hashes with on a server is exchanged for what browsers can.
 * @type {import('esbuild').Plugin}
 */
export const browserHash = {
  name: 'browser-hash',
  setup(build) {
    const core = join(projectRoot, 'core', 'hash.ts');
    build.onResolve({ filter: /\/hash\.js$/ }, ({ path, resolveDir }) =>
      resolve(resolveDir, path.replace(/\.js$/, '.ts')) === core
        ? { path: join(projectRoot, 'sdk', 'src', 'hash.ts') }
        : undefined,
    );
  },
};

/**
 * Files of the console, below `web/` of the output; nothing is written here.
 * @param {string} output folder of the whole build
 * @returns {Promise<{ outputFiles: { path: string, contents: Uint8Array }[], metafile: import('esbuild').Metafile }>}
 */
export async function bundleWeb(output) {
  const { build } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    absWorkingDir: projectRoot,
    entryPoints: [{ in: 'web/src/main.tsx', out: 'main' }],
    outdir: join(output, 'web', 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    minify: true,
    legalComments: 'none',
    plugins: [browserHash],
    define: { 'process.env.NODE_ENV': '"production"' },
    write: false,
    metafile: true,
    logLevel: 'warning',
  });
  let page = readFileSync(join(projectRoot, 'web', 'index.html'), 'utf8');
  for (const ending of ['.js', '.css']) {
    const entry = outputFiles.find(({ path }) => basename(path).startsWith('main-') && path.endsWith(ending));
    if (entry === undefined) throw new Error(`the console has no main${ending}`);
    page = page.replace(`/assets/main${ending}`, `/assets/${basename(entry.path)}`);
  }
  const html = { path: join(output, 'web', 'index.html'), contents: Buffer.from(page) };
  return { outputFiles: [...outputFiles, html], metafile };
}
