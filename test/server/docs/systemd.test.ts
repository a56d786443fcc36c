/** The units for machines without containers: their command lines and settings exist, they are confined, and systemd takes them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { readCommandLine } from '../../../cli/arguments.js';
import { SERVE } from '../../../cli/commands/list.js';
import { settingsSchema } from '../../../cli/config.js';
import { EXIT_FAILED } from '../../../cli/exit-codes.js';
import { ROLE_NAMES } from '../../../ledger/roles.js';

const folder = fileURLToPath(new URL('../../../deploy/ops/systemd/', import.meta.url));
const units = readdirSync(folder).map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

/** All values of a key, in their order. */
const valuesOf = (text: string, key: string): string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value!);

/** What `serve` is told in a unit, for a role. */
const lineOf = (text: string, role: string) => {
  const [command = ''] = valuesOf(text, 'ExecStart');
  const [program, script, name, ...args] = command.replaceAll('%i', role).split(' ');
  expect([program, script, name]).to.deep.equal(['/usr/bin/node', '/opt/curvebook/scripts/curvebook.mjs', 'serve']);
  return readCommandLine(args, { name: 'serve', help: SERVE.help });
};

describe('The units of systemd', () => {
  it('run every role, all in one process or one in each, by a command line that the program takes', () => {
    expect(units.map(({ name }) => name)).to.deep.equal(['curvebook.service', 'curvebook@.service']);
    expect(lineOf(units[0]!.text, '').overrides).to.deep.equal({});
    for (const role of ROLE_NAMES) {
      const { ROLES } = lineOf(units[1]!.text, role).overrides;
      expect(settingsSchema.shape.ROLES.parse(ROLES)).to.deep.equal([role]);
    }
  });

  it('take their settings from what init wrote, those of a role after those of all', () => {
    expect(units.map(({ text }) => valuesOf(text, 'EnvironmentFile'))).to.deep.equal([
      ['/srv/curvebook/.env'],
      ['/srv/curvebook/.env', '-/srv/curvebook/%i.env'],
    ]);
  });

  it('start again what a restart helps, and not without end', () => {
    for (const { name, text } of units) {
      expect(valuesOf(text, 'Restart'), name).to.deep.equal(['on-failure']);
      expect(valuesOf(text, 'RestartPreventExitStatus'), name).to.deep.equal([`${EXIT_FAILED}`]);
      for (const limit of ['StartLimitBurst', 'StartLimitIntervalSec', 'TimeoutStopSec'])
        expect(valuesOf(text, limit).join(), `${name} ${limit}`).to.match(/^[1-9]\d*$/);
    }
  });

  it('gain no rights, and write to the folder of the deployment alone', () => {
    for (const { name, text } of units) {
      const confined = { NoNewPrivileges: 'true', ProtectSystem: 'strict', ProtectHome: 'true', PrivateTmp: 'true' };
      for (const [key, value] of Object.entries(confined))
        expect(valuesOf(text, key), `${name} ${key}`).to.deep.equal([value]);
      expect(valuesOf(text, 'ReadWritePaths'), name).to.deep.equal(['/srv/curvebook']);
      expect(valuesOf(text, 'CapabilityBoundingSet'), name).to.deep.equal(['']);
      expect(valuesOf(text, 'User'), name).to.deep.equal(['curvebook']);
    }
  });

  it('are taken by systemd without a complaint, where it is installed', function () {
    this.timeout(60_000);
    const isHere = spawnSync('systemd-analyze', ['--version']).status === 0;
    const copies = mkdtempSync(join(tmpdir(), 'curvebook-units-'));
    try {
      for (const { name, text } of units) {
        const complaints = (changed: string): string => {
          const path = join(copies, name.replace('@', '@watcher'));
          writeFileSync(path, changed.replace('/usr/bin/node', process.execPath));
          // It ends with 0 whatever it complains of.
          return spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' }).stderr;
        };
        if (!isHere) continue;
        const about = (text: string): string[] =>
          complaints(text)
            .split('\n')
            .filter((line) => line.includes(copies));
        expect(about(text), name).to.deep.equal([]);
        expect(about(text.replace('ProtectHome', 'ProtectHouse')), name).to.have.length(1);
      }
    } finally {
      rmSync(copies, { recursive: true });
    }
  });

  it('are described where operators look for them', () => {
    const guide = readFileSync(new URL('../../../docs/operators.md', import.meta.url), 'utf8');
    for (const { name } of units) expect(guide).to.include(`deploy/ops/systemd/${name}`);
  });
});
