import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type * as Packages from '../../scripts/packages.mjs';
import { accountOf, startStack } from '../support/stack.js';
import type { Stack } from '../support/stack.js';

// A program of the repository, where it stands: tests may run from a copy of their own.
const { bundleSdk, packPackages } = (await import(
  new URL('../../scripts/packages.mjs', import.meta.url).href
)) as typeof Packages;

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
/** Of everything in the browser half together, minified, without peers. */
const MAX_GZIPPED_BYTES = 60_000;

describe('The npm packages', function () {
  this.timeout(300_000);
  let folder: string;
  let tarballs: string[];
  let stack: Stack | null = null;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-packages-'));
    tarballs = await packPackages(folder);
    stack = await startStack({
      databaseUrl: `sqlite:${join(folder, 'curvebook.sqlite')}`,
      env: { CHECKPOINT_INTERVAL_SEC: '1', SMALL_CHANGE_INTERVAL_MS: '0' },
    });
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
  });
  after(async () => {
    await stack?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A new project with the two packages, installed without a network. */
  async function emptyProject(name: string): Promise<string> {
    const project = join(folder, name);
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
    const offline = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps'];
    await run('npm', ['install', ...offline, ...tarballs], { cwd: project });
    return project;
  }

  for (const library of ['ethers', 'viem'] as const) {
    it(`install in an empty project and trade there, with ${library}`, async () => {
      if (stack === null) throw new Error('no stack');
      const project = await emptyProject(library);
      symlinkSync(join(root, 'node_modules', library), join(project, 'node_modules', library));
      expect(existsSync(join(project, 'node_modules/@curvebook/contracts/interfaces/IEntrypoint.sol'))).to.equal(true);
      copyFileSync(join(root, 'test/support/children/sdk-consumer.mjs'), join(project, 'main.mjs'));
      const args = ['main.mjs', library, stack.manifest.serverUrl, stack.manifestPath];
      const { stdout } = await run(process.execPath, args, { cwd: project, timeout: 240_000 }).catch(
        (error: unknown) => {
          const { stderr = '', stdout: said = '' } = error as { stderr?: string; stdout?: string };
          throw new Error(`${said}\n${stderr}`);
        },
      );
      expect(JSON.parse(stdout)).to.have.property('library', library);
    });
  }

  it('have types that a strict project accepts', async () => {
    const project = await emptyProject('typed');
    writeFileSync(
      join(project, 'typed.ts'),
      `import { createReadClient, type Schemas } from '@curvebook/sdk';
import { createStream } from '@curvebook/sdk/stream';
import { entrypointAbi } from '@curvebook/contracts';
const client = createReadClient('http://127.0.0.1:1');
export const fees: Promise<string[]> = client.fills('A-B').then((fills) => fills.map((fill: Schemas['Fill']) => fill.fee.amount));
createStream('http://127.0.0.1:1').subscribe({ type: 'fills', pair: 'A-B' }, ({ fills }) => fills[0]?.fill_seq.toFixed());
export const first: string = entrypointAbi[0].type;
// @ts-expect-error a fill has no such field
export const none = client.fills('A-B').then((fills) => fills[0]?.nothing);
`,
    );
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const compilerOptions = {
      ...{ noEmit: true, strict: true, module: 'nodenext', target: 'es2022', lib: ['es2024', 'dom'], types: [] },
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
    await run(process.execPath, [tsc, '-p', project]).catch((error: unknown) => {
      throw new Error((error as { stdout?: string }).stdout ?? String(error));
    });
  });

  it('are small in a browser, hold nothing of Node, and let go of what is not used', async () => {
    const all = ['index', 'stream', 'maker', 'taker', 'verify', 'viem', 'ethers'];
    const sizeOf = async (names: string[]): Promise<number> => {
      const contents = names.map((name) => `export * as ${name} from './src/${name}.js';`).join('\n');
      const stdin = { contents, resolveDir: join(root, 'sdk'), loader: 'ts' as const };
      const built = await bundleSdk([], {
        entryPoints: undefined,
        stdin,
        splitting: false,
        write: false,
        minify: true,
      });
      const code = built.outputFiles?.[0]?.contents ?? new Uint8Array();
      const text = Buffer.from(code).toString();
      expect(text, names.join()).to.not.match(/\bBuffer\.|\bprocess\.|require\(|WebAssembly|\beval\(|new Function/);
      return gzipSync(code, { level: 9 }).length;
    };
    const whole = await sizeOf(all);
    expect(whole).to.be.below(MAX_GZIPPED_BYTES);
    expect(await sizeOf(['index'])).to.be.below(whole / 4);
    expect(await sizeOf(['stream'])).to.be.below(whole / 3);
    console.log(`      ${whole} bytes gzipped in all`);
  });

  it('are of the version of the project', () => {
    const versionOf = (path: string): string =>
      (JSON.parse(readFileSync(join(root, path), 'utf8')) as { version: string }).version;
    for (const path of ['sdk/package.json', 'contracts-package/package.json']) {
      expect(versionOf(path), path).to.equal(versionOf('package.json'));
    }
  });
});
