import { expect } from 'chai';
import type { Knex } from 'knex';
import type { OrderLogRow } from '../../../core/types.js';
import { CommitUnknownError, WriterLostError } from '../../../ledger/errors.js';
import type { Writer } from '../../../ledger/types.js';
import { createGroupCommit } from '../../../server/orders/group-commit.js';
import { GatewayUnavailableError } from '../../../server/orders/refusals.js';

const MAKER = `0x${'a'.repeat(40)}` as const;
const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What the next transaction does instead of committing. */
type Fault = 'none' | 'rolled back' | 'unknown, landed' | 'unknown, not landed' | 'lost' | 'down';

/** A log whose commits take a while and can fail, with the gateway's two states as plain lists. */
function createBench(finished: () => Promise<unknown> = () => new Promise((resolve) => setTimeout(resolve, 5))) {
  const durable: OrderLogRow[] = [];
  const committed: OrderLogRow[] = [];
  let planned: OrderLogRow[] = [];
  const faults: Fault[] = [];
  const groups: number[] = [];
  const events: string[] = [];
  let pending: OrderLogRow[] = [];

  const writer: Writer = {
    log: 'order',
    epoch: 1,
    release: async () => undefined,
    tx: async (write) => {
      const fault = faults.shift() ?? 'none';
      if (fault === 'lost') throw new WriterLostError('order', 'test');
      if (fault === 'down') throw new Error('no connection');
      pending = [];
      const result = await write({} as Knex.Transaction);
      await finished();
      if (fault === 'rolled back') throw new Error('disk full');
      if (fault !== 'unknown, not landed') {
        durable.push(...pending);
        if (pending.length > 0) events.push(`durable ${pending.map((row) => row.nonce).join(' ')}`);
      }
      if (fault.startsWith('unknown')) throw new CommitUnknownError('order', new Error('connection lost'));
      return result;
    },
  };

  const commits = createGroupCommit<number, string>(
    writer,
    {
      begin: async () => undefined,
      plan: (nonce) => {
        if (nonce < 0) throw new Error('a poisonous entry');
        if (planned.some((row) => row.nonce === nonce)) return { rows: [], answer: `duplicate ${nonce}` };
        const orderSeq = planned.length + 1;
        const row = { orderSeq, timeMs: 0, maker: MAKER, signer: MAKER, nonce, kind: 'noop', effects: [] };
        planned.push(row);
        return { rows: [row], answer: `ok ${nonce}` };
      },
      append: async (_tx, rows) => {
        groups.push(rows.length);
        pending.push(...rows);
      },
      readBack: async () => durable.slice(committed.length),
      commit: (rows) => {
        committed.push(...rows);
      },
      rollback: () => {
        planned = [...committed];
      },
    },
    logger,
  );

  const submit = (nonce: number): Promise<string> =>
    commits.submit(nonce).then(
      (answer) => {
        events.push(`answered ${nonce}`);
        return answer;
      },
      (error: unknown) => (error instanceof GatewayUnavailableError ? error.code : String(error)),
    );
  return { submit, commits, faults, groups, events, durable, committed, planned: () => planned };
}

describe('group commit', () => {
  it('answers after the commit, and takes what queued up meanwhile in one transaction', async () => {
    const bench = createBench();
    const first = bench.submit(1);
    while (bench.groups.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const rest = [2, 3, 4, 3].map(bench.submit);
    expect(bench.committed).to.deep.equal([]);
    expect(await first).to.equal('ok 1');
    expect(await Promise.all(rest)).to.deep.equal(['ok 2', 'ok 3', 'ok 4', 'duplicate 3']);
    expect(bench.groups).to.deep.equal([1, 3]);
    expect(bench.events).to.deep.equal([
      'durable 1',
      'answered 1',
      'durable 2 3 4',
      'answered 2',
      'answered 3',
      'answered 4',
      'answered 3',
    ]);
    expect(bench.committed.map((row) => row.orderSeq)).to.deep.equal([1, 2, 3, 4]);
  });

  it('waits as long as each turn brings entries, though not for ever', async () => {
    let commit = (): void => undefined;
    let committed: Promise<void> = Promise.resolve();
    const bench = createBench(() => committed);
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const answers = [bench.submit(1)];
    await turn();
    answers.push(bench.submit(2));
    await Promise.all(answers);
    expect(bench.groups).to.deep.equal([2]);
    committed = new Promise((resolve) => (commit = resolve));
    for (let nonce = 3; nonce <= 12; nonce += 1) {
      answers.push(bench.submit(nonce));
      await turn();
    }
    commit();
    expect(await Promise.all(answers)).to.deep.equal(answers.map((_, index) => `ok ${index + 1}`));
    expect(bench.groups[1]).to.be.within(4, 5);
    expect(bench.groups).to.have.length(3);
  });

  it('retries a failed group entry by entry', async () => {
    const bench = createBench();
    bench.faults.push('rolled back');
    expect(await Promise.all([1, 2, 3].map(bench.submit))).to.deep.equal(['ok 1', 'ok 2', 'ok 3']);
    expect(bench.groups).to.deep.equal([3, 1, 1, 1]);
    expect(bench.committed).to.deep.equal(bench.durable);
    expect(bench.durable.map((row) => row.orderSeq)).to.deep.equal([1, 2, 3]);
  });

  it('fails the entry that can not be stored and no other', async () => {
    const bench = createBench();
    expect(await Promise.all([1, -1, 2].map(bench.submit))).to.deep.equal(['ok 1', 'write_failed', 'ok 2']);
    expect(bench.durable.map((row) => row.nonce)).to.deep.equal([1, 2]);
    expect(bench.planned()).to.deep.equal(bench.committed);
  });

  it('does not show an entry that failed, and lets it be sent again', async () => {
    const bench = createBench();
    bench.faults.push('rolled back');
    expect(await bench.submit(1)).to.equal('write_failed');
    expect(bench.committed).to.deep.equal([]);
    expect(await bench.submit(1)).to.equal('ok 1');
  });

  it('reads an unknown commit back before it answers', async () => {
    const bench = createBench();
    bench.faults.push('unknown, landed');
    expect(await Promise.all([1, 2].map(bench.submit))).to.deep.equal(['ok 1', 'ok 2']);
    expect(bench.groups).to.deep.equal([2]);
    bench.faults.push('unknown, not landed');
    expect(await Promise.all([3, 4].map(bench.submit))).to.deep.equal(['ok 3', 'ok 4']);
    expect(bench.durable.map((row) => row.nonce)).to.deep.equal([1, 2, 3, 4]);
    expect(bench.committed).to.deep.equal(bench.durable);
  });

  it('says that it does not know while the log can not be read, and catches up after', async () => {
    const bench = createBench();
    bench.faults.push('unknown, landed', 'down');
    expect(await bench.submit(1)).to.equal('outcome_unknown');
    expect(bench.committed).to.deep.equal([]);
    expect(await bench.submit(1)).to.equal('duplicate 1');
    expect(await bench.submit(2)).to.equal('ok 2');
    expect(bench.committed.map((row) => row.nonce)).to.deep.equal([1, 2]);
  });

  it('knows that nothing was stored of what it did not try', async () => {
    const bench = createBench();
    bench.faults.push('unknown, landed', 'down', 'down');
    expect(await bench.submit(1)).to.equal('outcome_unknown');
    expect(await bench.submit(2)).to.equal('write_failed');
    expect(await bench.submit(2)).to.equal('ok 2');
    expect(bench.committed).to.deep.equal(bench.durable);
  });

  it('accepts nothing once another process owns the log', async () => {
    const bench = createBench();
    bench.faults.push('none', 'lost');
    expect(await bench.submit(1)).to.equal('ok 1');
    expect(await Promise.all([2, 3].map(bench.submit))).to.deep.equal(['standby', 'standby']);
    expect(bench.commits.isLost()).to.equal(true);
    expect(await bench.submit(4)).to.equal('standby');
    expect(bench.durable.map((row) => row.nonce)).to.deep.equal([1]);
    await bench.commits.idle();
  });

  it('does not claim to know what became of a group when the log is lost before it can be read back', async () => {
    const bench = createBench();
    bench.faults.push('unknown, landed', 'lost');
    const first = bench.submit(1);
    // The first group is under way, so that the second entry is not in it.
    while (bench.faults.length === 2) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.all([first, bench.submit(2)])).to.deep.equal(['outcome_unknown', 'standby']);
  });
});
