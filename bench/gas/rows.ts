/** What the benchmark measured, by id. */
import type { Measured } from './chain.js';

/** `calldataBytes` is null for a view, and for the cost of one more of something. */
export interface Row {
  id: string;
  gas: number;
  calldataBytes: number | null;
}

export const row = (id: string, { gas, calldataBytes }: Measured): Row => ({ id, gas, calldataBytes });
export const figure = (id: string, gas: number): Row => ({ id, gas: Math.round(gas), calldataBytes: null });
