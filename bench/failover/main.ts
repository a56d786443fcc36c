/**
 * `npm run bench:failover [-- --rows 1000000 --json]`: how soon a standby takes over from a process with every role that is killed, when the order log is
 * that long: its first acknowledged order and its first publication after the kill, its memory, and beside them how long a process takes that starts from
 * what is stored. Needs DATABASE_URL to name a PostgreSQL server. Fails when a goal is missed or an acknowledged order is lost. `--freezes N` measures instead
 * how soon standbys have the roles of processes that are frozen, in N rounds. `--trials N [--faults …] [--roles …]` makes N trials per role and fault with
 * servers of PostgreSQL and NATS of its own; it needs no DATABASE_URL.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid';
import { Wallet } from 'ethers';
import type { Address, OrderEffect, OrderLogRow } from '../../core/types.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { openDb } from '../../ledger/db/db.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../ledger/orders/order-log.js';
import type { Db } from '../../ledger/types.js';
import { startChild, type Child } from '../../test/support/child.js';
import { accountOf, startStack, until, type Stack } from '../../test/support/stack.js';
import { FIRST_ASSET, place } from '../../test/support/trading.js';
import { holds, type Row } from '../gateway/measure.js';
import { measureFreezes } from './freezes.js';
import { printTrials } from './print.js';
import { FAULTS, TARGETS, measureTrials } from './trials.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    freezes: { type: 'string' },
    trials: { type: 'string' },
    faults: { type: 'string', default: FAULTS.join() },
    roles: { type: 'string', default: TARGETS.join() },
    json: { type: 'boolean', default: false },
  },
});
const ROWS = Number.parseInt(values.rows, 10);
const ORDER_GOAL_SEC = 2;
const PUBLICATION_GOAL_SEC = 4;
const MEMORY_GOAL_MB = 600;
/** Orders of the generated history that stay open. */
const OPEN = 300;
const PER_TX = 1_000;
const LOOK_MS = 5;
/** Long, since two processes read the long log at once on one machine. */
const START_LIMIT_MS = 600_000;

const server = process.env.DATABASE_URL ?? '';
const needsServer = values.trials === undefined;
if (needsServer && !/^postgres(ql)?:/.test(server)) throw new Error('DATABASE_URL must name a PostgreSQL server');
const schema = `bench_${randomUUID().replaceAll('-', '')}`;
const url = new URL(needsServer ? server : 'postgres://none');
url.searchParams.set('schema', schema);
const children: Child[] = [];

/** Generates a history of the order log: the rows of a maker who replaces one order after the other. */
async function makePast(db: Db, maker: Address): Promise<void> {
  const writer = await acquireWriter(db, 'order');
  const first = (await lastOrderSeq(db.knex)) + 1;
  const before = await readOrderRows(db.knex, { after: 0, limit: 10_000 });
  const oids = before.flatMap(({ effects }) => effects).flatMap((one) => (one.type === 'open' ? [one.oid] : []));
  const firstOid = Math.max(0, ...oids) + 1;
  const startMs = before.at(-1)?.timeMs ?? Date.now();
  const firstNonce = Math.min(startMs, ...before.flatMap(({ nonce }) => nonce ?? []));
  const rowAt = (i: number): OrderLogRow => {
    const terms = { market: 0, side: 'bid' as const, sizeLots: 1n, tif: 'Gtc' as const, cloid: null };
    const effects: OrderEffect[] = [
      { type: 'open', oid: firstOid + i, priceTicks: 100_000n + BigInt(i % 1_000), ...terms },
    ];
    if (i >= OPEN) effects.push({ type: 'close', oid: firstOid + i - OPEN, reason: 'canceled' });
    const own = { maker, signer: maker, nonce: firstNonce - ROWS - 1 + i, kind: 'order' };
    return { orderSeq: first + i, timeMs: startMs, ...own, effects };
  };
  for (let i = 0; i < ROWS; i += PER_TX) {
    const rows = Array.from({ length: Math.min(PER_TX, ROWS - i) }, (_, k) => rowAt(i + k));
    await writer.tx((tx) => appendOrderRows(tx, rows));
  }
  await writer.release();
}

/** A process with every role at a port of its own. */
async function serve(stack: Stack) {
  const port = await freePort('127.0.0.1');
  const args = ['serve', '--manifest', stack.manifestPath, '--database', url.toString(), '--port', `${port}`];
  const child = startChild('cli/main.ts', args, { LOG_LEVEL: 'info', ROLES: '' });
  children.push(child);
  const at = `http://127.0.0.1:${port}`;
  const answers = (path: string, status: number): Promise<void> =>
    until(
      `${path} to answer ${status}`,
      async () => {
        if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.output()}`);
        return (await fetch(`${at}${path}`).catch(() => null))?.status === status;
      },
      START_LIMIT_MS,
    );
  const wallet = new Wallet(accountOf(stack, 'maker1').privateKey);
  const exchange = new ExchangeClient({ transport: new HttpTransport({ apiUrl: at }), wallet });
  return { child, answers, exchange, said: (text: string) => child.errors().some((line) => line.includes(text)) };
}

async function oneOrder({ exchange }: { exchange: ExchangeClient }): Promise<number | null> {
  const order = { a: FIRST_ASSET, b: true, p: '1500', s: '0.1', r: false, t: { limit: { tif: 'Gtc' as const } } };
  const reply = await exchange.order({ orders: [order], grouping: 'na' }).catch(() => null);
  const [status] = reply?.response.data.statuses ?? [];
  return typeof status === 'object' && 'resting' in status ? status.resting.oid : null;
}

/** Sum of the sequence numbers of all publications: it rises with each publication. */
async function prepared(db: Db): Promise<number> {
  const row = (await db.knex('publications').count({ count: '*' }).first()) as { count: number };
  return row.count;
}

const memoryMb = (pid: number): number =>
  Number.parseInt(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!, 10) / 1_024;

async function measure(stack: Stack, db: Db): Promise<Row[]> {
  const maker = accountOf(stack, 'maker1').address;
  await stack.operate('maker', 'approve', maker);
  await until('a first order', () =>
    place(stack, 'maker1', [{ isBuy: true, price: '1500', size: '1' }]).then(
      () => true,
      () => false,
    ),
  );
  await stack.endServer('SIGTERM');
  await makePast(db, maker);
  process.stderr.write(`${ROWS} rows written\n`);

  const coldMs = performance.now();
  const active = await serve(stack);
  await active.answers('/active', 200);
  const coldSec = (performance.now() - coldMs) / 1_000;
  process.stderr.write(`started from what is stored in ${coldSec.toFixed(1)} s\n`);
  const standby = await serve(stack);
  await standby.answers('/ready', 200);
  await until('an order', async () => (await oneOrder(active)) !== null, START_LIMIT_MS);
  const before = await prepared(db);
  await until('posts', async () => (await prepared(db)) > before, START_LIMIT_MS);
  // The standby's poster, too, must have read its book before the other process is killed.
  await delay(Math.max(10_000, coldSec * 1_000));
  const standbyMb = memoryMb(standby.child.process.pid!);
  const acknowledged: number[] = [];
  for (let i = 0; i < 10; i += 1) acknowledged.push((await oneOrder(active)) ?? 0);

  const posted = await prepared(db);
  await active.child.end('SIGKILL');
  const killedMs = performance.now();
  const since = (): number => (performance.now() - killedMs) / 1_000;
  let publicationSec = Number.NaN;
  const publishing = (async () => {
    while ((await prepared(db)) === posted) await delay(LOOK_MS);
    publicationSec = since();
  })();
  while ((await oneOrder(standby)) === null) await delay(LOOK_MS);
  const orderSec = since();
  await publishing;
  const rows = await readOrderRows(db.knex, { after: (await lastOrderSeq(db.knex)) - 100, limit: 100 });
  const stored = new Set(
    rows.flatMap(({ effects }) => effects).flatMap((one) => (one.type === 'open' ? [one.oid] : [])),
  );
  const lost = acknowledged.filter((oid) => oid !== 0 && !stored.has(oid)).length;
  const row = (what: string, value: number, unit: string, bound: Row['bound'] = null): Row => ({
    ...{ goal: '', what: `${ROWS} rows: ${what}`, value, unit, bound },
  });
  return [
    row('start from what is stored', coldSec, 's'),
    row('first acknowledged order after the kill', orderSec, 's', { atMost: ORDER_GOAL_SEC }),
    row('the same / start from what is stored', orderSec / coldSec, 'x'),
    row('first publication after the kill', publicationSec, 's', { atMost: PUBLICATION_GOAL_SEC }),
    row('memory of the standby', standbyMb, 'MB', { atMost: MEMORY_GOAL_MB }),
    row('promoted in place', standby.said('the standby takes actions') ? 1 : 0, '', { atLeast: 1 }),
    row('acknowledged orders lost', lost, '', { atMost: 0 }),
  ];
}

function print(rows: readonly Row[]): void {
  process.exitCode = rows.every(holds) ? 0 : 1;
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ rows: rows.map((row) => ({ ...row, holds: holds(row) })) })}\n`);
    return;
  }
  for (const row of rows) {
    const bound =
      row.bound === null ? '' : 'atLeast' in row.bound ? `>= ${row.bound.atLeast}` : `<= ${row.bound.atMost}`;
    const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
    const value = `${row.value.toPrecision(3)} ${row.unit}`;
    process.stdout.write(`${row.what.padEnd(56)} ${value.padStart(12)}  ${bound.padEnd(8)} ${verdict}\n`);
  }
}

async function run(): Promise<void> {
  const db = await openDb(url.toString());
  try {
    if (values.freezes !== undefined) {
      print(await measureFreezes(url.toString(), Number.parseInt(values.freezes, 10)));
      return;
    }
    const stack = await startStack({ databaseUrl: url.toString(), blockTimeMs: 1_000, processes: [''] });
    try {
      print(await measure(stack, db));
    } finally {
      await Promise.all(children.map((child) => child.end('SIGKILL')));
      await stack.close();
    }
  } finally {
    await db.knex.raw('drop schema if exists ?? cascade', [schema]);
    await db.close();
  }
}

/** Those of a comma-separated list; throws for another one. */
function listed<T extends string>(option: string, text: string, known: readonly T[]): T[] {
  return text.split(',').map((name) => {
    const one = known.find((other) => other === name);
    if (one === undefined) throw new Error(`--${option}: ${name} is none of ${known.join()}`);
    return one;
  });
}

async function runTrials(trials: number): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort(new Error(name)));
  const report = await measureTrials({
    trials,
    faults: listed('faults', values.faults, FAULTS),
    targets: listed('roles', values.roles, TARGETS),
    signal: stopping.signal,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  process.exitCode = printTrials(report, values.json) ? 0 : 1;
}

if (values.trials === undefined) await run();
else
  await runTrials(Number.parseInt(values.trials, 10)).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    // A trial that was interrupted may still wait for something.
    process.exit(1);
  });
