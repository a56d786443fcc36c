import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { documentedTables, gasTables } from '../../bench/gas/doc.js';
import { readSnapshot } from '../../bench/gas/snapshot.js';
import { readBuild } from '../../deploy/build.js';
import { SNAPSHOT_CONTRACTS, SNAPSHOT_FOLDER, contractSnapshot, idOf } from '../../deploy/checks/snapshots.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const build = readBuild();

describe('what is written about the contracts', () => {
  for (const name of SNAPSHOT_CONTRACTS) {
    it(`${name} has the storage and the interface of its snapshot; else npm run snapshots`, () => {
      const committed = readFileSync(join(root, SNAPSHOT_FOLDER, `${name}.txt`), 'utf8');
      expect(contractSnapshot(build, name)).to.equal(committed);
    });
  }

  /** Every `id signature` that the contracts have, and those in the rows of docs/contracts.md. */
  const documented = (type: 'error' | 'event') => {
    const fragments = SNAPSHOT_CONTRACTS.flatMap((name) => build.contract(name).interface.fragments);
    const real = fragments.filter((one) => one.type === type).map((one) => `${idOf(one)} ${one.format('sighash')}`);
    const doc = readFileSync(join(root, 'docs', 'contracts.md'), 'utf8');
    const row =
      type === 'error'
        ? /^\| `(?<id>0x[0-9a-f]{8})` \| `(?<signature>\w+\(.*?\))`/gm
        : /^\| `(?<signature>\w+\(.*?\))` .*\| `(?<id>0x[0-9a-f]{64})` \|$/gm;
    const rows = [...doc.matchAll(row)].map(({ groups }) => `${groups!['id']} ${groups!['signature']}`);
    return { real: [...new Set(real)].sort(), rows: rows.sort() };
  };

  for (const type of ['error', 'event'] as const) {
    it(`docs/contracts.md has a row for each ${type}, with its id, and no other`, () => {
      const { real, rows } = documented(type);
      expect(real.length).to.be.greaterThan(20);
      expect(rows).to.deep.equal(real);
    });
  }

  it('docs/contracts.md has the gas of the snapshot; else npm run bench:gas -- --write', () => {
    expect(documentedTables()).to.equal(gasTables(readSnapshot()));
  });

  it('every error, event and function of the interfaces says what it means', () => {
    const folder = join(root, 'contracts', 'interfaces');
    const bare: string[] = [];
    for (const file of readdirSync(folder).filter((name) => name !== 'IPermit2.sol')) {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n');
      for (const [i, line] of lines.entries()) {
        const declared = /^ {4}(error|event|function) (\w+)/.exec(line);
        if (declared !== null && !lines[i - 1]!.trim().startsWith('///')) bare.push(`${file}: ${declared[2]}`);
      }
    }
    expect(bare).to.deep.equal([]);
  });
});
