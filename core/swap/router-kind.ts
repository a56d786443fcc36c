/** Which router of Uniswap's pools a contract is: their calls differ, and each refuses those of the others. */
import type { Hex } from '../types.js';

/**
 * Of v3, SwapRouter takes a deadline in each call; SwapRouter02, which most chains have today, takes it around a bundle of calls. Router02 is that of v2,
 * as is its predecessor Router01, whose trades are called alike. UniswapV4Router is the platform's own, of v4.
 */
export type RouterKind = 'SwapRouter' | 'SwapRouter02' | 'Router02' | 'UniswapV4Router';

/** Selectors of a sale and of a purchase: the dispatcher of a contract holds those that it knows behind a PUSH4. */
const SELECTORS: Record<RouterKind, readonly [string, string]> = {
  SwapRouter: ['414bf389', 'db3e2198'],
  SwapRouter02: ['04e45aaf', '5023b4df'],
  Router02: ['38ed1739', '8803dbee'],
  UniswapV4Router: ['db739216', 'd1bbba0b'],
};
const PUSH4 = '63';

const KINDS = Object.keys(SELECTORS) as RouterKind[];

/** By its runtime code; null for a contract that is none of the `kinds`, or looks like several. */
export function routerKindOf<Kind extends RouterKind = RouterKind>(
  code: Hex,
  kinds: readonly Kind[] = KINDS as Kind[],
): Kind | null {
  const text = code.toLowerCase();
  const found = kinds.filter((kind) => SELECTORS[kind].every((selector) => text.includes(PUSH4 + selector)));
  return found.length === 1 ? found[0]! : null;
}
