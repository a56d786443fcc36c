/**
 * What our routes bring beside Uniswap alone on the same pools. Both are planned by the same exact arithmetic, in random states, with gas at the same
 * price; that executed amounts equal planned ones to the unit is tested on the chain (test/keepers/executor/).
 */
import { toSafeInt } from '../../core/amounts.js';
import { bestRoute, isNoRoute } from '../../core/swap/pricing.js';
import { OWN } from '../../core/swap/source.js';
import { median } from '../gateway/measure.js';
import { seededRandom } from '../../test/support/random.js';
import { randomQuestion } from '../../test/support/worlds/random-questions.js';

const TRADES = 1_000;
const SOURCES = 6;
const SEED = 1_906;
/** Of a basis point. */
const PARTS = 1_000;

export interface PriceFigures {
  trades: number;
  /** How much more a sale brings, or how much less a purchase costs, after gas; in basis points. */
  meanBps: number;
  medianBps: number;
  worstBps: number;
  /** Trades that the pools alone have not the depth for; they are not among the others. */
  oursAlone: number;
}

/**
 * Over 1,000 trades that both can fill: our curve and five pools against the best split over these pools. Amounts reach from a ten-thousandth of all
 * the depth to all of it, where the pools alone move far: the mean is theirs, and the median that of a usual trade.
 */
export function measurePrices(): PriceFigures {
  const random = seededRandom(SEED);
  const gains: number[] = [];
  let oursAlone = 0;
  while (gains.length < TRADES) {
    const question = randomQuestion(random, SOURCES);
    const ours = bestRoute(question);
    if (isNoRoute(ours)) continue;
    const theirs = bestRoute({ ...question, sources: question.sources.filter(({ id }) => id !== OWN) });
    if (isNoRoute(theirs)) {
      oursAlone += 1;
      continue;
    }
    const [gain, whole] =
      question.kind === 'sell'
        ? [ours.outUnits - theirs.outUnits, theirs.outUnits]
        : [theirs.inUnits - ours.inUnits, theirs.inUnits];
    gains.push(toSafeInt((gain * 10_000n * BigInt(PARTS)) / whole) / PARTS);
  }
  const meanBps = gains.reduce((sum, bps) => sum + bps, 0) / gains.length;
  return { trades: gains.length, meanBps, medianBps: median(gains), worstBps: Math.min(...gains), oursAlone };
}
