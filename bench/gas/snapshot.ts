/** The committed figures: `snapshots/gas.json`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { figure, type Row } from './rows.js';

const PATH = new URL('../../snapshots/gas.json', import.meta.url);

type Snapshot = Record<string, { gas: number; calldataBytes?: number }>;

/** One entry per row, in their order. Call data is left out where a row has none. */
export function snapshotOf(rows: readonly Row[]): Snapshot {
  return Object.fromEntries(
    rows.map(({ id, gas, calldataBytes }) => [id, calldataBytes === null ? { gas } : { gas, calldataBytes }]),
  );
}

export const readSnapshot = (): Snapshot => JSON.parse(readFileSync(PATH, 'utf8')) as Snapshot;

/** What the committed file says, as rows. */
export const snapshotRows = (): Row[] =>
  Object.entries(readSnapshot()).map(([id, { gas, calldataBytes }]) => ({
    ...figure(id, gas),
    calldataBytes: calldataBytes ?? null,
  }));

export const writeSnapshot = (rows: readonly Row[]): void =>
  writeFileSync(PATH, `${JSON.stringify(snapshotOf(rows), null, 2)}\n`);
