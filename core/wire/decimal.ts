/** Longest decimal that is read from the wire; the bound keeps every later product small. */
export const MAX_WIRE_DECIMAL_CHARS = 40;
/** Most decimals of a price or a size on the wire. */
export const MAX_WIRE_DECIMALS = 8;

const PLAIN = /^(\d+)(?:\.(\d+))?$/;

/**
 * The form of a price or size that clients sign: no zeros in front or at the end, no point in an integer, at most 8 decimals.
 * Null when the text is not a plain non-negative decimal (sign, exponent, bare point, a ninth decimal).
 */
export function canonicalDecimal(text: string): string | null {
  const match = text.length <= MAX_WIRE_DECIMAL_CHARS ? PLAIN.exec(text) : null;
  if (match === null) return null;
  const whole = (match[1] ?? '').replace(/^0+(?=\d)/, '');
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  if (fraction.length > MAX_WIRE_DECIMALS) return null;
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** An exact decimal as replies carry it: always with a point, "2500" becomes "2500.0". */
export function withPoint(decimal: string): string {
  return decimal.includes('.') ? decimal : `${decimal}.0`;
}
