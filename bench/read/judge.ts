import { median, medianRatio } from '../gateway/measure.js';

/** What one server did in one slice of a round. */
export interface Slice {
  requestsPerSec: number;
  /** CPU time of the server's process, all threads, and of the PostgreSQL processes that work for it. */
  cpuUsPerRequest: number;
}

/** One slice each, measured right after one another: the bare route, the endpoint, and the endpoint with a short history. */
export interface Round {
  bare: Slice;
  full: Slice;
  few: Slice;
}

export interface Judged {
  requestsPerSec: number;
  bareRequestsPerSec: number;
  /** Of the bare route's requests per second, in the same rounds. */
  ratio: number;
  /** The bare route's CPU time per request, divided by this endpoint's. The client's speed has no influence on it. */
  cpuRatio: number;
  /** Time of a request, divided by that with few fills. */
  historyTime: number;
  /** The same for CPU time. */
  historyCpu: number;
  holds: boolean;
}

/**
 * Medians over all rounds; ratios are computed within each round, so that what slows a whole round cancels out. A goal must be reached in requests
 * per second, which is what is promised, and in CPU time, which does not depend on other work of the machine. The cost of a long history is
 * compared with its goal in CPU time.
 */
export function judge(rounds: readonly Round[], goals: { bare: number | null; historyCost: number }): Judged {
  const of = (value: (round: Round) => number): number[] => rounds.map(value);
  const rates = of(({ full }) => full.requestsPerSec);
  const bareRates = of(({ bare }) => bare.requestsPerSec);
  const cpuRatio = medianRatio(
    of(({ bare }) => bare.cpuUsPerRequest),
    of(({ full }) => full.cpuUsPerRequest),
  );
  const ratio = medianRatio(rates, bareRates);
  const historyTime = medianRatio(
    of(({ few }) => few.requestsPerSec),
    rates,
  );
  const historyCpu = medianRatio(
    of(({ full }) => full.cpuUsPerRequest),
    of(({ few }) => few.cpuUsPerRequest),
  );
  return {
    requestsPerSec: median(rates),
    bareRequestsPerSec: median(bareRates),
    ratio,
    cpuRatio,
    historyTime,
    historyCpu,
    holds: (goals.bare === null || Math.min(ratio, cpuRatio) >= goals.bare) && historyCpu <= goals.historyCost,
  };
}
