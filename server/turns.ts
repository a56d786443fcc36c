/** Lets only so much run at the same time; the rest waits for its turn, in its order. */
interface Turns {
  /** Runs the work when its turn comes, and ends as it does. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** What was handed over and has not ended. */
  waiting(): number;
}

/** Turns for `atOnce` at the same time. How many wait is for the caller to bound. */
export function createTurns(atOnce: number): Turns {
  const waits: (() => void)[] = [];
  let running = 0;
  let open = 0;

  async function run<T>(work: () => Promise<T>): Promise<T> {
    open += 1;
    if (running >= atOnce) await new Promise<void>((resolve) => waits.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      open -= 1;
      const next = waits.shift();
      // The turn goes on to the next one.
      if (next === undefined) running -= 1;
      else next();
    }
  }

  return { run, waiting: () => open };
}
