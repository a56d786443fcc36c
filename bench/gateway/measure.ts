/** One line of the report: a measured ratio and the goal that it is held against. */
export interface Row {
  goal: string;
  what: string;
  value: number;
  unit: string;
  bound: { atLeast: number } | { atMost: number } | null;
}

export const ROUNDS = 5;

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

/** Runs the cases one after the other, again and again, so that all see the same neighbours. Median per case of what each returns. */
export async function interleaved<K extends string>(
  cases: Readonly<Record<K, () => number | Promise<number>>>,
  rounds: number = ROUNDS,
): Promise<Record<K, number>> {
  const names = Object.keys(cases) as K[];
  const results = new Map<K, number[]>(names.map((name) => [name, []]));
  for (const name of names) await cases[name]();
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) results.get(name)?.push(await cases[name]());
  }
  return Object.fromEntries(names.map((name) => [name, median(results.get(name) ?? [])])) as Record<K, number>;
}

export const holds = ({ value, bound }: Row): boolean =>
  bound === null || ('atLeast' in bound ? value >= bound.atLeast : value <= bound.atMost);
