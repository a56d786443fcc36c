/** CPU time of planning a route among random sources, the search for its price included, and of planning one for a new account. */
import { median } from '../gateway/measure.js';
import { bestRoute } from '../../core/swap/pricing.js';
import { planSent } from '../../liquidity/checked-plan.js';
import { planRoute } from '../../liquidity/planner.js';
import { seededRandom } from '../../test/support/random.js';
import { randomQuestion } from '../../test/support/worlds/random-questions.js';
import {
  CROSSING_HEAD,
  CROSSING_UNITS,
  crossingPools,
  crossingSale,
  marketOf,
  newcomersWay,
} from '../../test/support/worlds/crossing-pools.js';

const QUESTIONS = 1_000;
const WARM_UP = 200;
/** Questions of new accounts, of as many amounts. */
const NEWCOMERS = 100;
const POOLS = 5;

/** In milliseconds of CPU per question. */
interface PlanFigures {
  sources: number;
  meanMs: number;
  p99Ms: number;
}

/** Over 1,000 random states with so many sources, of which the first is our own curve. */
export function measurePlans(sources: number): PlanFigures {
  const random = seededRandom(sources);
  const questions = Array.from({ length: QUESTIONS }, () => randomQuestion(random, sources));
  for (const question of questions.slice(0, WARM_UP)) bestRoute(question);
  const times = questions
    .map((question) => {
      const before = process.cpuUsage();
      bestRoute(question);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    })
    .sort((a, b) => a - b);
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return { sources, meanMs: mean, p99Ms: times[Math.floor(times.length * 0.99)] ?? mean };
}

/** In milliseconds of CPU per question: the best route for whoever asks, and the best that is sent for a new account. */
interface NewcomerFigures {
  anyoneMs: number;
  newcomerMs: number;
}

/**
 * A pair that trades at five pools and at our own curve, with amounts that cross more and more ticks of each: most of what a new account may take
 * has too many conditions for its credit, and is ruled out by counting them.
 */
export async function measureNewcomers(): Promise<NewcomerFigures> {
  const way = newcomersWay;
  const { feeOf, boundOf: _, way: _way, ...sale } = crossingSale(way);
  const amounts = Array.from({ length: NEWCOMERS }, (_one, i) => (CROSSING_UNITS * BigInt(i + 1)) / BigInt(NEWCOMERS));
  // New pools for each question, as of another block, so that no answer is kept.
  const cpuMs = async (ask: (amountUnits: bigint, market: ReturnType<typeof marketOf>) => Promise<unknown>) => {
    const markets = amounts.map(() => marketOf(crossingPools(POOLS)));
    const before = process.cpuUsage();
    for (const [i, amountUnits] of amounts.entries()) await ask(amountUnits, markets[i]!);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / NEWCOMERS;
  };
  const anyone = () =>
    cpuMs((amountUnits, market) =>
      planRoute(market, { ...sale, amountUnits, feeOf: (ids) => feeOf(ids, 0) }, CROSSING_HEAD, 0),
    );
  const newcomer = () =>
    cpuMs((amountUnits, market) => planSent(market, { ...crossingSale(way), amountUnits }, CROSSING_HEAD, 0));
  await anyone();
  await newcomer();
  const [anyones, newcomers]: [number[], number[]] = [[], []];
  for (let round = 0; round < 5; round++) {
    anyones.push(await anyone());
    newcomers.push(await newcomer());
  }
  return { anyoneMs: median(anyones), newcomerMs: median(newcomers) };
}
