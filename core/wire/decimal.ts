/** Longest decimal that is read from the wire; the bound keeps every later product small. */
const MAX_WIRE_DECIMAL_CHARS = 40;
/** Most decimals of a price or a size on the wire. */
export const MAX_WIRE_DECIMALS = 8;

const [ZERO_CODE, NINE_CODE, POINT_CODE] = [0x30, 0x39, 0x2e];
const PLAIN = /^(\d+)(?:\.(\d+))?$/;

/**
 * The form of a price or size that clients sign: no zeros in front or at the end, no point in an integer, at most 8 decimals.
 * Null when the text is not a plain non-negative decimal (sign, exponent, bare point, a ninth decimal).
 */
export function canonicalDecimal(text: string): string | null {
  return isCanonical(text) ? text : canonicalForm(text);
}

function canonicalForm(text: string): string | null {
  const match = text.length <= MAX_WIRE_DECIMAL_CHARS ? PLAIN.exec(text) : null;
  if (match === null) return null;
  const whole = (match[1] ?? '').replace(/^0+(?=\d)/, '');
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  if (fraction.length > MAX_WIRE_DECIMALS) return null;
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Whether a decimal already has the form that clients sign, as nearly every one has. */
function isCanonical(text: string): boolean {
  const { length } = text;
  if (length === 0 || length > MAX_WIRE_DECIMAL_CHARS) return false;
  let point = -1;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= ZERO_CODE && code <= NINE_CODE) continue;
    if (code !== POINT_CODE || point >= 0) return false;
    point = index;
  }
  const whole = point < 0 ? length : point;
  const hasZeroInFront = whole > 1 && text.charCodeAt(0) === ZERO_CODE;
  if (whole === 0 || hasZeroInFront) return false;
  if (point < 0) return true;
  const decimals = length - point - 1;
  return decimals > 0 && decimals <= MAX_WIRE_DECIMALS && text.charCodeAt(length - 1) !== ZERO_CODE;
}

/** An exact decimal as replies carry it: always with a point, "2500" becomes "2500.0". */
export function withPoint(decimal: string): string {
  return decimal.includes('.') ? decimal : `${decimal}.0`;
}
