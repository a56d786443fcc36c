/** Measured figures that the model of docs/scale.md is computed with, and where each is from. `--write` renews those of bench:scale. */
import { readFileSync, writeFileSync } from 'node:fs';
import { readSnapshot } from '../gas/snapshot.js';
import type { Figures } from './model.js';
import type { Figure, ScaleRow } from './rows.js';

/** A figure as it was measured, and by what. */
interface Measured {
  value: number;
  unit: 'ms' | 'B' | 'gas';
  what: string;
  source: string;
}

const PATH = new URL('./figures.json', import.meta.url);

/** What was stored of benchmarks, by name of the figure of the model. */
type Stored = Record<keyof Omit<Figures, GasFigure>, Measured>;
type GasFigure = 'postGas' | 'postPerMarketGas' | 'touchPerMarketGas' | 'postBytes' | 'postPerMarketBytes';

const readStored = (): Stored => JSON.parse(readFileSync(PATH, 'utf8')) as Stored;

/** Every figure with its source; those of gas are of the committed snapshot. */
export function measuredFigures(): Record<keyof Figures, Measured> {
  const gas = readSnapshot();
  const of = (id: string) => {
    const entry = gas[id];
    if (entry === undefined) throw new RangeError(`nothing was measured as ${id}`);
    return entry;
  };
  const bytesOf = (id: string): number => of(id).calldataBytes ?? 0;
  const row = (value: number, unit: Measured['unit'], what: string): Measured => ({
    value,
    unit,
    what,
    source: 'bench:gas',
  });
  return {
    ...readStored(),
    postGas: row(of('post.15').gas, 'gas', 'post of one market, 15 knots per side'),
    postPerMarketGas: row(of('postBatch.perMarket').gas, 'gas', 'each further market of a batch'),
    touchPerMarketGas: row(of('touch.perMarket').gas, 'gas', 'each market that is prolonged in a batch'),
    postBytes: row(bytesOf('post.15'), 'B', 'call data of a post of one market'),
    postPerMarketBytes: row(
      (bytesOf('postBatch.15x4') - bytesOf('postBatch.15x1')) / 3,
      'B',
      'call data of each further market',
    ),
  };
}

/** Plain values of the figures. */
export function figureValues(measured: Record<keyof Figures, Measured> = measuredFigures()): Figures {
  return Object.fromEntries(Object.entries(measured).map(([name, { value }]) => [name, value])) as unknown as Figures;
}

/** Which figures of the model a run of bench:scale measures. */
const FROM_RUN: readonly [keyof Stored, Figure, 'value' | 'databaseMs'][] = [
  ['modify50Ms', 'modify50', 'value'],
  ['modify50DatabaseMs', 'modify50', 'databaseMs'],
  ['limitsMs', 'limits', 'value'],
  ['limitsDatabaseMs', 'limits', 'databaseMs'],
  ['fillMs', 'fill', 'value'],
  ['fillDatabaseMs', 'fill', 'databaseMs'],
  ['scanMs', 'quietScan', 'value'],
  ['quietScanDatabaseMs', 'quietScan', 'databaseMs'],
  ['listedMarketMs', 'listedMarket', 'value'],
  ['listedMarketDatabaseMs', 'listedMarket', 'databaseMs'],
  ['postRoundMs', 'postRound', 'value'],
  ['postRoundDatabaseMs', 'postRound', 'databaseMs'],
  ['postMarketMs', 'postMarket', 'value'],
  ['postMarketDatabaseMs', 'postMarket', 'databaseMs'],
  ['batchBytes', 'batchBytes', 'value'],
  ['fillBytes', 'fillBytes', 'value'],
  ['scanBytes', 'scanBytes', 'value'],
  ['publicationBytes', 'publicationBytes', 'value'],
  ['heapPerOrderBytes', 'heapPerOrder', 'value'],
];

/** Stores what a run measured; the figures of other benchmarks stay. */
export function writeFigures(rows: readonly ScaleRow[]): void {
  const stored = readStored();
  for (const [name, figure, column] of FROM_RUN) {
    const value = rows.find((row) => row.figure === figure)?.[column];
    if (value !== undefined && value !== null)
      stored[name] = { ...stored[name], value: Number.parseFloat(value.toPrecision(3)) };
  }
  writeFileSync(PATH, `${JSON.stringify(stored, null, 2)}\n`);
}
