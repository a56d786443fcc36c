/** The report of trials, as a table or as JSON. */
import type { TrialReport } from './trials.js';

/** Returns whether everything holds. */
export function printTrials(
  { rows, acknowledged, swaps, judgement, findings, said }: TrialReport,
  asJson: boolean,
): boolean {
  const { lost, doubled } = judgement;
  const holds = rows.every((row) => row.holds) && lost.length === 0 && doubled.length === 0 && findings.length === 0;
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ rows, acknowledged, swaps, lost, doubled, findings, said, holds })}\n`);
    return holds;
  }
  const line = (...cells: string[]): void => {
    const [role = '', fault = '', act = '', ...numbers] = cells;
    process.stdout.write(
      `${role.padEnd(10)}${fault.padEnd(13)}${act.padEnd(42)}${numbers.map((one) => one.padStart(8)).join('')}\n`,
    );
  };
  const sec = (value: number): string => (Number.isNaN(value) ? 'never' : value.toFixed(2));
  line('role', 'fault', 'seconds until', 'trials', 'p50', 'worst', 'goal', '');
  for (const { role, fault, act, trials, p50Sec, worstSec, goalSec, holds: ok } of rows) {
    const verdict = ok ? (goalSec === null ? '' : 'holds') : 'MISSED';
    line(role, fault, act, `${trials}`, sec(p50Sec), sec(worstSec), goalSec === null ? '' : `<= ${goalSec}`, verdict);
  }
  process.stdout.write(
    `${acknowledged} acknowledged actions: ${lost.length} lost, ${doubled.length} doubled; ${swaps} swaps\n`,
  );
  for (const one of lost) process.stdout.write(`lost: ${JSON.stringify(one)}\n`);
  for (const one of doubled) process.stdout.write(`doubled: ${one}\n`);
  process.stdout.write(
    findings.length === 0 ? 'verify is clean, no claim is beyond its balance, the ledger is ready\n' : '',
  );
  for (const one of findings) process.stdout.write(`${one}\n`);
  for (const [text, times] of said) process.stderr.write(`${times} x ${text}\n`);
  return holds;
}
