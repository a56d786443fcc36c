/** The block by which operators take old posts out of the database: without a dump that is whole nothing is dropped. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'chai';
import { blocksOf } from '../../support/console/docs.js';

const [, section = ''] = readFileSync(new URL('../../../docs/operators.md', import.meta.url), 'utf8').split(
  '\n### Old posts out of the database\n',
);
const { code } = blocksOf(section.split('\n## ')[0]!)[0]!;
const TABLE = 'public.outbox_part_1_detached';
const SETTINGS = `DATABASE_URL='postgres://some%20one:p%40ss+word$@db.example:5433/led%20ger?schema=public'\n`;

describe('the commands that take old posts out of the database', function () {
  this.timeout(60_000);
  let folder: string;

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'curvebook-old-posts-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Which of PostgreSQL's programs ran, with their words and what they were told of the database. */
  function run(shell: string, { fails, settings }: { fails?: string; settings: string | null }) {
    if (settings !== null) writeFileSync(join(folder, '.env'), settings);
    writeFileSync(join(folder, 'calls'), '');
    writeFileSync(join(folder, 'curvebook'), '#!/bin/sh\n', { mode: 0o755 });
    for (const name of ['pg_dump', 'pg_restore', 'psql']) {
      const told = '$PGHOST|$PGPORT|$PGUSER|$PGPASSWORD|$PGDATABASE';
      const script = `#!/bin/sh\necho "${name} $* ${told}" >> calls\nexit ${name === fails ? 1 : 0}\n`;
      writeFileSync(join(folder, name), script, { mode: 0o755 });
    }
    const path = [folder, dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter);
    const { status } = spawnSync(shell, ['-c', code], { cwd: folder, env: { PATH: path } });
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n').filter(Boolean);
    return { status, calls };
  }

  it('find the database by .env, and drop the table only once the dump can be read', () => {
    const told = 'db.example|5433|some one|p@ss+word$|led ger';
    for (const shell of ['sh', 'bash']) {
      expect(run(shell, { settings: SETTINGS }), shell).to.deep.equal({
        status: 0,
        calls: [
          `pg_dump --format=custom --table=${TABLE} --file=outbox-1.dump ${told}`,
          `pg_restore --file=/dev/null outbox-1.dump ${told}`,
          `psql --command=drop table ${TABLE} ${told}`,
        ],
      });
      for (const [fails, ran] of [
        ['pg_dump', ['pg_dump']],
        ['pg_restore', ['pg_dump', 'pg_restore']],
      ] as const) {
        const { status, calls } = run(shell, { fails, settings: SETTINGS });
        expect(status, `${shell}: ${fails}`).to.equal(1);
        expect(calls.map((call) => call.split(' ')[0])).to.deep.equal(ran);
      }
    }
  });

  it('ask no database where .env names none', () => {
    for (const settings of [null, '', `DATABASE_URL='sqlite:/srv/curvebook/curvebook.sqlite'\n`]) {
      const { status, calls } = run('sh', { settings });
      expect(status, `${settings}`).to.not.equal(0);
      expect(calls, `${settings}`).to.deep.equal([]);
    }
  });
});
