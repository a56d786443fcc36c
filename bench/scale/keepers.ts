/**
 * What scans and publications cost beside the fills and the curves themselves: the poster's reading, signing, storing and sending, and the
 * database's part, in real processes of one role each. Three loads follow each other on the same deployment of four markets: nobody quotes anew, one market
 * changes in each block, and four do. What a block costs without quotes is of the scan; what three more markets add is of three publications; what
 * such a block costs more than one of a deployment with a single market is of three listed markets.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openDb } from '../../ledger/db/db.js';
import { sendForRows } from '../../ledger/db/dialects.js';
import { SHARES, tableBytes } from '../../ledger/db/storage.js';
import { signBody } from '../../test/support/nodes/edges.js';
import { FIRST_ASSET } from '../../test/support/trading.js';
import type { Db } from '../../ledger/types.js';
import { accountOf, startStack, until, type Stack } from '../../test/support/stack.js';
import { bytesRow, timeRow, type Figure, type ScaleRow } from './rows.js';
import { restingOids } from './world.js';

/** Shorter than a real chain's, so that what a block costs outweighs what time alone does. */
const BLOCK_MS = 400;
const MARKETS = 4;
/** Of each market: half bids and half asks. */
const ORDERS = 50;
/** Blocks in which the processes compile, and those of one measured stretch. */
const WARM_BLOCKS = 200;
const BLOCKS = 40;
const ROUNDS = 4;
const GATEWAY = 'gateway';
const PROCESSES = ['watcher', GATEWAY, 'poster', 'settler,executor'] as const;
type Process = (typeof PROCESSES)[number];

/** How many markets quote anew in each block. */
const LOADS = { quiet: 0, one: 1, all: MARKETS } as const;
type LoadName = keyof typeof LOADS;

/** Of each market of the sandbox: the middle of its quotes and the step between two, as whole numbers with so many digits behind the point. */
const QUOTES: readonly { middle: number; step: number; digits: number; size: string }[] = [
  { middle: 250_000, step: 10, digits: 2, size: '0.01' },
  { middle: 250_000, step: 10, digits: 2, size: '0.01' },
  { middle: 100_000, step: 4, digits: 0, size: '0.0004' },
  { middle: 400_000, step: 20, digits: 4, size: '0.0004' },
];

/** CPU microseconds of a process, and of the database's processes that serve it. */
interface Cpu {
  ownUs: number;
  databaseUs: number;
}
/** What a stretch of blocks took, and what came of it. */
interface Stretch {
  cpu: Readonly<Record<Process, Cpu>>;
  scans: number;
  /** Books that were posted, and all publications, those that prolong a curve included. */
  posted: number;
  publications: number;
  scanBytes: number;
  publicationBytes: number;
}

const ranUs = (pid: number): number => Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, 'utf8'), 10) / 1_000;

/** Threads of a process, whose times its own `schedstat` leaves out. */
const processUs = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, task) => sum + ranUs(Number.parseInt(task, 10)), 0);

/** Local ports of a process's connections. */
function portsOf(pid: number): Set<number> {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, 'utf8').trim().split('\n'));
  return new Set(
    lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => inodes.has(fields[9] ?? ''))
      .map((fields) => Number.parseInt(fields[1]!.split(':')[1]!, 16)),
  );
}

const price = ({ middle, step, digits }: (typeof QUOTES)[number], rank: number, shift: number): string => {
  const number = String(middle + step * (rank < 0 ? rank - shift : rank + shift)).padStart(digits + 1, '0');
  if (digits === 0) return number;
  return `${number.slice(0, -digits)}.${number.slice(-digits)}`.replace(/\.?0+$/, '');
};

/** A book's worth of quotes of one market. `shift` widens it by so many steps. */
const quotesOf = (market: number, shift: number) =>
  Array.from({ length: ORDERS }, (_, index) => {
    const isBid = index % 2 === 0;
    const rank = 1 + Math.floor(index / 2);
    return {
      ...{ a: FIRST_ASSET + market, b: isBid, p: price(QUOTES[market]!, isBid ? -rank : rank, shift) },
      ...{ s: QUOTES[market]!.size, r: false, t: { limit: { tif: 'Gtc' } } },
    };
  });

/** Measures them on empty schemas of the server. */
export async function measureKeepers(server: string, rounds = ROUNDS): Promise<ScaleRow[]> {
  const alone = await onStack(server, 1, (stack, db) => measure(stack, db, ['quiet'], 1, rounds));
  const four = await onStack(server, MARKETS, (stack, db) =>
    measure(stack, db, ['quiet', 'one', 'all'], MARKETS, rounds),
  );
  return rowsOf({ alone: alone.map(({ quiet }) => quiet), four });
}

async function onStack<T>(server: string, markets: number, work: (stack: Stack, db: Db) => Promise<T>): Promise<T> {
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(server);
  url.searchParams.set('schema', schema);
  const db = await openDb(server, { schema });
  try {
    const stack = await startStack({
      ...{ databaseUrl: url.toString(), blockTimeMs: BLOCK_MS, marketCount: markets, processes: PROCESSES },
      env: { LOG_LEVEL: 'error' },
    });
    try {
      const { address } = accountOf(stack, 'maker1');
      await stack.operate('maker', 'approve', address);
      await until('the ledger', async () => {
        const { ledger } = (await (await fetch(`${stack.manifest.serverUrl}/v0/makers/${address}/limits`)).json()) as {
          ledger: { ready: boolean; balances: { available: string }[] };
        };
        return ledger.ready && ledger.balances.every(({ available }) => available !== '0');
      });
      return await work(stack, db);
    } finally {
      await stack.close();
    }
  } finally {
    await db.knex.raw('drop schema if exists ?? cascade', [schema]);
    await db.close();
  }
}

/** Rounds of one stretch of each load, after some blocks in which all markets quote anew. */
async function measure<L extends LoadName>(
  stack: Stack,
  db: Db,
  loads: readonly L[],
  markets: number,
  rounds: number,
): Promise<Record<L, Stretch>[]> {
  const { privateKey } = accountOf(stack, 'maker1');
  const oids: number[][] = [];
  let shift = 0;

  async function send(action: object): Promise<number[]> {
    const response = await fetch(`${stack.manifest.serverUrl}/exchange`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify(signBody(action, privateKey)),
    });
    const text = await response.text();
    const resting = restingOids(text);
    if (resting.length !== ORDERS) throw new Error(text.slice(0, 300));
    return resting;
  }

  async function requote(market: number): Promise<void> {
    const quotes = quotesOf(market, shift % 20);
    const own = oids[market];
    oids[market] = await send(
      own === undefined
        ? { type: 'order', orders: quotes, grouping: 'na' }
        : { type: 'batchModify', modifies: quotes.map((order, index) => ({ oid: own[index]!, order })) },
    );
  }

  /** So many markets quote anew in each block, one after the other. */
  async function stretch(quoting: number, blocks: number): Promise<Stretch> {
    const before = await read();
    const startedMs = performance.now();
    for (let block = 1; block <= blocks; block += 1) {
      shift += 1;
      for (let market = 0; market < quoting; market += 1) await requote(market);
      await delay(Math.max(0, startedMs + block * BLOCK_MS - performance.now()));
    }
    const after = await read();
    const cpu = (name: Process): Cpu => ({
      ownUs: after.cpu[name].ownUs - before.cpu[name].ownUs,
      databaseUs: after.cpu[name].databaseUs - before.cpu[name].databaseUs,
    });
    return {
      cpu: Object.fromEntries(PROCESSES.map((name) => [name, cpu(name)])) as Stretch['cpu'],
      scans: after.scans - before.scans,
      posted: after.posted - before.posted,
      publications: after.publications - before.publications,
      scanBytes: after.scanBytes - before.scanBytes,
      publicationBytes: after.publicationBytes - before.publicationBytes,
    };
  }

  async function read(): Promise<Stretch> {
    const sessions = await sendForRows<{ pid: number; port: number }>(
      db.reads,
      'select pid, client_port as port from pg_stat_activity where client_port > 0',
    );
    const cpu = (name: Process): Cpu => {
      const pid = stack.pid(name);
      const ports = portsOf(pid);
      const own = sessions.filter(({ port }) => ports.has(port));
      return { ownUs: processUs(pid), databaseUs: own.reduce((sum, session) => sum + ranUs(session.pid), 0) };
    };
    const count = async (sql: string): Promise<number> =>
      (await sendForRows<{ count: number }>(db.reads, sql))[0]?.count ?? 0;
    const bytes = await tableBytes(db);
    const bytesOf = (share: string): number =>
      (SHARES.find(({ name }) => name === share)?.tables ?? []).reduce(
        (sum, table) => sum + (bytes.get(table) ?? 0),
        0,
      );
    return {
      cpu: Object.fromEntries(PROCESSES.map((name) => [name, cpu(name)])) as Stretch['cpu'],
      scans: await count('select count(*)::int as count from generations'),
      posted: await count("select count(*)::int as count from publications where kind = 'full'"),
      publications: await count('select count(*)::int as count from publications'),
      scanBytes: bytesOf('scans'),
      publicationBytes: bytesOf('publications'),
    };
  }

  for (let market = 0; market < markets; market += 1) await requote(market);
  await stretch(markets, WARM_BLOCKS);
  const measured: Record<L, Stretch>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const taken: Partial<Record<L, Stretch>> = {};
    for (const load of loads) taken[load] = await stretch(LOADS[load], BLOCKS);
    measured.push(taken as Record<L, Stretch>);
  }
  return measured;
}

type Part = (stretch: Stretch) => number;
const ownOf =
  (name: Process): Part =>
  ({ cpu }) =>
    cpu[name].ownUs;
const databaseOf =
  (...names: readonly Process[]): Part =>
  ({ cpu }) =>
    names.reduce((sum, name) => sum + cpu[name].databaseUs, 0);

/** Several stretches as one: differences of short ones would be mostly chance. */
function summed(stretches: readonly Stretch[]): Stretch {
  const sum = (of: Part): number => stretches.reduce((all, stretch) => all + of(stretch), 0);
  const cpu = (name: Process): Cpu => ({
    ownUs: sum((one) => one.cpu[name].ownUs),
    databaseUs: sum((one) => one.cpu[name].databaseUs),
  });
  return {
    cpu: Object.fromEntries(PROCESSES.map((name) => [name, cpu(name)])) as Stretch['cpu'],
    scans: sum(({ scans }) => scans),
    posted: sum(({ posted }) => posted),
    publications: sum(({ publications }) => publications),
    scanBytes: sum(({ scanBytes }) => scanBytes),
    publicationBytes: sum(({ publicationBytes }) => publicationBytes),
  };
}

function rowsOf(rounds: { alone: readonly Stretch[]; four: readonly Record<LoadName, Stretch>[] }): ScaleRow[] {
  const alone = summed(rounds.alone);
  const [quiet, one, all] = (['quiet', 'one', 'all'] as const).map((load) =>
    summed(rounds.four.map((round) => round[load])),
  );
  if (quiet === undefined || one === undefined || all === undefined) throw new RangeError('every load is measured');
  const whole = summed([quiet, one, all]);
  const perScan = (stretch: Stretch, part: Part): number => part(stretch) / stretch.scans;
  const postsOf = ({ posted, scans }: Stretch): number => posted / scans;
  /** What a listed market costs in a block in which nothing is posted. */
  const listed = (part: Part): number => (perScan(quiet, part) - perScan(alone, part)) / (MARKETS - 1);
  /** What a further market of a post costs. */
  const perPost = (part: Part): number => (perScan(all, part) - perScan(one, part)) / (postsOf(all) - postsOf(one));
  /** What a block with posts costs beside them, and more than one without. */
  const perRound = (part: Part): number => perScan(one, part) - perScan(quiet, part) - perPost(part) * postsOf(one);
  const scan = (part: Part): number => perScan(quiet, part);
  const ms = (us: number): number => Math.max(us, 0) / 1_000;
  const [poster, watcher, everyDatabase] = [ownOf('poster'), ownOf('watcher'), databaseOf(...PROCESSES)];
  // The watcher stores what it sees of a publication.
  const ofPosts = databaseOf('poster', 'watcher');
  const row = (figure: Figure, what: string, us: (part: Part) => number, [own, database]: [Part, Part]): ScaleRow =>
    timeRow(figure, what, ms(us(own)), { databaseMs: ms(us(database)) });
  return [
    row('quietScan', `watcher, a scan that finds nothing, ${MARKETS} markets`, scan, [watcher, everyDatabase]),
    row('listedMarket', 'poster, each listed market, in each block', listed, [poster, databaseOf('poster')]),
    row('postRound', 'poster, a round that posts', perRound, [poster, ofPosts]),
    row('postMarket', `poster, each market of it: a book of ${ORDERS} orders`, perPost, [poster, ofPosts]),
    bytesRow('scanBytes', 'scan', whole.scanBytes / whole.scans, null),
    bytesRow(
      'publicationBytes',
      'publication with its part of a transaction',
      whole.publicationBytes / whole.publications,
      null,
    ),
  ];
}
