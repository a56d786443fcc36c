import { median, medianRatio, ROUNDS } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';
import { connectBare, recordInserts } from './bare.js';
import type { Database } from './databases.js';
import { createFeed } from './feed.js';

/** A scan of two seconds in a busy market. */
const FILLS_PER_GENERATION = 4;
/** Fills of so many legs, and how many generations of them are one round. */
interface Case {
  legs: number;
  generations: number;
}

/** A round takes about a second for any number of legs. */
const CASES: readonly Case[] = [
  { legs: 5, generations: 300 },
  { legs: 50, generations: 40 },
  { legs: 500, generations: 5 },
];

/**
 * The whole ledger, from the fills of a scan to the durable generation, against a loop that sends the inserts that it sent, in the same
 * transactions and over the same driver, to another database of the same kind.
 */
export async function measureInserts(
  database: Database,
  cases: readonly Case[] = CASES,
  rounds: number = ROUNDS,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const one of cases) rows.push(...(await measureCase(database, one, rounds)));
  return rows;
}

async function measureCase(database: Database, { legs, generations }: Case, rounds: number): Promise<Row[]> {
  const [own, other] = [await database.create(), await database.create()];
  const recorder = recordInserts(own.db);
  const feed = await createFeed(own.db, legs);
  const bare = await connectBare(other.db);
  try {
    await bare.run(recorder.take());
    const rate = async (work: () => Promise<void>): Promise<number> => {
      const startedMs = performance.now();
      await work();
      return (generations * 1_000) / (performance.now() - startedMs);
    };
    // Always in this order: the bare loop sends what the ledger has just sent, each row once. The first round warms up.
    const rates: Record<'ledger' | 'bare', number[]> = { ledger: [], bare: [] };
    for (let round = 0; round <= rounds; round += 1) {
      const ledger = await rate(() => feed.run(generations, FILLS_PER_GENERATION));
      const recording = recorder.take();
      const alone = await rate(() => bare.run(recording));
      if (round === 0) continue;
      rates.ledger.push(ledger);
      rates.bare.push(alone);
    }
    const name = `${database.name}, ${legs} legs`;
    return [
      { goal: '', what: `${name}: generations`, value: median(rates.ledger), unit: '/s', bound: null },
      { goal: '', what: `${name}: fills`, value: median(rates.ledger) * FILLS_PER_GENERATION, unit: '/s', bound: null },
      { goal: '', what: `${name}: generations, inserts alone`, value: median(rates.bare), unit: '/s', bound: null },
      {
        goal: 'L1',
        what: `${name}: ledger / bare inserts`,
        value: medianRatio(rates.ledger, rates.bare),
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
