/** The built program: always that of the sources, and quick to answer. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { COMMANDS } from '../../cli/commands/list.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAMS = [
  'cli/main.ts',
  'cli/sandbox.ts',
  'deploy/main.ts',
  'deploy/sandbox/chain-main.ts',
  ...['maker', 'taker', 'gasless-taker'].map((bot) => `examples/${bot}.ts`),
];
/** Tells on standard error what is asked for beside Node's own modules and files. */
const TELL_PACKAGES = `import { registerHooks } from 'node:module';
registerHooks({ resolve(specifier, context, next) {
  if (!/^(node|file|data):|^[./]/.test(specifier)) process.stderr.write(specifier + '\\n');
  return next(specifier, context);
} });`;

describe('The built program', function () {
  this.timeout(120_000);
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-build-'));
    cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(ROOT, name), join(folder, name));
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const path of PROGRAMS) write(path, 'export {};');
    write('web/src/main.tsx', `import './styles.css';\nexport {};`);
    write('web/src/styles.css', 'body { margin: 0 }');
    for (const name of ['site', 'api', 'exchange']) write(`web/docs/${name}.ts`, `import './docs.css';\nexport {};`);
    write('web/docs/docs.css', 'body { margin: 0 }');
    write('docs/guide.md', '# A guide\n\nWhat it says.\n');
    for (const name of ['openapi', 'asyncapi'])
      cpSync(join(ROOT, `docs/${name}.json`), join(folder, `docs/${name}.json`));
    write('sdk/src/errors.ts', 'export {};');
    write('web/index.html', '<link href="/assets/main.css"><script src="/assets/main.js"></script>');
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  function write(path: string, text: string): void {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  }

  const curvebook = (): string =>
    execFileSync(process.execPath, ['scripts/curvebook.mjs'], { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
  const builtMs = (): number => statSync(join(folder, 'dist', '.inputs.json')).mtimeMs;

  it('is built again when a source changed, by its content, and only then', () => {
    write('core/word.ts', `export const word = 'one';`);
    write('cli/main.ts', `import { word } from '../core/word.js';\nconsole.log(word);`);
    expect(curvebook()).to.equal('one');
    const firstMs = builtMs();
    write('core/word.ts', `export const word = 'one';`);
    expect(curvebook()).to.equal('one');
    expect(builtMs()).to.equal(firstMs);
    write('core/word.ts', `export const word = 'two';`);
    expect(curvebook()).to.equal('two');
    const program = join(folder, 'dist', 'cli', 'main.js');
    writeFileSync(program, `console.log('something else');`);
    expect(curvebook(), 'a build that was written over').to.equal('two');
    rmSync(join(folder, 'core', 'word.ts'));
    expect(curvebook).to.throw(/Could not resolve/);
  });

  // In one word it would become the place of this file here, too.
  it('knows its place as its sources do, and names their lines', () => {
    write(
      'core/place.ts',
      `export const place = import.meta.${'url'};\n\nexport const fail = () => { throw new Error('here'); };`,
    );
    write('cli/main.ts', `const { fail, place } = await import('../core/place.js');\nconsole.log(place);\nfail();`);
    const { stdout, stderr } = spawnSync(process.execPath, ['scripts/curvebook.mjs'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stdout.trim()).to.equal(pathToFileURL(join(folder, 'core', 'place.ts')).href);
    expect(stderr).to.include('core/place.ts:3:');
  });

  it('imports no package to tell its version and its help', () => {
    const hook = join(folder, 'tell.mjs');
    writeFileSync(hook, TELL_PACKAGES);
    const start = (program: string, ...args: string[]) =>
      spawnSync(process.execPath, ['--import', hook, program, ...args], { cwd: ROOT, encoding: 'utf8' });
    const run = (...args: string[]) => start('scripts/curvebook.mjs', ...args);
    run('--version');
    const asked = [
      ['--version'],
      ['help'],
      ['serve', '--help'],
      ...Object.keys(COMMANDS).map((name) => ['help', name]),
    ];
    for (const args of asked) {
      const { status, stdout, stderr } = run(...args);
      expect([status, stderr], args.join(' ')).to.deep.equal([0, '']);
      expect(stdout).to.match(/^curvebook /);
    }
    expect(run('status').stderr, 'what a command needs').to.match(/^knex$/m);
    const deploy = (...args: string[]) => start('scripts/deploy.mjs', ...args);
    const help = deploy('--help');
    expect([help.status, help.stderr], 'deploy --help').to.deep.equal([0, '']);
    expect(help.stdout).to.include('npm run deploy -- ');
    expect(deploy('status').stderr, 'what a deployment command needs').to.match(/^ethers/m);
  });

  it('is what the container runs, and is built with its image', () => {
    const recipe = readFileSync(join(ROOT, 'deploy', 'ops', 'Dockerfile'), 'utf8');
    expect(recipe).to.match(/^RUN .*node scripts\/build\.mjs$/m);
    expect(readFileSync(join(ROOT, 'scripts', 'container.mjs'), 'utf8')).to.include(`import('./curvebook.mjs')`);
  });
});
