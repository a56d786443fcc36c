/** `curvebook partitions`: old posts leave a PostgreSQL database at once, and nothing that is served or verified changes. */
import { join } from 'node:path';
import { expect } from 'chai';
import { readOperatorRows } from '../../../ledger/operator/operator-log.js';
import { readPublicationStates } from '../../../ledger/publications/publication-states.js';
import { lastFinishedNonce, lastNonce, readUnmined } from '../../../ledger/transactions/outbox.js';
import { cutOutbox, detachPartition, readPartitions } from '../../../ledger/transactions/outbox-partitions.js';
import type { Stored } from '../../../ledger/db/tables.js';
import { locationOf } from '../../support/db.js';
import { DAY_MS, forEachOutbox } from '../../support/databases/partitions-suite.js';

forEachOutbox((name, suite) => {
  const { run, post, posts, mineUntilFinal, age, stored } = suite;

  if (name === 'SQLite') {
    it('are of PostgreSQL alone', async () => {
      for (const args of [['list'], ['cut'], ['detach', '1', '--yes'], ['attach', '1', '--yes']])
        expect((await run('partitions', ...args)).errors, args.join(' ')).to.match(/NOT_POSTGRESQL|only a PostgreSQL/);
    });
    return;
  }

  /** What the logs say of posts and signers, and what follows from all of them. */
  async function answers(): Promise<unknown> {
    const signer = suite.chain.address('poster');
    const range = { market: 0, afterSeq: 0, limit: 1_000, headSec: 0 };
    const states = (await readPublicationStates(suite.db.knex, range)).map(({ state }) => state);
    const verified = await run('verify', '--json', '--rpc', suite.chain.rpcUrl);
    expect(verified.code, verified.errors).to.equal(0);
    return {
      states,
      last: [await lastNonce(suite.db.knex, signer), await lastFinishedNonce(suite.db.knex, signer)],
      unmined: await readUnmined(suite.db.knex),
      costs: await suite.db.knex('post_costs').orderBy('nonce').select(),
      verified: JSON.parse(verified.output) as unknown,
    };
  }

  it('are cut, detached, dropped and put back while posts go on, as the runbook says', async () => {
    await posts(6);
    await age();
    expect(await run('partitions', 'list')).to.deep.include({ code: 0, output: 'the outbox is not divided\n' });
    const indexes = (): Promise<{ indexname: string }[]> =>
      suite.db
        .knex('pg_indexes')
        .whereRaw('schemaname = current_schema()')
        .where({ tablename: 'outbox' })
        .orderBy('indexname')
        .select('indexname');
    const before = { rows: await stored(), indexes: await indexes() };
    // A cut of three days ago has ended since.
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    expect(await stored()).to.deep.equal(before.rows);
    expect(await indexes(), 'their names, which later changes of the tables use').to.deep.equal(before.indexes);
    await post();
    await mineUntilFinal();
    const whole = await stored('outbox_part_1');
    expect(whole).to.deep.equal(before.rows);
    const known = await answers();

    const done = await run('partitions', 'detach', '1', '--yes', '--json');
    expect(done.code, done.errors).to.equal(0);
    const said = JSON.parse(done.output) as { rows: number; kept: number; digest: string };
    expect(said).to.deep.include({ ok: true, no: 1, rows: whole.length });
    expect(said.kept).to.equal(1);
    expect(
      (await stored('outbox_part_1')).map(({ nonce }) => nonce),
      'the newest',
    ).to.deep.equal([whole.at(-1)!.nonce]);
    expect(await answers(), 'nothing that is served or verified changes').to.deep.equal(known);
    const [act] = (await readOperatorRows(suite.db.knex, { after: 0, limit: 100 })).slice(-1);
    expect(act).to.deep.include({ kind: 'detachPartition', item: 'outbox_part_1' });
    expect(JSON.parse(act!.note)).to.deep.equal({ rows: said.rows, kept: said.kept, digest: said.digest });
    expect((await run('partitions', 'list')).output).to.match(
      /^1: the beginning to .*, detached: .*\n2: .* to now, \d+ bytes\n$/,
    );

    // A file in the operator's hands; the database is free of it at once.
    await suite.db.knex.raw('create table outbox_dump as select * from outbox_part_1_detached');
    await suite.db.knex.raw('drop table outbox_part_1_detached');
    await post();
    const newer = (await stored()).filter(({ sent_ms: sentMs }) => sentMs > Date.now() - DAY_MS);
    expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(
      /there is no table outbox_part_1_detached/,
    );
    await suite.db.knex.raw('create table outbox_part_1_detached (like outbox including defaults)');
    await suite.db.knex.raw('insert into outbox_part_1_detached select * from outbox_dump');
    await suite.db.knex('outbox_part_1_detached').where({ hash: whole[0]!.hash }).update({ raw: '0x' });
    expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(/with hash 0x\w+; \d+ with 0x\w+ left/);
    await suite.db.knex('outbox_part_1_detached').where({ hash: whole[0]!.hash }).update({ raw: whole[0]!.raw });
    const back = await run('partitions', 'attach', '1', '--yes');
    expect(back.code, back.errors).to.equal(0);
    expect(await stored('outbox_part_1')).to.deep.equal(whole);
    expect(await stored()).to.deep.equal([...whole, ...newer]);
    expect((await readPartitions(suite.db)).map(({ detached }) => detached)).to.deep.equal([null, null]);
    await post();
  });

  it('are in backups, and restored as they are', async () => {
    await posts(4);
    await age();
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    await post();
    await mineUntilFinal();
    expect((await run('partitions', 'detach', '1', '--yes')).code).to.equal(0);
    await suite.db.knex.raw('drop table outbox_part_1_detached');
    const before = [await stored(), (await readPartitions(suite.db)).map(({ bytes: _, ...one }) => one)];
    expect((await run('backup', join(suite.folder, 'file'))).code).to.equal(0);
    const { schema } = locationOf(suite.db);
    await suite.db.knex.raw('alter schema ?? rename to ??', [schema!, `${schema}_lost`]);
    try {
      const restored = await run('restore', join(suite.folder, 'file'));
      expect(restored.code, restored.output + restored.errors).to.equal(0);
      expect([await stored(), (await readPartitions(suite.db)).map(({ bytes: _, ...one }) => one)]).to.deep.equal(
        before,
      );
      expect((await run('partitions', 'cut')).code).to.equal(0);
    } finally {
      await suite.db.knex.raw('drop schema ?? cascade', [`${schema}_lost`]);
    }
  });

  it('keep what is of use: other transactions, given up ones, unknown ones, and posts that nothing explains', async () => {
    const rows = await posts(5);
    const [first] = rows;
    const signer = suite.chain.address('settler');
    const other = (i: number, values: Partial<Stored<'outbox'>>): Stored<'outbox'> => ({
      ...first!,
      signer,
      nonce: i,
      hash: `0x${String(i).padStart(64, '0')}`,
      ...values,
    });
    await age();
    await mineUntilFinal();
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    const kept = [
      other(1, { tx_key: 'settle:1' }),
      other(2, { finished: 2 }),
      other(3, { tx_key: 'post:0.999' }),
      other(4, {}),
      other(5, { tx_key: 'settle:2', finished: 0 }),
    ];
    const sentMs = first!.sent_ms - 4 * DAY_MS;
    await suite.db.knex('outbox').insert(kept.map((row) => ({ ...row, sent_ms: sentMs })));
    const cost = { ...(await suite.db.knex('post_costs').first())!, signer, nonce: 4, hash: '0x' as const };
    await suite.db.knex('post_costs').insert(cost);
    // Their bytes are made up.
    expect((await run('partitions', 'detach', '1', '--yes')).errors).to.match(/its bytes hash to|it has nonce/);
    const candidate = await suite.candidate();
    await detachPartition(suite.db, candidate, { check: () => Promise.resolve(), timeMs: Date.now() });
    const left = await stored('outbox_part_1');
    expect(left.filter((row) => row.signer === signer).map(({ nonce }) => nonce)).to.deep.equal([1, 2, 3, 4, 5]);
    expect(left.filter((row) => row.signer !== signer).map(({ nonce }) => nonce)).to.deep.equal([rows.at(-1)!.nonce]);
  });

  it('are not detached while posts may change, and none that is not what it was', async () => {
    const refused = async (no: string, reason: RegExp): Promise<void> => {
      const before = { rows: await stored(), acts: await readOperatorRows(suite.db.knex, { after: 0, limit: 100 }) };
      const { code, errors } = await run('partitions', 'detach', no, '--yes');
      expect(code).to.equal(1);
      expect(errors).to.match(reason);
      expect({
        rows: await stored(),
        acts: await readOperatorRows(suite.db.knex, { after: 0, limit: 100 }),
      }).to.deep.equal(before);
      const tables = await suite.db
        .knex('pg_tables')
        .whereRaw("schemaname = current_schema() and tablename ~ '_(kept|detached)$'");
      expect(tables).to.deep.equal([]);
    };
    await posts(3);
    await refused('1', /the outbox has no partition 1/);
    await age();
    await cutOutbox(suite.db, Date.now() - 3 * DAY_MS);
    await refused('1', /\d posts of partition 1 are not final, post:0\.\d among them/);
    await mineUntilFinal();
    await refused('2', /partition 2 is the newest one/);
    await refused('7', /the outbox has no partition 7/);
    expect((await run('partitions', 'detach')).errors).to.match(/name the number of a partition/);
    expect((await run('partitions', 'detach', '1')).errors).to.match(/nobody to ask/);
    expect((await run('partitions', 'attach', '1', '--yes')).errors).to.match(/partition 1 is not detached/);

    const [row] = await stored('outbox_part_1');
    const at = { hash: row!.hash };
    await suite.db
      .knex('outbox')
      .where(at)
      .update({ raw: `${row!.raw.slice(0, -2)}00` as `0x${string}` });
    await refused('1', /its bytes hash to/);
    await suite.db.knex('outbox').where(at).update({ raw: row!.raw, nonce: 900 });
    await refused('1', /not final|it has nonce/);
    await suite.db.knex('outbox').where(at).update({ nonce: row!.nonce });
    const [published] = await suite.db.knex('publications').where({ tx_key: row!.tx_key });
    await suite.db
      .knex('publications')
      .where({ tx_key: row!.tx_key })
      .update({ deadline_sec: published!.deadline_sec + 1 });
    await refused('1', /it posted something else than its publications/);
    await suite.db
      .knex('publications')
      .where({ tx_key: row!.tx_key })
      .update({ deadline_sec: published!.deadline_sec });
    expect((await run('partitions', 'detach', '1', '--yes')).code).to.equal(0);
    await suite.db.knex.raw('drop table outbox_part_1_detached');
    expect((await run('partitions', 'detach', '1', '--yes')).errors).to.match(/partition 1 is detached/);
  });
});
