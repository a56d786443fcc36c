/** CPU time of planning a route among random sources, the search for its price included. */
import { bestRoute } from '../../core/swap/pricing.js';
import { seededRandom } from '../../test/support/random.js';
import { randomQuestion } from '../../test/support/worlds/random-questions.js';

const QUESTIONS = 1_000;
const WARM_UP = 200;

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
