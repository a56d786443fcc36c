/** What edges take off the sequencer, from the stored figures of bench:edges: CPU time per single order with each number of edges. */
import { readFileSync, writeFileSync } from 'node:fs';
import { MOST_USE } from './model.js';

/** CPU milliseconds per single order of each process; of the edges together. */
interface EdgeCosts {
  edges: number;
  gatewayMs: number;
  edgesMs: number;
  natsMs: number;
  databaseMs: number;
}

/** A measured number of edges, and what follows from its costs. */
interface EdgeShares extends EdgeCosts {
  /** The gateway's part of the CPU time of all processes but the database's. */
  gatewayShare: number;
  /** Single orders a second that fill a core of the gateway to `MOST_USE`. */
  ordersPerSec: number;
  /** Edges on a core of their own each that so many orders need. */
  edgesNeeded: number;
}

const PATH = new URL('../edges/figures.json', import.meta.url);

/** The costs without an edge come first. */
export const readEdgeCosts = (): EdgeCosts[] => JSON.parse(readFileSync(PATH, 'utf8')) as EdgeCosts[];

export function writeEdgeCosts(rows: readonly EdgeCosts[]): void {
  const rounded = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number.parseFloat(value.toPrecision(3))])),
  );
  writeFileSync(PATH, `${JSON.stringify(rounded, null, 2)}\n`);
}

export function edgeShares(costs: EdgeCosts): EdgeShares {
  const { gatewayMs, edgesMs, natsMs } = costs;
  const ordersPerSec = (MOST_USE * 1_000) / gatewayMs;
  return {
    ...costs,
    gatewayShare: gatewayMs / (gatewayMs + edgesMs + natsMs),
    ordersPerSec,
    edgesNeeded: Math.ceil((ordersPerSec * edgesMs) / 1_000 / MOST_USE),
  };
}
