/** Decimals that callers name. Types do not hold them in plain JavaScript, where a number is passed as easily as a string. */
import { AmountError, parseDecimal, parseUnits } from '../../core/amounts.js';
import { CurvebookError } from './errors.js';

/** The text of a plain decimal. Throws CurvebookError `BAD_ARGUMENT`, also for numbers, since floating point is not exact. */
export function asDecimal(value: unknown, what: string): string {
  if (typeof value !== 'string') throw notDecimal(what, `as a string, not ${typeof value}`);
  return exact(what, () => {
    parseDecimal(value);
    return value;
  });
}

/** Base units of an amount in tokens. Throws CurvebookError `BAD_ARGUMENT` for what is no exact decimal of the token. */
export function asUnits(value: unknown, { decimals }: { decimals: number }, what: string): bigint {
  const text = asDecimal(value, what);
  return exact(what, () => parseUnits(text, decimals));
}

function exact<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AmountError)) throw error;
    throw notDecimal(what, error.message);
  }
}

const notDecimal = (what: string, why: string): CurvebookError =>
  new CurvebookError('BAD_ARGUMENT', `${what} must be an exact decimal: ${why}`);
