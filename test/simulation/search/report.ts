/** What many simulations came to, and which faults and ways of recovery they reached. */
import type { RunResult } from '../run.js';
import type { FaultRates } from '../world.js';

interface Report {
  add(result: RunResult): void;
  /** Faults that never struck though they could, and recoveries that were never seen. */
  missed(faults: FaultRates): string[];
  lines(): string[];
}

/** Ways of recovery that runs of any length together must take; what each is called in the counts. */
const RECOVERIES: readonly string[] = [
  'ledger reversed',
  'lock severed',
  'operator reconciles',
  'process ended',
  'says a group of actions failed to commit',
  'says a step failed',
  'says reconciled the ledger as the operator asked',
  'says the chain dropped mined transactions; sending them again',
  'says the node refused a transaction',
  'says using another RPC endpoint',
  'executed on-chain',
  'settled on-chain',
  'fill on-chain',
  'signed order filled on-chain',
  'signed order seen expired',
  'says an order ended unfilled',
  'verified',
  'token silent for good',
  'fence refused a write',
  'gateway promoted in place',
  'replica promoted',
  'archive imported',
  'archive had publications that the replica lacked',
  'import closed orders',
];

/** A curve is touched when nobody trades or quotes for most of its life, which is not so in every forty runs. */
const RARE_RECOVERIES: readonly string[] = ['touched on-chain'];
const MANY_RUNS = 160;

export function createReport(): Report {
  const counts = new Map<string, number>();
  const sums = { runs: 0, blocks: 0, simulatedMs: 0, cpuMs: 0, events: 0 };
  const failed: RunResult[] = [];
  return {
    add(result) {
      sums.runs += 1;
      sums.blocks += result.blocks;
      sums.simulatedMs += result.simulatedMs;
      sums.cpuMs += result.cpuMs;
      sums.events += result.events;
      for (const [what, times] of result.counts) {
        const before = counts.get(what) ?? 0;
        counts.set(what, what.startsWith('most ') ? Math.max(before, times) : before + times);
      }
      if (result.violations.length > 0) failed.push(result);
    },
    missed(faults) {
      const wanted = Object.entries(faults).flatMap(([name, rate]) =>
        typeof rate === 'number' ? (rate > 0 ? [`fault ${name}`] : []) : rate.map((lie: string) => `lie ${lie}`),
      );
      const rare = sums.runs >= MANY_RUNS ? RARE_RECOVERIES : [];
      return [...wanted, ...RECOVERIES, ...rare].filter((what) => !counts.has(what));
    },
    lines() {
      const perCpuHour = (value: number): string =>
        sums.cpuMs === 0 ? '-' : ((value * 3_600_000) / sums.cpuMs).toFixed(0);
      return [
        ...[...counts]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([what, times]) => `${String(times).padStart(8)}  ${what.slice(0, 100)}`),
        ...failed.map(({ seed, violations }) => `seed ${seed}: ${violations[0]}`),
        `${sums.runs} runs, ${sums.blocks} blocks, ${(sums.simulatedMs / 3_600_000).toFixed(2)} hours simulated, ${sums.events} events, ` +
          `${(sums.cpuMs / 1_000).toFixed(0)} s CPU: ${perCpuHour(sums.simulatedMs / 3_600_000)} hours and ${perCpuHour(sums.blocks)} blocks per CPU-hour; ` +
          `${failed.length} with a violation`,
      ];
    },
  };
}
