/** An operator at a terminal: commands on the database of keepers that a test drives. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { writeManifest } from '../../../deploy/manifest.js';
import type { Db } from '../../../ledger/types.js';
import { readOperatorRows } from '../../../ledger/operator/operator-log.js';
import { custodyOf, type Custody } from '../custody.js';
import { locationOf } from '../db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../keeper-stack.js';
import { runCurvebook, type Ran } from './terminal.js';
import type { OpenTestDb } from '../db.js';

/** Within a `describe`: one chain for all tests, keepers and a folder of its own for each. */
export function operatorCommands(open: OpenTestDb) {
  let chain: ManualChain;
  let stack: KeeperStack;
  let custody: Custody;
  let folder: string;
  let common: string[];

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain();
  });

  after(() => chain?.close());

  beforeEach(async () => {
    await chain.reset();
    stack = await startKeepers(await open(), chain);
    custody = custodyOf(chain, stack);
    await custody.mined();
    folder = mkdtempSync(join(tmpdir(), 'curvebook-commands-'));
    writeManifest(join(folder, 'manifest.json'), chain.manifest);
    common = ['--manifest', join(folder, 'manifest.json'), '--database', urlOf(stack.db)];
  });

  function urlOf(db: Db): string {
    const { url, schema } = locationOf(db);
    return schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
  }

  afterEach(async () => {
    await stack.stop();
    rmSync(folder, { recursive: true });
  });

  const run = (args: readonly string[], answer?: string): Promise<Ran> => runCurvebook([...args, ...common], answer);

  /** Runs a command that succeeds, with `--json`, and returns its value; it is all there is on the output. */
  async function json<T>(...args: string[]): Promise<T> {
    const { code, output, errors } = await run([...args, '--json']);
    expect([code, errors], args.join(' ')).to.deep.equal([0, '']);
    return JSON.parse(output) as T;
  }

  async function expectRefused(args: readonly string[], reason: RegExp): Promise<void> {
    const before = await readOperatorRows(stack.db.knex, { after: 0, limit: 1_000 });
    const { code, output, errors } = await run(args);
    expect([code, output], args.join(' ')).to.deep.equal([1, '']);
    expect(errors, args.join(' ')).to.match(reason);
    expect(await readOperatorRows(stack.db.knex, { after: 0, limit: 1_000 }), 'nothing was done').to.deep.equal(before);
  }

  return {
    get chain() {
      return chain;
    },
    get stack() {
      return stack;
    },
    get custody() {
      return custody;
    },
    get folder() {
      return folder;
    },
    get common() {
      return common;
    },
    urlOf,
    run,
    json,
    expectRefused,
  };
}
