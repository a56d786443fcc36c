/** The console and the docs in web/, bundled for browsers: files named by their contents, and the pages that name them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectRoot } from './console.mjs';

/**
 * Replaces the server's hash functions of core by those that browsers can run.
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
  const { outputFiles, metafile } = await bundleBrowser(output, [{ in: 'web/src/main.tsx', out: 'main' }]);
  let page = readFileSync(join(projectRoot, 'web', 'index.html'), 'utf8');
  for (const ending of ['.js', '.css']) {
    const entry = outputFiles.find(({ path }) => basename(path).startsWith('main-') && path.endsWith(ending));
    if (entry === undefined) throw new Error(`the console has no main${ending}`);
    page = page.replace(`/assets/main${ending}`, `/assets/${basename(entry.path)}`);
  }
  const html = { path: join(output, 'web', 'index.html'), contents: Buffer.from(page) };
  return { outputFiles: [...outputFiles, html], metafile };
}

/**
 * Files of the docs, which load nothing of the console's: `docs.json`, all pages by their paths, and what they load. Nothing is written here.
 * @param {string} output folder of the whole build
 * @returns {Promise<{ outputFiles: { path: string, contents: Uint8Array }[], metafile: { inputs: Record<string, unknown> } }>}
 */
export async function bundleDocs(output) {
  // Imported here, since its renderer is a package, and this file may be loaded before packages are installed.
  const { framed, readSite } = await import('./docs/site.mjs');
  const entries = ['site', 'api', 'exchange'];
  const { outputFiles, metafile } = await bundleBrowser(
    output,
    entries.map((name) => ({ in: `web/docs/${name}.ts`, out: `docs-${name}` })),
  );
  const remedies = readFileSync(join(projectRoot, SDK_ERRORS), 'utf8').matchAll(/^ {2}(\w+): '(.+)',$/gm);
  const site = readSite({ remedies: Object.fromEntries([...remedies].map(([, code, remedy]) => [code, remedy])) });
  /** Adds a file whose name contains the hash of its contents. */
  const asset = (name, ending, contents) => {
    const hash = createHash('sha256').update(contents).digest('hex').slice(0, 10);
    const path = join(output, 'web', 'assets', `${name}-${hash}.${ending}`);
    outputFiles.push({ path, contents });
    return `/assets/${basename(path)}`;
  };
  const swagger = (file) => readFileSync(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${file}`)));
  const built = (name, ending) => {
    const file = outputFiles.find(({ path }) => new RegExp(`/docs-${name}-\\w+\\.${ending}$`).test(path));
    if (file === undefined) throw new Error(`the docs have no ${name}.${ending}`);
    return `/assets/${basename(file.path)}`;
  };
  const pages = framed(site, {
    style: built('site', 'css'),
    script: built('site', 'js'),
    search: asset('docs-search', 'json', Buffer.from(JSON.stringify(site.search))),
    api: [
      asset('swagger-ui', 'css', swagger('swagger-ui.css')),
      asset('swagger-ui', 'js', swagger('swagger-ui-bundle.js')),
      built('api', 'js'),
    ],
    exchange: [built('exchange', 'js')],
  });
  const json = { path: join(output, 'web', 'docs.json'), contents: Buffer.from(JSON.stringify(pages)) };
  const renderers = ['errors', 'markdown', 'shell', 'site', 'stream'].map((name) => `scripts/docs/${name}.mjs`);
  const read = [...site.inputs, ...renderers, SDK_ERRORS].map((file) => [file, {}]);
  return {
    outputFiles: [...outputFiles, json],
    metafile: { inputs: { ...metafile.inputs, ...Object.fromEntries(read) } },
  };
}

/** The file that says what to do about each error code. */
const SDK_ERRORS = 'sdk/src/errors.ts';

/**
 * @param {string} output
 * @param {{ in: string, out: string }[]} entryPoints
 */
async function bundleBrowser(output, entryPoints) {
  const { build } = await import('esbuild');
  return build({
    absWorkingDir: projectRoot,
    entryPoints,
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
}
