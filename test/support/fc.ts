import { randomInt } from 'node:crypto';

/** The runner may load this module more than once; all instances share the seed through the environment. */
if (!process.env.SEED) {
  process.env.SEED = String(randomInt(2 ** 31));
  console.log(`    fast-check: SEED=${process.env.SEED}`);
}
const seed = Number.parseInt(process.env.SEED, 10);
const runsFactor = Math.max(1, Number.parseInt(process.env.RUNS ?? '1', 10));

/**
 * Parameters of a fast-check run. The seed is that of SEED, or random and printed once, so that a run can be repeated; RUNS multiplies
 * the number of runs.
 */
export const fcOptions = (runs: number): { numRuns: number; seed: number } => ({ numRuns: runs * runsFactor, seed });
