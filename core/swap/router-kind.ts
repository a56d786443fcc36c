/** Which of Uniswap's two v3 routers a contract is: their calls differ, and each refuses those of the other. */
import type { Hex } from '../types.js';

/** SwapRouter takes a deadline in each call; SwapRouter02, which most chains have today, takes it around a bundle of calls. */
export type RouterKind = 'SwapRouter' | 'SwapRouter02';

/** Selectors of exactInputSingle and exactOutputSingle: the dispatcher of a contract holds those that it knows behind a PUSH4. */
const SELECTORS: Record<RouterKind, readonly [string, string]> = {
  SwapRouter: ['414bf389', 'db3e2198'],
  SwapRouter02: ['04e45aaf', '5023b4df'],
};
const PUSH4 = '63';

/** By its runtime code; null for a contract that is neither, or looks like both. */
export function routerKindOf(code: Hex): RouterKind | null {
  const text = code.toLowerCase();
  const kinds = (['SwapRouter', 'SwapRouter02'] as const).filter((kind) =>
    SELECTORS[kind].every((selector) => text.includes(PUSH4 + selector)),
  );
  return kinds.length === 1 ? kinds[0]! : null;
}
