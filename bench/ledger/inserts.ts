import { interleaved } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';
import { connectBare, recordInserts, type Recording } from './bare.js';
import type { Database } from './databases.js';
import { createFeed } from './feed.js';

/** A scan of two seconds in a busy market. */
const FILLS_PER_GENERATION = 4;
/** Generations of one round, so that a round takes about a second for any number of legs. */
const CASES = [
  { legs: 5, generations: 150 },
  { legs: 50, generations: 40 },
  { legs: 500, generations: 5 },
];

/**
 * The whole ledger, from the fills of a scan to the durable generation, against a loop that sends the inserts that it sent, in the same
 * transactions and over the same driver, to another database of the same kind.
 */
export async function measureInserts(database: Database): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { legs, generations } of CASES) rows.push(...(await measureCase(database, legs, generations)));
  return rows;
}

async function measureCase(database: Database, legs: number, generations: number): Promise<Row[]> {
  const [own, other] = [await database.create(), await database.create()];
  const recorder = recordInserts(own.db);
  const feed = await createFeed(own.db, legs);
  const bare = await connectBare(other.db);
  try {
    await bare.run(recorder.take());
    let recording: Recording = [];
    const rate = async (work: () => Promise<void>): Promise<number> => {
      const startedMs = performance.now();
      await work();
      return (generations * 1_000) / (performance.now() - startedMs);
    };
    const rates = await interleaved({
      ledger: async () => {
        const result = await rate(() => feed.run(generations, FILLS_PER_GENERATION));
        recording = recorder.take();
        return result;
      },
      bare: () => rate(() => bare.run(recording)),
    });
    const name = `${database.name}, ${legs} legs`;
    return [
      { goal: '', what: `${name}: generations`, value: rates.ledger, unit: '/s', bound: null },
      { goal: '', what: `${name}: fills`, value: rates.ledger * FILLS_PER_GENERATION, unit: '/s', bound: null },
      { goal: '', what: `${name}: generations, inserts alone`, value: rates.bare, unit: '/s', bound: null },
      {
        goal: 'L1',
        what: `${name}: ledger / bare inserts`,
        value: rates.ledger / rates.bare,
        unit: 'x',
        bound: { atLeast: 0.5 },
      },
    ];
  } finally {
    await bare.close();
    await feed.close();
    await own.drop();
    await other.drop();
  }
}
