/** What a caller gives beside the terms of a gasless swap: in plain JavaScript it can be anything, which must be found out before something is signed. */
import { CurvebookError } from './errors.js';
import type { GaslessQuote } from './quotes.js';

/** Callbacks for the steps of a gasless swap. What they return is awaited. */
export interface GaslessListeners {
  /** Before the signature is asked for. What it throws ends the swap, and comes as it is. */
  onQuote?(quote: GaslessQuote): unknown;
  /** Once the server has the signature. What it throws is the cause of CurvebookError `WAIT_ABORTED`, since the order stands. */
  onSubmitted?(orderId: string): unknown;
}

/** The listeners of a caller, none for null. Throws CurvebookError `BAD_ARGUMENT`. */
export function asListeners(value: unknown): GaslessListeners {
  const { onQuote, onSubmitted } = Object(value) as Record<string, unknown>;
  const isObject = typeof (value ?? {}) === 'object' && !isSignal(value);
  const areFunctions = [onQuote, onSubmitted].every((one) => typeof (one ?? asListeners) === 'function');
  if (isObject && areFunctions) return value ?? {};
  throw new CurvebookError('BAD_ARGUMENT', 'listeners are an object with the functions onQuote and onSubmitted');
}

/** The signal of a caller, undefined for null. Throws CurvebookError `BAD_ARGUMENT`. */
export function asSignal(value: unknown): AbortSignal | undefined {
  if (isSignal(value)) return value;
  if ((value ?? null) === null) return undefined;
  throw new CurvebookError('BAD_ARGUMENT', 'signal is an AbortSignal');
}

const isSignal = (value: unknown): value is AbortSignal =>
  typeof (Object(value) as { throwIfAborted?: unknown }).throwIfAborted === 'function';
