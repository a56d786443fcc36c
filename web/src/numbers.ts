import { formatUnits, parseDecimal, powerOfTen } from '../../core/amounts.js';

/** An exact decimal: its digits as an integer, which stand for digits / 10^scale. */
export interface Exact {
  digits: bigint;
  scale: number;
}

/** Reads a decimal of the API, which may be negative. Throws AmountError. */
export function exact(text: string): Exact {
  const negative = text.startsWith('-');
  const { digits, scale } = parseDecimal(negative ? text.slice(1) : text);
  return { digits: negative ? -digits : digits, scale };
}

/** The digits of a decimal at a given scale; what lies below it is cut off, which only drawings may do. */
export function at(value: Exact, scale: number): bigint {
  return value.scale <= scale
    ? value.digits * powerOfTen(scale - value.scale)
    : value.digits / powerOfTen(value.scale - scale);
}

/** Sum without rounding. */
export function sum(values: readonly Exact[]): Exact {
  const scale = Math.max(0, ...values.map((value) => value.scale));
  return { digits: values.reduce((total, value) => total + at(value, scale), 0n), scale };
}

export function text({ digits, scale }: Exact): string {
  return formatUnits(digits, scale);
}

export function isEqual(a: Exact, b: Exact): boolean {
  return sum([a, { digits: -b.digits, scale: b.scale }]).digits === 0n;
}

const PARTS = 1_000_000_000n;

/** part / whole as a double, for pixels alone: a drawing has no more than a few thousand of them. */
export function share(part: bigint, whole: bigint): number {
  if (whole === 0n) return 0;
  return parseInt(((part * PARTS) / whole).toString(), 10) / 1e9;
}

/** A decimal with groups of thousands and at most `decimals` places, cut off, not rounded up, so that no more is shown than there is. */
export function shown(value: string, decimals?: number): string {
  const negative = value.startsWith('-');
  const [whole = '0', fraction = ''] = (negative ? value.slice(1) : value).split('.');
  const kept = decimals === undefined ? fraction : fraction.slice(0, decimals);
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${negative ? '−' : ''}${grouped}${kept === '' ? '' : `.${kept}`}`;
}

/** A price or size of a grid, with as many places as its step has, so that a column is read by its points. */
export function onGrid(value: string, step: string): string {
  const places = step.split('.')[1]?.length ?? 0;
  const [whole = '0', fraction = ''] = shown(value).split('.');
  return places === 0 ? shown(value) : `${whole}.${fraction.padEnd(places, '0')}`;
}

/** In lists of amounts; all digits are in the title. */
export const LIST_PLACES = 6;

/** In a column: cut off to so many places and filled up to them, so that the column is read by its points. */
export function inColumn(value: string, places = LIST_PLACES): string {
  const [whole = '0', fraction = ''] = shown(value, places).split('.');
  return `${whole}.${fraction.padEnd(places, '0')}`;
}

/** The value between two decimals, exactly. */
export function middle(a: string, b: string): string {
  const { digits, scale } = sum([exact(a), exact(b)]);
  return formatUnits(digits * 5n, scale + 1);
}

/** (b - a) in hundredths of a percent of a, to two places, cut off; "0" when a is zero. */
export function basisPoints(a: string, b: string): string {
  const scale = Math.max(exact(a).scale, exact(b).scale);
  const from = at(exact(a), scale);
  return from === 0n ? '0' : formatUnits(((at(exact(b), scale) - from) * 1_000_000n) / from, 2);
}

/** 0x1234…cdef */
export function shortHex(hex: string): string {
  return hex.length > 12 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex;
}
