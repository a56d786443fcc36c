/** The tables of docs/contracts.md, from the committed figures. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Snapshot } from './snapshot.js';

const PATH = new URL('../../docs/contracts.md', import.meta.url);
const BEGIN = '<!-- Made by `npm run bench:gas -- --write`. -->\n\n';
const END = '\n<!-- Here ends what is made. -->\n';

/** Rows of whole transactions: what each is called, and its id with `*` for pair and direction. */
const TRADES: readonly [what: string, pattern: string][] = [
  ['`swap` within the first segment', 'swap.*.segment1'],
  ['`swap` ending in segment 15', 'swap.*.segment15'],
  ['`swapExactOutput`', 'swapExactOutput.*'],
  ['signed order with a fee', 'gasless.*'],
  ['signed order, one Uniswap v3 pool', 'order.external.*.exactIn'],
  ['signed order, one Uniswap v4 pool', 'order.managed.*.exactIn'],
  ['signed order, curve and one pool', 'order.split.*.exactIn'],
  ['the two transfers alone', 'floor.*'],
  ['Uniswap v2, Router02', 'v2.*'],
  ['Uniswap v3, SwapRouter, a dollar, the tick stays', 'v3.*.sameTick'],
  ['Uniswap v3, SwapRouter, no tick crossed', 'v3.*'],
  ['Uniswap v4, minimal router, no tick crossed', 'v4.*'],
];

const COLUMNS: readonly [title: string, pair: string][] = [
  ['WETH to USDC', 'weth.sell'],
  ['USDC to WETH', 'weth.buy'],
  ['plain, selling base', 'plain.sell'],
  ['plain, buying base', 'plain.buy'],
];

/** Where there are several ids, the highest figure counts. */
const OTHERS: readonly [what: string, ...ids: string[]][] = [
  ['each further segment of a swap, on average at most', ...COLUMNS.map(([, pair]) => `swap.${pair}.perSegment`)],
  ['post of 7 knots per side', 'post.7'],
  ['post of 15 knots per side', 'post.15'],
  ['the same after a late fill that ends in the first segment of a side', 'post.15.carry1'],
  ['in segment 15 of a side', 'post.15.carry15'],
  ['in segment 1 of both sides', 'post.15.carries1'],
  ['in segment 15 of both sides', 'post.15.carries15'],
  ['post of 31 knots per side', 'post.31'],
  ['each further market of a batch', 'postBatch.perMarket'],
  ['touch', 'touch'],
  ['`preview` of the book: the curve alone', 'preview.weth'],
  ['`previewSwap` of the book, plain tokens', 'previewSwap.plain'],
  ['`previewSwap`, USDC out', 'previewSwap.weth'],
  ['`quote` of the entrypoint, plain tokens', 'quote.plain'],
  ['`quote`, USDC out', 'quote.weth'],
  ['deposit of WETH', 'deposit.weth'],
  ['`requestWithdraw`', 'requestWithdraw.weth'],
  ['`settleWithdraw`', 'settleWithdraw.weth'],
  ['`executeWithdraw` of WETH', 'executeWithdraw.weth'],
];

/** Both tables as Markdown, gas in thousands, rounded. Throws RangeError when a figure is missing. */
export function gasTables(snapshot: Snapshot): string {
  const entry = (id: string): Snapshot[string] => {
    const found = snapshot[id];
    if (found === undefined) throw new RangeError(`nothing was measured as ${id}`);
    return found;
  };
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const thousands = (gas: number): string => `${(gas / 1_000).toFixed(1)}k`;
  const trades = TRADES.map(([what, pattern]) => {
    const entries = COLUMNS.map(([, pair]) => entry(pattern.replace('*', pair)));
    const bytes = new Set(entries.map(({ calldataBytes }) => `${calldataBytes}`));
    return line([what, ...entries.map(({ gas }) => thousands(gas)), [...bytes].join(' / ')]);
  });
  const others = OTHERS.map(([what, ...ids]) => line([what, thousands(Math.max(...ids.map((id) => entry(id).gas)))]));
  return [
    line(['', ...COLUMNS.map(([title]) => title), 'call data bytes']).replace('|  |', '| |'),
    `|${'---|'.repeat(COLUMNS.length + 2)}\n`,
    ...trades,
    '\n| | gas |\n|---|---|\n',
    ...others,
  ].join('');
}

/** The present text of the guide between the marks. Throws RangeError when a mark is missing. */
export function documentedTables(): string {
  const { text, from, to } = readGuide();
  return text.slice(from, to);
}

/** Writes the tables into the guide. */
export function writeTables(snapshot: Snapshot): void {
  const { text, from, to } = readGuide();
  writeFileSync(PATH, `${text.slice(0, from)}${gasTables(snapshot)}${text.slice(to)}`);
}

function readGuide(): { text: string; from: number; to: number } {
  const text = readFileSync(PATH, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new RangeError('docs/contracts.md lacks the marks of its gas tables');
  return { text, from: begin + BEGIN.length, to: end };
}
