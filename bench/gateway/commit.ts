import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OrderLogRow } from '../../core/types.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import { appendOrderRows } from '../../ledger/orders/order-log.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { createGroupCommit } from '../../server/orders/group-commit.js';
import { interleaved, median, type Row } from './measure.js';

const PAYLOAD = `${'x'.repeat(390)}\n`;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Takes one entry; resolves when it is durable. */
type Commit = () => Promise<void>;

/** The least that durable commits can do: append what is queued, sync once, answer. */
function logCommitter(path: string): { commit: Commit; close: () => void } {
  const file = openSync(path, 'a');
  let queue: (() => void)[] = [];
  const flush = (): void => {
    const group = queue;
    queue = [];
    writeSync(file, PAYLOAD.repeat(group.length));
    fdatasyncSync(file);
    group.forEach((done) => done());
  };
  return {
    commit: () =>
      new Promise((resolve) => {
        if (queue.push(resolve) === 1) setImmediate(flush);
      }),
    close: () => closeSync(file),
  };
}

/** Entries per second with `clients` of them waiting at a time. */
async function rate(commit: Commit, clients: number, count: number): Promise<number> {
  let left = count;
  const startedMs = performance.now();
  const client = async (): Promise<void> => {
    while (left-- > 0) await commit();
  };
  await Promise.all(Array.from({ length: clients }, client));
  return (count * 1_000) / (performance.now() - startedMs);
}

async function timed(commit: Commit, times: number[]): Promise<void> {
  const startedMs = performance.now();
  await commit();
  times.push(performance.now() - startedMs);
}

async function latencyMs(commit: Commit, count: number): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) await timed(commit, times);
  return median(times);
}

/** The 99th percentile of an entry's wait, with `clients` of them waiting at a time. */
async function tailMs(commit: Commit, clients: number, count: number): Promise<number> {
  const times: number[] = [];
  await rate(() => timed(commit, times), clients, count);
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

/** G7 and G8: the group commit into SQLite against a bare log, and against one transaction per entry. */
export async function measureCommit(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-commit-'));
  const db = await openDb(`sqlite:${join(folder, 'bench.sqlite')}`);
  const log = logCommitter(join(folder, 'bench.log'));
  try {
    await migrate(db);
    const writer = await acquireWriter(db, 'order');
    let orderSeq = 0;
    const row = (): OrderLogRow => {
      orderSeq += 1;
      const who = { maker: `0x${'1'.repeat(40)}`, signer: `0x${'1'.repeat(40)}` } as const;
      return { orderSeq, timeMs: 1, ...who, nonce: orderSeq, kind: PAYLOAD, effects: [] };
    };
    const commits = createGroupCommit<null, null>(
      writer,
      {
        begin: async () => undefined,
        plan: () => ({ rows: [row()], answer: null }),
        append: appendOrderRows,
        readBack: async () => [],
        commit: () => undefined,
        rollback: () => undefined,
      },
      silent,
    );
    const grouped: Commit = async () => void (await commits.submit(null));
    const single: Commit = () => writer.tx((tx) => appendOrderRows(tx, [row()]));
    const rates = await interleaved({
      log: () => rate(log.commit, 64, 4_000),
      grouped: () => rate(grouped, 64, 2_000),
      single: () => rate(single, 64, 500),
    });
    const p50 = await interleaved({ log: () => latencyMs(log.commit, 200), grouped: () => latencyMs(grouped, 200) });
    const p99 = await interleaved({
      log: () => tailMs(log.commit, 64, 2_000),
      grouped: () => tailMs(grouped, 64, 2_000),
    });
    return [
      {
        goal: 'G7',
        what: 'group commit / bare log + fdatasync, 64 waiting',
        value: rates.grouped / rates.log,
        unit: 'x',
        bound: { atLeast: 0.25 },
      },
      {
        goal: 'G7',
        what: 'grouped / one transaction per entry',
        value: rates.grouped / rates.single,
        unit: 'x',
        bound: { atLeast: 3 },
      },
      {
        goal: 'G8',
        what: 'p50 of one commit / bare write + fdatasync',
        value: p50.grouped / p50.log,
        unit: 'x',
        bound: { atMost: 6 },
      },
      // Without a goal: the tail of a sync varies by more than this from one run to the next.
      {
        goal: 'G8',
        what: 'p99 of a commit / of the bare log, 64 waiting',
        value: p99.grouped / p99.log,
        unit: 'x',
        bound: null,
      },
    ];
  } finally {
    log.close();
    await db.close();
    rmSync(folder, { recursive: true });
  }
}
