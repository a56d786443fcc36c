/** What a fill of five makers costs the watcher: finding the book behind its curve, attributing it, and committing its generation. */
import { tableBytes } from '../../ledger/db/storage.js';
import { OF_BOOKS, OF_FILLS } from '../ledger/storage.js';
import { databases } from '../ledger/databases.js';
import { createFeed } from '../ledger/feed.js';
import { cpuUs, median, medianRatio } from '../gateway/measure.js';
import { backendsCpuUs } from '../read/app.js';
import type { Bare } from './bare.js';
import { bytesRow, cpuRows, RECOVERIES_PER_MS, type ScaleRow } from './rows.js';

const LEGS = 5;
const BOOK_ORDERS = 20;
/** Every scan hits a curve of its own, as where the poster posts in each block. */
const BOOKS = { others: BOOK_ORDERS - LEGS, generationsPerCurve: 1 };
/** Fills of one scan of two seconds: of a busy deployment, and of a quiet one, where the scan is all of a fill's. */
const BUSY = 4;
const GENERATIONS = 25;
/** Scans before the first measured one: the engine has compiled by then what a watcher runs all day. */
const WARM_ROUNDS = 40;
const ROUNDS = 9;

/** The most that a fill may take, and the same in recoveries of a signature, as the bars of orders are. */
const BARS = { ms: 1.5, ratio: 1.5 * RECOVERIES_PER_MS };
/** The most in bare commits of one row: a bound of this bench, tighter than the bar where these are fast. */
const MOST_COMMITS = 6;

interface Round {
  busyUs: number;
  aloneUs: number;
  busyDatabaseUs: number;
  aloneDatabaseUs: number;
  commitUs: number;
  recoveryUs: number;
}

export async function measureFills(bare: Bare, rounds = ROUNDS): Promise<ScaleRow[]> {
  const { db, drop } = await databases('postgres')[0]!.create();
  const databaseUs = backendsCpuUs(db);
  const feed = await createFeed(db, LEGS, BOOKS);
  const run = async (fills: number): Promise<{ us: number; databaseUs: number }> => {
    const before = databaseUs();
    let [asideUs, asideDatabaseUs] = [0, 0];
    const us = await cpuUs(() =>
      feed.run(GENERATIONS, fills, async (work) => {
        // Looking at the database's processes is no part of a fill either.
        asideUs += await cpuUs(async () => {
          const from = databaseUs();
          await work();
          asideDatabaseUs += databaseUs() - from;
        });
      }),
    );
    const all = GENERATIONS * fills;
    return { us: (us - asideUs) / all, databaseUs: (databaseUs() - before - asideDatabaseUs) / all };
  };
  try {
    for (let round = 0; round < WARM_ROUNDS; round += 1) await run(BUSY);
    const bytesBefore = await fillBytes(db);
    const measured: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const [busy, alone] = [await run(BUSY), await run(1)];
      measured.push({
        busyUs: busy.us,
        aloneUs: alone.us,
        busyDatabaseUs: busy.databaseUs,
        aloneDatabaseUs: alone.databaseUs,
        commitUs: await bare.commitUs(),
        recoveryUs: await bare.recoveryUs(),
      });
    }
    const of = (name: keyof Round): number[] => measured.map((round) => round[name]);
    const rows = (name: 'busyUs' | 'aloneUs', database: 'busyDatabaseUs' | 'aloneDatabaseUs') => ({
      ms: median(of(name)) / 1_000,
      databaseMs: median(of(database)) / 1_000,
      ratio: { to: 'a recovery', value: medianRatio(of(name), of('recoveryUs')) },
    });
    const bytes = ((await fillBytes(db)) - bytesBefore) / (rounds * GENERATIONS * (BUSY + 1));
    const inCommits = medianRatio(of('busyUs'), of('commitUs'));
    return [
      {
        ...{ goal: '', figure: null, what: 'bare commit of one row', value: median(of('commitUs')), unit: 'us' },
        ...{ databaseMs: null, bound: null },
      },
      {
        ...{
          goal: 'S2',
          figure: null,
          what: `fill with ${LEGS} legs, ${BUSY} per scan / a bare commit`,
          value: inCommits,
        },
        ...{ unit: 'x', databaseMs: null, bound: { atMost: MOST_COMMITS } },
      },
      ...cpuRows('fill', `fill with ${LEGS} legs, ${BUSY} per scan`, rows('busyUs', 'busyDatabaseUs'), BARS),
      ...cpuRows('fillAlone', `fill with ${LEGS} legs, a scan for it alone`, rows('aloneUs', 'aloneDatabaseUs'), null),
      bytesRow('fillBytes', `fill with ${LEGS} legs, and its part of a book of ${BOOK_ORDERS} orders`, bytes, null),
    ];
  } finally {
    await feed.close();
    await drop();
  }
}

async function fillBytes(db: Parameters<typeof tableBytes>[0]): Promise<number> {
  await db.knex.raw('vacuum');
  const bytes = await tableBytes(db);
  return [...OF_FILLS, ...OF_BOOKS].reduce((sum, table) => sum + (bytes.get(table) ?? 0), 0);
}
