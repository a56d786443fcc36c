/** One line of the report: a measured ratio and its goal. */
export interface Row {
  goal: string;
  what: string;
  value: number;
  unit: string;
  bound: { atLeast: number } | { atMost: number } | null;
}

export const ROUNDS = 9;

/** CPU time of this process spent in `run`, in microseconds. */
export async function cpuUs(run: () => void | Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

type Cases<K extends string> = Readonly<Record<K, () => number | Promise<number>>>;

/**
 * Runs all cases in turn, `rounds` times, so that other work of the machine affects them alike; every second round in reverse order, so that no
 * case always follows the same one. Returns what each case returned, by round; the first round is dropped.
 */
export async function inRounds<K extends string>(cases: Cases<K>, rounds: number): Promise<Record<K, number[]>> {
  const names = Object.keys(cases) as K[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<K, number[]>;
  for (const name of names) await cases[name]();
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) results[name].push(await cases[name]());
  }
  return results;
}

/** The cases in rounds, and the median per case. */
export async function interleaved<K extends string>(
  cases: Cases<K>,
  rounds: number = ROUNDS,
): Promise<Record<K, number>> {
  const results = Object.entries<number[]>(await inRounds(cases, rounds));
  return Object.fromEntries(results.map(([name, values]) => [name, median(values)])) as Record<K, number>;
}

/** Median of the ratios within each round: what slows a whole round down cancels out. */
export function medianRatio(dividends: readonly number[], divisors: readonly number[]): number {
  return median(dividends.map((dividend, round) => dividend / divisors[round]!));
}

export const holds = ({ value, bound }: Row): boolean =>
  bound === null || ('atLeast' in bound ? value >= bound.atLeast : value <= bound.atMost);
