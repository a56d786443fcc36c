import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { median, ROUNDS } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';
import type { Database } from './databases.js';
import { createFeed } from './feed.js';

const LEGS = 5;
const FILLS_PER_GENERATION = 4;
/** Fills whose time is compared, at the beginning and at the end of a history. */
const WINDOW_FILLS = 1_000;
/** Number of samples for the slope of memory. */
const SAMPLES = 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function heapBytes(): Promise<number> {
  collectGarbage();
  // Memory of native objects is released in another turn of the event loop.
  await nextTurn();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Slope of the least-squares line. */
function slope(points: readonly { x: number; y: number }[]): number {
  const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const covariance = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0);
  return covariance / points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
}

/**
 * The cost of a fill after a long history against its cost without one, and how much memory each fill keeps permanently. The last windows of the
 * history and the first ones of fresh databases alternate, so that other work of the machine affects both; each figure is the median of five.
 */
export async function measureHistory(database: Database, fills: number): Promise<Row[]> {
  const generations = WINDOW_FILLS / FILLS_PER_GENERATION;
  const before = fills - ROUNDS * WINDOW_FILLS;
  if (before < SAMPLES * FILLS_PER_GENERATION) throw new RangeError(`a history of ${fills} fills is too short`);
  const window = async (feed: Awaited<ReturnType<typeof createFeed>>): Promise<number> => {
    const startedMs = performance.now();
    await feed.run(generations, FILLS_PER_GENERATION);
    return performance.now() - startedMs;
  };
  const old = await database.create();
  const feed = await createFeed(old.db, LEGS);
  try {
    const points: { x: number; y: number }[] = [];
    for (let sample = 1; sample <= SAMPLES; sample += 1) {
      await feed.run(Math.round(before / SAMPLES / FILLS_PER_GENERATION), FILLS_PER_GENERATION);
      points.push({ x: (sample * before) / SAMPLES, y: await heapBytes() });
    }
    const [first, last]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      const fresh = await database.create();
      const freshFeed = await createFeed(fresh.db, LEGS);
      first.push(await window(freshFeed));
      last.push(await window(feed));
      await freshFeed.close();
      await fresh.drop();
    }
    const name = `${database.name}, ${fills.toLocaleString('en-US')} fills`;
    return [
      {
        goal: 'L2',
        what: `${name}: last 1,000 / first 1,000`,
        value: median(last) / median(first),
        unit: 'x',
        bound: { atMost: 1.3 },
      },
      // The first fifth is left out: meanwhile caches of bounded size fill up.
      {
        goal: '',
        what: `${name}: heap per fill`,
        value: slope(points.slice(SAMPLES / 5)),
        unit: 'B',
        bound: null,
      },
    ];
  } finally {
    await feed.close();
    await old.drop();
  }
}
