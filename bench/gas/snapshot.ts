/** The committed figures: `snapshots/gas.json`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Row } from './rows.js';

const PATH = new URL('../../snapshots/gas.json', import.meta.url);

export type Snapshot = Record<string, { gas: number; calldataBytes?: number }>;

/** One entry per row, in their order. Call data is left out where a row has none. */
export function snapshotOf(rows: readonly Row[]): Snapshot {
  return Object.fromEntries(
    rows.map(({ id, gas, calldataBytes }) => [id, calldataBytes === null ? { gas } : { gas, calldataBytes }]),
  );
}

export const readSnapshot = (): Snapshot => JSON.parse(readFileSync(PATH, 'utf8')) as Snapshot;

/** One line for each row that differs, is new or is gone. */
export function driftOf(committed: Snapshot, measured: Snapshot): string[] {
  const text = (entry: Snapshot[string] | undefined): string =>
    entry === undefined ? 'nothing' : `${entry.gas} gas, ${entry.calldataBytes ?? 'no'} bytes`;
  return [...new Set([...Object.keys(committed), ...Object.keys(measured)])]
    .filter((id) => text(committed[id]) !== text(measured[id]))
    .map((id) => `${id}: committed ${text(committed[id])}, measured ${text(measured[id])}`);
}

/** Writes the committed file again. */
export function writeSnapshot(rows: readonly Row[]): void {
  mkdirSync(new URL('.', PATH), { recursive: true });
  writeFileSync(PATH, `${JSON.stringify(snapshotOf(rows), null, 2)}\n`);
}
