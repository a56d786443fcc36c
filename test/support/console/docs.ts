/** Code blocks of the documentation, and what is compared of the output that they show. */
import { isDeepStrictEqual } from 'node:util';

/** A fenced block as it stands in a Markdown file. */
export interface Block {
  /** Line of the opening fence, from 1. */
  line: number;
  /** Empty when the fence names none. */
  language: string;
  code: string;
  /** Why nothing runs it: from a comment `<!-- not run: <reason> -->` right before the fence. Null without one. */
  notRun: string | null;
}

const FENCE = /^ *```(\S*) *$/;
const NOT_RUN = /^ *<!-- not run: (.+) -->$/;

/** All blocks of a file, in their order. Throws for a fence without an end, and for a comment that stands before no fence. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  let comment: { line: number; reason: string } | null = null;
  for (const [index, text] of markdown.split('\n').entries()) {
    const fence = FENCE.exec(text);
    if (open !== null) {
      if (fence === null) open.code += `${text}\n`;
      else open = null;
      continue;
    }
    if (fence !== null) {
      open = { line: index + 1, language: fence[1]!, code: '', notRun: comment?.reason ?? null };
      blocks.push(open);
      comment = null;
    }
    if (comment !== null) throw new Error(`line ${comment.line}: no block follows the comment`);
    const reason = NOT_RUN.exec(text)?.[1];
    if (reason !== undefined) comment = { line: index + 1, reason };
    else if (/^ *<!-- *not.run/i.test(text)) throw new Error(`line ${index + 1}: not of the form <!-- not run: … -->`);
  }
  if (open !== null) throw new Error(`line ${open.line}: the block has no end`);
  if (comment !== null) throw new Error(`line ${comment.line}: no block follows the comment`);
  return blocks;
}

/** A command after `$ ` with the lines that are shown as its output. */
interface Shown {
  command: string;
  output: string[];
}

/** The commands of a console block. Throws when it does not begin with one. */
export function commandsOf(code: string): Shown[] {
  const commands: Shown[] = [];
  for (const line of code.trimEnd().split('\n')) {
    if (line.startsWith('$ ')) commands.push({ command: line.slice(2), output: [] });
    else if (commands.length > 0) commands.at(-1)!.output.push(line);
    else throw new Error(`no command comes before: ${line}`);
  }
  return commands;
}

/** A printed line with placeholders for what differs from run to run: numbers, hex, the number of a fill's legs, its side. */
export function lineShape(line: string): string {
  return line
    .replace(/0x[0-9a-fA-F]+/g, 'HEX')
    .replace(/-?\d+(\.\d+)?/g, 'N')
    .replace(/\[HEX [^\]]*\]/, '[legs]')
    .replace(/ (buy|sell) /, ' side ');
}

/** JSON as the documentation shows it: `,…` leaves out elements or members that are of no other kind, `{…}` a whole value. */
export function parseShown(text: string): unknown {
  return JSON.parse(text.replaceAll('{…}', '"…"').replaceAll('[…]', '"…"').replaceAll(',…]', ']')) as unknown;
}

/**
 * Lists where an answer has another shape than the one shown; empty if there is no difference. Objects must have the same keys, and values the same
 * type, but either may be null. Each item of a shown list is compared with the real item at its place, or with the first one if there are fewer.
 */
export function shapeDifferences(shown: unknown, real: unknown, path = '$'): string[] {
  if (shown === '…' || shown === null || real === null) return [];
  const kind = (value: unknown): string => (Array.isArray(value) ? 'list' : typeof value);
  if (kind(shown) !== kind(real)) return [`${path} is shown as a ${kind(shown)}, but is a ${kind(real)}`];
  if (Array.isArray(shown) && Array.isArray(real)) {
    if (shown.length > 0 && real.length === 0) return [`${path} is shown with elements, but has none`];
    return shown.flatMap((one, i) => shapeDifferences(one, real[i] ?? real[0], `${path}[${i}]`));
  }
  if (typeof shown !== 'object' || typeof real !== 'object') return [];
  const [wanted, found] = [Object.keys(shown).sort(), Object.keys(real).sort()];
  if (!isDeepStrictEqual(wanted, found))
    return [`${path} is shown with ${wanted.join(' ')}, but has ${found.join(' ')}`];
  return wanted.flatMap((key) => shapeDifferences(Reflect.get(shown, key), Reflect.get(real, key), `${path}.${key}`));
}
