/** The benchmark as Markdown tables. */
import type { PostGas } from './gas.js';
import type { LateFillCost } from './late-fills.js';
import type { Errors, Times } from './measure.js';

/** Figures of a run; what is compared with goals is over all books that are at most 3 % wide. */
export interface Result {
  errors: Errors[];
  lateFills: LateFillCost[];
  times: Times[];
  posts: PostGas[];
  goals: { name: string; value: number; goal: number; met: boolean }[];
}

/** Overpay by knots, times, gas, goals. */
export function report(result: Result, knots: readonly number[]): string {
  return [errors(result, knots), lateFills(result), times(result), posts(result), goals(result)].join('\n');
}

function errors(result: Result, knots: readonly number[]): string {
  const names = [...new Set(result.errors.map(({ book, side }) => `${book} ${side}`))];
  const body = names.map((name) => {
    const rows = result.errors.filter(({ book, side }) => `${book} ${side}` === name);
    const [first] = rows;
    const cells = knots.map((count) => {
      const row = rows.find((one) => one.knots === count);
      return row === undefined ? '' : `${row.worstBps.toFixed(2)} / ${row.meanBps.toFixed(2)}`;
    });
    const lost = Math.max(...rows.map(({ lostBps }) => lostBps));
    const width = (first?.widthPercent ?? 0).toFixed(1);
    return [
      name,
      String(first?.levels),
      `${((first?.dollars ?? 0) / 1e6).toFixed(2)}`,
      width,
      ...cells,
      lost.toFixed(3),
    ];
  });
  const head = ['', 'levels', '$M', 'width %', ...knots.map((count) => `K=${count}`), 'most lost'];
  return table(
    'Overpay in bps: worst at any size from $100 / mean from $100 to $100,000; depth lost in bps',
    head,
    body,
  );
}

function lateFills({ lateFills: rows }: Result): string {
  const body = rows.map(({ book, side, ...row }) => [
    `${book} ${side}, ${row.lateFills}`,
    `${row.withheldMeanPercent.toFixed(2)} / ${row.withheldWorstPercent.toFixed(2)}`,
    `${row.raised.meanBps.toFixed(2)} / ${row.raised.worstBps.toFixed(2)}`,
    `${row.unraised.meanBps.toFixed(2)} / ${row.unraised.worstBps.toFixed(2)}`,
    row.unraised.lowestBps.toFixed(2),
  ]);
  const head = ['', 'withheld, %', 'overpay, bps', 'if not raised', 'lowest if not raised'];
  return table('After late fills at K=15, mean / worst; below zero the operator would pay', head, body);
}

function times({ times: rows }: Result): string {
  const body = rows.map(({ book, side, levels, readMs, compressMs, checkMs }) => [
    `${book} ${side}`,
    String(levels),
    readMs.toFixed(3),
    compressMs.toFixed(3),
    (compressMs / readMs).toFixed(1),
    checkMs.toFixed(3),
    (checkMs / readMs).toFixed(1),
  ]);
  const head = ['', 'levels', 'read, ms', 'compress, ms', 'ratio', 'check, ms', 'ratio'];
  return table('Time per side at K=15, medians, and ratios to one pass of reading the levels', head, body);
}

function posts({ posts: rows }: Result): string {
  if (rows.length === 0) return '';
  const body = rows.map(({ knots, changedWords, calldataBytes, fullGas, partialGas, modelError, chosen }) => [
    `${knots} knots, ${changedWords < 0 ? 'touch' : `${changedWords} words changed`}`,
    fullGas.toLocaleString('en-US'),
    partialGas?.toLocaleString('en-US') ?? '',
    modelError?.toLocaleString('en-US') ?? '',
    chosen,
    String(calldataBytes),
  ]);
  return table('Gas of a post', ['', 'whole', 'changed words only', 'model off by', 'chosen', 'call data bytes'], body);
}

function goals({ goals: rows }: Result): string {
  const body = rows.map(({ name, value, goal, met }) => [name, value.toFixed(3), String(goal), met ? 'met' : 'MISSED']);
  return table('Goals, over books up to 3 % wide', ['', 'measured', 'goal', ''], body);
}

function table(title: string, head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((_, i) => Math.max(4, ...[head, ...body].map((cells) => (cells[i] ?? '').length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [`### ${title}`, '', line(head), rule, ...body.map(line), ''].join('\n');
}
