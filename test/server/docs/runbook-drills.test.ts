/** Every entry of the runbook is a drill: a test that exists does what it says. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

interface Drill {
  entry: string;
  file: string;
  title: string;
}

/** Rows of the table; a row may have several drills. */
function drillsOf(runbook: string): Drill[] {
  const [, table = ''] = runbook.split('\n## What is drilled\n');
  return [...table.matchAll(/^\| (.+?) \| (`.+) \|$/gm)].flatMap(([, entry, cell]) =>
    cell!.split(/; (?=`)/).map((drill) => {
      const [, file, title] = /^`(\S+)`: (.+)$/.exec(drill) ?? [];
      if (file === undefined || title === undefined) throw new Error(`no drill: ${drill}`);
      return { entry: entry!, file, title };
    }),
  );
}

/** Alerts that the file of cases lets fire. */
const fired = (
  parse(read('deploy/ops/alerts.test.yml')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
  }
).tests.flatMap(({ alert_rule_test: cases }) =>
  cases.filter(({ exp_alerts: expected = [] }) => expected.length > 0).map(({ alertname }) => alertname),
);

/** Whether a test of that title is in the file. */
function exists({ file, title }: Drill): boolean {
  if (file.endsWith('.yml')) return fired.includes(title);
  const source = read(file);
  return [`'${title.replaceAll("'", "\\'")}'`, `"${title}"`, `\`${title}\``].some((quoted) =>
    source.includes(`it(${quoted},`),
  );
}

/** Entries and acts without a drill. */
function missing(runbook: string, drills: readonly Drill[]): string[] {
  const entries = [...runbook.matchAll(/^## (.+)$/gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== 'What is drilled');
  return entries.filter((name) => !drills.some(({ entry }) => entry.startsWith(`[${name}](#`)));
}

describe('The runbook', () => {
  const runbook = read('docs/runbook.md');
  const drills = drillsOf(runbook);

  it('names a drill for each of its entries, and for what they ask an operator to do', () => {
    expect(missing(runbook, drills)).to.deep.equal([]);
    for (const act of [
      /halt and resume/,
      /reconcile/,
      /repair/,
      /key/,
      /another endpoint/,
      /restore/,
      /[Uu]pgrade and rollback/,
      /Ownership/,
    ])
      expect(
        drills.some(({ entry }) => act.test(entry)),
        `${act}`,
      ).to.equal(true);
    for (const kind of ['gateway', 'frozen process', 'any role'])
      expect(
        drills.some(({ entry }) => /[Ff]ailover/.test(entry) && entry.includes(kind)),
        kind,
      ).to.equal(true);
  });

  it('names tests that exist', () => {
    expect(drills.filter((drill) => !exists(drill))).to.deep.equal([]);
  });

  it('and an entry without a drill, or a drill without a test, is noticed', () => {
    expect(missing(`${runbook}\n## NewAlert\n`, drills)).to.deep.equal(['NewAlert']);
    const gone = { entry: 'x', file: 'test/e2e/kill.test.ts', title: 'loses no acknowledged order' };
    expect(exists(gone)).to.equal(false);
    expect(exists({ ...gone, file: 'deploy/ops/alerts.test.yml', title: 'NoSuchAlert' })).to.equal(false);
  });
});
