/** The benchmark as tables. */
import { LIMITS, partsOfSwap } from './limits.js';
import type { RouteName } from './routes.js';
import type { Row } from './rows.js';

const number = (value: number): string => value.toLocaleString('en-US');

/** Markdown tables: swaps beside other venues with ratios, further segments, posts, quotes, the custodian, limits, the parts of a swap. */
export function report(rows: readonly Row[]): string {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const of = (id: string): Row => {
    const found = byId.get(id);
    if (found === undefined) throw new Error(`nothing measured ${id}`);
    return found;
  };
  return [swaps(of), routes(of), segments(of), posts(of), others(of), limits(of), bound(of)].join('\n');
}

type Lookup = (id: string) => Row;

const COLUMNS = ['weth.sell', 'weth.buy', 'plain.sell', 'plain.buy'] as const;

/** Name, and the id of a column. */
const VENUES: readonly [string, (column: string) => string][] = [
  ['Curvebook, within the first segment', (column) => `swap.${column}.segment1`],
  ['Curvebook, the same as exact output', (column) => `swapExactOutput.${column}`],
  ['Curvebook, signed order with a fee', (column) => `gasless.${column}`],
  ['the two transfers alone', (column) => `floor.${column}`],
  ['Uniswap v2, Router02', (column) => `v2.${column}`],
  ['Uniswap v3, SwapRouter, a dollar, the tick stays', (column) => `v3.${column}.sameTick`],
  ['Uniswap v3, SwapRouter, no tick crossed', (column) => `v3.${column}`],
  ['Uniswap v3, SwapRouter, one tick crossed', (column) => `v3.${column}.crossing1`],
  ['Uniswap v4, minimal router, no tick crossed', (column) => `v4.${column}`],
  ['Uniswap v4, minimal router, one tick crossed', (column) => `v4.${column}.crossing1`],
];

function swaps(of: Lookup): string {
  const ours = VENUES[0]![1];
  const body = VENUES.map(([name, id]) => [
    name,
    ...COLUMNS.map((column) => {
      const { gas } = of(id(column));
      return `${number(gas)} (${(gas / of(ours(column)).gas).toFixed(2)})`;
    }),
    String(of(id(COLUMNS[0])).calldataBytes),
  ]);
  return table(
    'Swaps: gas of the whole transaction, and its ratio to the first row',
    ['', 'WETH to USDC', 'USDC to WETH', 'plain, selling base', 'plain, buying base', 'call data bytes'],
    body,
  );
}

const ROUTE_ROWS: readonly [string, RouteName | 'v3'][] = [
  ['our own curve', 'own'],
  ['one pool of Uniswap v3', 'external'],
  ['two pools', 'external2'],
  ['our own curve and a pool', 'split'],
  ['our own curve and two pools', 'split2'],
  ['one pool of Uniswap v4', 'managed'],
  ['our own curve and a pool of Uniswap v4', 'managedSplit'],
  ["Uniswap v3's SwapRouter by itself, paid by the taker", 'v3'],
];

/** Signed orders with a fee, exact input, beside Uniswap's own router in the same pool. */
export function routes(of: Lookup): string {
  const idOf = (route: RouteName | 'v3', column: string) =>
    route === 'v3' ? `v3.${column}` : `order.${route}.${column}.exactIn`;
  const body = ROUTE_ROWS.map(([name, route]) => [
    name,
    ...COLUMNS.map((column) => {
      const { gas } = of(idOf(route, column));
      return `${number(gas)} (${(gas / of(`v3.${column}`).gas).toFixed(2)})`;
    }),
    String(of(idOf(route, COLUMNS[0])).calldataBytes),
  ]);
  return table(
    "Signed orders by route: gas of the whole transaction, and its ratio to Uniswap's router",
    ['', 'WETH to USDC', 'USDC to WETH', 'plain, selling base', 'plain, buying base', 'call data bytes'],
    body,
  );
}

const SEGMENTS = ['segment1', 'segment2', 'segment7', 'segment8', 'segment15', 'segment16', 'segment31', 'perSegment'];

function segments(of: Lookup): string {
  const name = (segment: string) =>
    segment === 'perSegment' ? 'per further segment, at most' : `ends in ${segment.slice(7)}`;
  const body = SEGMENTS.map((segment) => [
    name(segment),
    ...COLUMNS.map((column) => number(of(`swap.${column}.${segment}`).gas)),
  ]);
  body.push([
    'a taker with a fee',
    ...COLUMNS.slice(0, 2).map((column) => number(of(`swap.${column}.fee`).gas)),
    '',
    '',
  ]);
  return table(
    'Swaps by the segment of 31 in which they end',
    ['', 'WETH to USDC', 'USDC to WETH', 'plain, selling base', 'plain, buying base'],
    body,
  );
}

const POSTS: readonly [string, string][] = [
  ['post.first', 'first post of a market, 15 knots per side'],
  ['post.7', '7 knots per side'],
  ['post.15', '15 knots per side'],
  ['post.15.carry1', 'of that, after a late fill that ends in the first segment of a side'],
  ['post.15.carries1', 'of both sides'],
  ['post.15.carry15', 'in segment 15 of a side'],
  ['post.15.carries15', 'of both sides'],
  ['post.31', '31 knots per side'],
  ['postBatch.15x4', 'batch of four markets, 15 knots per side'],
  ['postBatch.perMarket', 'of that, each further market'],
  ['touch', 'touch'],
  ['touch.perMarket', 'each further touch of a batch'],
];

const OTHERS: readonly [string, string][] = [
  ['preview.weth', 'the curve alone, asked of CurveBook'],
  ['previewSwap.weth', 'the same, with the limit of free liquidity, USDC out'],
  ['previewSwap.plain', 'the same, plain token out'],
  ['quote.weth', 'quote, with the limit of free liquidity, USDC out'],
  ['quote.plain', 'the same, plain token out'],
  ['quoteFor.weth', 'quoteFor, USDC out'],
  ['quote.weth.segment31', 'quote, ends in segment 31, USDC out'],
  ['deposit.usdc', 'deposit of USDC'],
  ['requestWithdraw.usdc', 'requestWithdraw'],
  ['settleWithdraw.usdc.first', "settleWithdraw, a maker's first claim"],
  ['settleWithdraw.usdc', 'settleWithdraw, a raise'],
  ['settleWithdrawBatch.perClaim', 'each further claim of a batch'],
  ['executeWithdraw.usdc', 'executeWithdraw of USDC'],
  ['gasless.weth.sell.freshNonceWord', 'signed order, first nonce of its word, WETH to USDC'],
];

const posts = (of: Lookup): string => list('Posts', POSTS, of);
const others = (of: Lookup): string => list('Quotes (execution alone, everything cold), and the rest', OTHERS, of);

function list(title: string, entries: readonly [string, string][], of: Lookup): string {
  const body = entries.map(([id, name]) => {
    const { gas, calldataBytes } = of(id);
    return [name, number(gas), calldataBytes === null ? '' : String(calldataBytes)];
  });
  return table(title, ['', 'gas', 'call data bytes'], body);
}

function limits(of: Lookup): string {
  const body = LIMITS.map(({ id, name, limit, aim }) => {
    const { gas } = of(id);
    const above = (bar: number) => (gas <= bar ? 'holds' : `${number(gas - bar)} above`);
    return [name, number(gas), number(limit), above(limit), number(aim), above(aim)];
  });
  return table('Limits', ['', 'gas', 'limit', '', 'aim', ''], body);
}

function bound(of: Lookup): string {
  const body = partsOfSwap(of).map(({ name, gas }) => [name, number(gas)]);
  return table('Where the gas of a swap of plain tokens goes', ['', 'gas'], body);
}

/** A Markdown table whose columns line up; all but the first are numbers. */
function table(title: string, head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((_, i) => Math.max(4, ...[head, ...body].map((cells) => cells[i]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [`### ${title}`, '', line(head), rule, ...body.map(line), ''].join('\n');
}
