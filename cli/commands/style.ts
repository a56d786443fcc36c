/** Colours on terminals that want them (https://no-color.org). */
import type { Writable } from 'node:stream';

const CODES = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const;

type Paint = (colour: keyof typeof CODES, text: string) => string;

/** Paints nothing on what is no terminal, on one that can't, and where NO_COLOR is set. */
export function paintFor(
  output: Writable & { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Paint {
  const isPlain = output.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  return isPlain ? (_, text) => text : (colour, text) => `\u001b[${CODES[colour]}m${text}\u001b[0m`;
}
