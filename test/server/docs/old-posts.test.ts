/** The blocks by which operators take old posts out of the database: without a dump that is whole nothing is dropped, and no dump is lost. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { blocksOf } from '../../support/console/docs.js';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const [, section = ''] = read('docs/operators.md').split('\n### Old posts out of the database\n');
const [detaching, dumping, composed, composedDumping] = blocksOf(section.split('\n## ')[0]!).map(({ code }) => code);
const TABLE = 'public.outbox_part_1_detached';
const SETTINGS = `DATABASE_URL='postgres://some%20one:p%40ss+word$@db.example:5433/led%20ger?schema=public'\n`;
const DUMP = 'outbox-1.dump';
const COMPOSE = 'compose --env-file .env --file deploy/ops/compose.yaml --profile roles exec';

/** What each program writes down of its call, and what it does then; docker does what the program would that it is given. */
const PROGRAMS = {
  curvebook: '',
  pg_dump: 'for word; do case $word in --file=*) echo posts >"${word#--file=}" ;; esac; done',
  pg_restore: 'grep --quiet posts "$2"',
  psql: '',
  sync: '',
  docker: 'case $* in *pg_dump*) echo posts ;; *pg_restore*) grep --quiet posts ;; esac',
};

describe('the commands that take old posts out of the database', function () {
  this.timeout(60_000);
  let folder: string;

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'curvebook-old-posts-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Which programs ran, with their words and what they were told of the database. One fails whose call has `fails` in it, after its work. */
  function run(
    shell: string,
    code: string,
    { fails, settings = SETTINGS }: { fails?: string; settings?: string | null },
  ) {
    if (settings !== null) writeFileSync(join(folder, '.env'), settings);
    writeFileSync(join(folder, 'calls'), '');
    for (const [name, work] of Object.entries(PROGRAMS)) {
      const told = '${PGHOST+ $PGHOST|$PGPORT|$PGUSER|$PGPASSWORD|$PGDATABASE}';
      const fail = fails === undefined ? '' : `case "${name} $*" in *'${fails}'*) exit 1 ;; esac`;
      const script = `#!/bin/sh\necho "${name} $*${told}" >>calls\n${work}\nstatus=$?\n${fail}\nexit $status\n`;
      writeFileSync(join(folder, name), script, { mode: 0o755 });
    }
    const path = [folder, dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter);
    const { status, stderr } = spawnSync(shell, ['-c', code], { cwd: folder, env: { PATH: path }, encoding: 'utf8' });
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n').filter(Boolean);
    return { status, calls, stderr };
  }
  const dump = (): string | null => (existsSync(join(folder, DUMP)) ? readFileSync(join(folder, DUMP), 'utf8') : null);

  /** The blocks after which the table is gone: on a host, and in containers. */
  const told = ' db.example|5433|some one|p@ss+word$|led ger';
  const inDatabase = `docker ${COMPOSE} -T database`;
  const WAYS = [
    {
      name: 'on the host',
      code: dumping!,
      calls: [
        `pg_dump --format=custom --table=${TABLE} --file=outbox-1.partial${told}`,
        `pg_restore --file=/dev/null outbox-1.partial${told}`,
        `sync ${DUMP} .${told}`,
        `psql --command=drop table ${TABLE}${told}`,
      ],
    },
    {
      name: 'in containers',
      code: `${composed!.split('\n').slice(0, -2).join('\n')}\n${composedDumping!}`,
      calls: [
        `${inDatabase} pg_dump --username=curvebook --format=custom --table=${TABLE}`,
        `${inDatabase} pg_restore --file=/dev/null`,
        `sync ${DUMP} .`,
        `${inDatabase} psql --username=curvebook --command=drop table ${TABLE}`,
      ],
    },
  ];

  for (const { name, code, calls } of WAYS)
    describe(name, () => {
      it('drop the table only once the dump can be read', () => {
        for (const shell of ['sh', 'bash']) {
          for (const [fails, count] of [
            ['pg_dump', 1],
            ['pg_restore', 2],
          ] as const) {
            const failed = run(shell, code, { fails });
            expect(failed.status, `${shell}: ${fails}`).to.equal(1);
            expect(failed.calls).to.deep.equal(calls.slice(0, count));
            expect(dump(), 'what is there under its name can be read').to.equal(null);
          }
          expect(run(shell, code, {}), shell)
            .to.include({ status: 0 })
            .and.to.have.deep.property('calls', calls);
          expect(dump()).to.equal('posts\n');
          rmSync(join(folder, DUMP));
        }
      });

      it('leave a dump that is there as it is, and drop nothing then', () => {
        writeFileSync(join(folder, DUMP), 'the only copy');
        for (const shell of ['sh', 'bash']) {
          const { status, calls: made, stderr } = run(shell, code, {});
          expect([status, made, dump()], shell).to.deep.equal([1, [], 'the only copy']);
          expect(stderr).to.contain(`${DUMP} is there already`);
        }
      });
    });

  it('ask no database where .env names none', () => {
    for (const settings of [null, '', `DATABASE_URL='sqlite:/srv/curvebook/curvebook.sqlite'\n`]) {
      const { status, calls } = run('sh', dumping!, { settings });
      expect(status, `${settings}`).to.not.equal(0);
      expect(calls, `${settings}`).to.deep.equal([]);
    }
  });

  it('detach nothing when a step before it failed', () => {
    const [host, containers] = [
      'curvebook partitions',
      `docker ${COMPOSE} watcher node scripts/curvebook.mjs partitions`,
    ];
    for (const [code, command, end] of [
      [detaching!, host, ' --env .env'],
      [composed!, containers, ''],
    ] as const) {
      const calls = ['cut', 'list', 'detach 1'].map((verb) => `${command} ${verb}${end}`);
      expect(run('sh', code, {}).calls).to.deep.equal(calls);
      for (const [i, verb] of ['cut', 'list', 'detach'].entries()) {
        const failed = run('sh', code, { fails: `partitions ${verb}` });
        expect([failed.status, failed.calls]).to.deep.equal([1, calls.slice(0, i + 1)]);
      }
    }
  });

  it('name services of the compose file, by their profile', () => {
    const { services } = parse(read('deploy/ops/compose.yaml'), { merge: true }) as {
      services: Record<string, { profiles: string[] }>;
    };
    for (const [service, profile] of [
      ['watcher', 'roles'],
      ['database', 'roles'],
      ['watcher1', 'scaled'],
      ['primary', 'scaled'],
    ] as const)
      expect([service, services[service]?.profiles]).to.deep.equal([service, [profile]]);
  });
});
