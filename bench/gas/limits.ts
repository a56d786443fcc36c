/** The gas that the contracts may cost at most, and what the parts of a swap cost. */
import type { Row } from './rows.js';

interface Limit {
  id: string;
  name: string;
  limit: number;
  aim: number;
}

/** For whole transactions. For quotes it is the gas of execution alone, with everything cold except the account that is called. */
export const LIMITS: readonly Limit[] = [
  { id: 'swap.weth.sell.segment1', name: 'swap WETH to USDC, first segment', limit: 110_000, aim: 105_000 },
  { id: 'swap.weth.buy.segment1', name: 'swap USDC to WETH, first segment', limit: 112_500, aim: 110_000 },
  { id: 'swap.plain.sell.segment1', name: 'swap of plain tokens, selling base', limit: 100_000, aim: 93_000 },
  { id: 'swap.plain.buy.segment1', name: 'swap of plain tokens, buying base', limit: 100_000, aim: 93_000 },
  { id: 'swap.weth.sell.perSegment', name: 'each further segment, selling', limit: 1_500, aim: 1_500 },
  { id: 'swap.weth.buy.perSegment', name: 'each further segment, buying', limit: 1_500, aim: 1_500 },
  { id: 'post.15', name: 'post, 15 knots per side', limit: 64_500, aim: 59_000 },
  { id: 'post.15.carry1', name: 'post after a late fill on one side', limit: 64_500, aim: 59_000 },
  { id: 'post.15.carries1', name: 'the same on both sides', limit: 64_700, aim: 64_500 },
  { id: 'post.15.carry15', name: 'after one that ends in segment 15 of a side', limit: 65_200, aim: 64_500 },
  { id: 'post.15.carries15', name: 'the same on both sides', limit: 66_100, aim: 64_500 },
  { id: 'postBatch.perMarket', name: 'each further market of a batch', limit: 37_000, aim: 35_000 },
  { id: 'touch', name: 'touch', limit: 39_000, aim: 36_000 },
  { id: 'gasless.weth.sell', name: 'signed order with a fee, WETH to USDC', limit: 142_000, aim: 135_000 },
  { id: 'gasless.weth.buy', name: 'signed order with a fee, USDC to WETH', limit: 142_000, aim: 135_000 },
  { id: 'preview.weth', name: 'quote of the curve alone', limit: 22_000, aim: 22_000 },
  { id: 'previewSwap.plain', name: 'the same with free liquidity, plain token out', limit: 38_000, aim: 38_000 },
  { id: 'previewSwap.weth', name: 'the same with free liquidity, USDC out', limit: 38_000, aim: 38_000 },
  { id: 'quote.plain', name: "the entrypoint's quote, plain token out", limit: 38_000, aim: 38_000 },
  { id: 'quote.weth', name: "the entrypoint's quote, USDC out", limit: 38_000, aim: 38_000 },
];

/** A part of a swap's work besides the arithmetic, as it follows from the division into these contracts. */
interface Part {
  name: string;
  gas: number;
}

const COLD_ACCOUNT = 2_600;
const COLD_SLOT = 2_100;
const OVERWRITE = 2_900;
const LOG = 375;
const LOG_BYTE = 8;

/** The parts of a swap besides its two transfers and the arithmetic. */
const SWAP_PARTS: readonly Part[] = [
  {
    name: 'three proxies: their slots and implementations, two of them cold',
    gas: 3 * (COLD_SLOT + COLD_ACCOUNT) + 2 * COLD_ACCOUNT,
  },
  { name: "the market's two words and one of knots read, one written back", gas: 3 * COLD_SLOT + OVERWRITE },
  { name: 'settled claims of the token that goes out', gas: COLD_SLOT },
  { name: 'the Swap event: four topics, eight words', gas: 5 * LOG + 256 * LOG_BYTE },
];

/** Parts of a swap of plain tokens in the order of the table, the measured floor first; they sum up to what was measured. */
export function partsOfSwap(of: (id: string) => Row): Part[] {
  const parts = [{ name: 'the two transfers alone, as measured', gas: of('floor.plain.sell').gas }, ...SWAP_PARTS];
  const bound = parts.reduce((sum, { gas }) => sum + gas, 0);
  const rest = of('swap.plain.sell.segment1').gas - bound;
  return [
    ...parts,
    { name: 'these parts alone', gas: bound },
    { name: 'the rest: locks, balance checks, call data, arithmetic', gas: rest },
  ];
}
