import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const captures = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1]!);

describe('what engineers read', () => {
  const architecture = read('docs/architecture.md');
  const [terms = '', retired = ''] = read('docs/glossary.md').split('## Retired words');

  it('names files and folders that exist', () => {
    const paths = captures(architecture + terms, /`((?:[\w-]+\/)+(?:[\w-]+(?:\.test)?\.(?:ts|mjs|sol))?)`/g);
    const fromRoot = paths.filter((path) => existsSync(join(root, path.split('/')[0]!)));
    expect(fromRoot.length).to.be.greaterThan(100);
    expect(fromRoot.filter((path) => !existsSync(join(root, path)))).to.deep.equal([]);
  });

  it('has folders that one can look over: at most 25 files at the top of any', () => {
    const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
    const folders = Map.groupBy(files, (path) => dirname(path));
    expect(folders.size).to.be.greaterThan(100);
    const full = [...folders].filter(([, own]) => own.length > 25).map(([folder, own]) => `${folder}: ${own.length}`);
    expect(full).to.deep.equal([]);
  });

  it('maps every table to one log', () => {
    const [, map = ''] = architecture.split('## Logs, tables, readers');
    const rows = map
      .split('\n## ')[0]!
      .split('\n')
      .filter((line) => line.startsWith('| ') && line.includes('`'));
    const listed = rows.flatMap((row) => captures(row.split('|')[3]!, /`(\w+)`/g));
    const folder = join(root, 'ledger/migrations');
    const steps = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const dropped = new Set(steps.flatMap((step) => captures(step, /dropTable\('(\w+)'/g)));
    const created = steps
      .flatMap((step) => captures(step, /createTable\('(\w+)'/g))
      .filter((name) => !dropped.has(name));
    expect(new Set(listed).size, 'each once').to.equal(listed.length);
    expect(listed).to.include.members(created);
  });

  it('explains terms that are used where it says', () => {
    const rows = [...terms.matchAll(/^\| (.+?) \| .+? \| `([^`]+)` \|$/gm)];
    expect(rows.length).to.be.greaterThan(50);
    for (const [, names = '', path = ''] of rows) {
      const text = read(path).toLowerCase().replace(/[_-]/g, ' ');
      for (const name of names.replaceAll('`', '').toLowerCase().split(', '))
        expect(text.includes(name) || text.includes(name.replaceAll(' ', '')), `${path} says ${name}`).to.equal(true);
    }
  });

  it('keeps to them: no retired word is in use', () => {
    const words = captures(retired, /^\| (.+?) \|/gm).filter((word) => word !== 'word' && !/^-+$/.test(word));
    expect(words).to.include('fold');
    const files = execFileSync('git', ['ls-files', '*.ts', '*.md'], { cwd: root, encoding: 'utf8' }).split('\n');
    const ours = files.filter(
      (path) =>
        path !== '' &&
        !/^(docs\/glossary\.md|test\/server\/docs\/engineer-docs|typechain-types|examples\/api)/.test(path),
    );
    const pattern = new RegExp(`(?<![\\w-])(?:${words.join('|')})(?![\\w-])`, 'i');
    const found = ours
      .filter((path) => existsSync(join(root, path)))
      .flatMap((path) => {
        const at = read(path)
          .split('\n')
          .findIndex((line) => pattern.test(line));
        return at === -1 ? [] : [`${path}:${at + 1}`];
      });
    expect(found).to.deep.equal([]);
  });
});
