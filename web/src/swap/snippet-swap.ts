import type { Deployment } from '../market-context.js';
import type { Mode, Token } from './terms.js';

/** What a program that is copied is to do. */
export interface SnippetSwap {
  url: string;
  deployment: Deployment;
  sell: Token;
  buy: Token;
  units: bigint;
  /** The least that arrives; of a limit order, its limit. */
  minBuyUnits: bigint;
  slippageBps: number;
  /** How long a limit order waits. */
  validForSec: number;
  mode: Mode;
}
