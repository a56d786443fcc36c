import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Address } from '../core/types.js';
import type { UniswapV3Contracts } from '../liquidity/uniswap-v3.js';
import { address, integer, privateKey } from './fields.js';
import { tokenListSchema } from '../server/swap/tokens.js';
import type { SwapToken } from '../server/swap/deps.js';

/** Settings of the swap API and of the executor. */
export const swapSettings = {
  EXECUTOR_PRIVATE_KEY: privateKey.optional().describe("sends signed orders; default: the manifest's executor account"),
  TOKEN_LIST: z
    .string()
    .min(1)
    .optional()
    .describe("token list of the swap API, a JSON file in the Uniswap format; default: the manifest's tokenList"),
  WRAPPED_NATIVE: address
    .default('0x4200000000000000000000000000000000000006')
    .describe('the token that gas is priced in'),
  SWAP_QUOTE_TTL_SEC: integer(15, 600, 30).describe('how long orders for a quote are accepted'),
  SWAP_ORDER_TTL_SEC: integer(30, 3_600, 120).describe('how long a signed order may be executed, from its quote on'),
  SWAP_FEE_MARGIN_BPS: integer(0, 100_000, 2_000).describe('added to the cost of gas in the fee of a gasless order'),
  SWAP_EXTRA_GAS: integer(0, 10_000_000, 0).describe(
    'gas added to every order in the fee, for what the chain charges beside gas, such as data fees',
  ),
  SWAP_TOLERANCE_BPS: integer(0, 1_000, 10).describe(
    'how much worse than the best route our own may be and still be taken by preferService',
  ),
  SWAP_MAX_SENDS: integer(1, 100, 5).describe('most transactions sent for one order'),
  SWAP_MAX_GAS: integer(200_000, 30_000_000, 1_000_000).describe(
    'most gas that an order may take; one that takes more is not sent, and expires',
  ),
  SWAP_MAX_REVERTS: integer(1, 1_000, 2).describe(
    "most reverted transactions of one owner's orders since its last fill, one for an account with code; beyond it nothing is sent for the owner until it has swapped by itself",
  ),
  SWAP_QUOTES_PER_MINUTE: integer(1, 1_000_000, 300).describe('quotes per client address and minute'),
  SWAP_ORDERS_PER_MINUTE: integer(1, 1_000_000, 60).describe('submitted orders per client address and minute'),
  SWAP_READS_PER_MINUTE: integer(1, 1_000_000, 1_200).describe(
    'token lists, and looks at orders, per client address and minute',
  ),
  UNISWAP_V3_FACTORY: address.optional().describe("with the next two: external liquidity; default: the manifest's"),
  UNISWAP_V3_ROUTER: address
    .optional()
    .describe('SwapRouter02 or SwapRouter, which its code tells; the settler must have it as a target'),
  UNISWAP_V3_QUOTER: address.optional().describe('QuoterV2'),
};

type SwapSettings = z.output<z.ZodObject<typeof swapSettings>>;

/** The part of a deployment manifest that swaps need. */
export const swapManifest = {
  permit2: address.optional(),
  orderSettler: address.optional(),
  lens: address.optional(),
  adapter: address.optional(),
  uniswapV3Factory: address.optional(),
  uniswapV3Router: address.optional(),
  uniswapV3Quoter: address.optional(),
};

export interface SwapConfig {
  permit2: Address;
  settler: Address;
  /** Contracts of the platform on which anybody could take, or nobody ever gets back, what is sent there. */
  periphery: readonly Address[];
  tokens: readonly SwapToken[];
  /** Null without external liquidity. */
  uniswapV3: UniswapV3Contracts | null;
}

/** What the settings and the manifest say about swaps; null for a deployment without a settler. Adds to `problems`. */
export function readSwapConfig(
  settings: SwapSettings,
  manifest: { contracts: z.output<z.ZodObject<typeof swapManifest>>; tokenList?: z.output<typeof tokenListSchema> },
  problems: string[],
): SwapConfig | null {
  const { contracts, tokenList } = manifest;
  const { permit2, orderSettler: settler } = contracts;
  if (settler === undefined || permit2 === undefined) return null;
  const list = settings.TOKEN_LIST === undefined ? tokenList : readTokenList(settings.TOKEN_LIST, problems);
  const periphery = [contracts.lens, contracts.adapter].filter((one) => one !== undefined);
  const uniswapV3 = readUniswapV3(settings, contracts, problems);
  return { permit2, settler, periphery, tokens: list?.tokens ?? [], uniswapV3 };
}

function readTokenList(path: string, problems: string[]): z.output<typeof tokenListSchema> | undefined {
  try {
    const parsed = tokenListSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
    if (parsed.success) return parsed.data;
    problems.push(
      ...parsed.error.issues.map((issue) => `TOKEN_LIST ${path}: ${issue.path.join('.')}: ${issue.message}`),
    );
  } catch (error) {
    problems.push(`TOKEN_LIST: can't read ${path} (${error instanceof Error ? error.message : String(error)})`);
  }
  return undefined;
}

function readUniswapV3(
  settings: SwapSettings,
  contracts: z.output<z.ZodObject<typeof swapManifest>>,
  problems: string[],
): UniswapV3Contracts | null {
  const factory = settings.UNISWAP_V3_FACTORY ?? contracts.uniswapV3Factory;
  const router = settings.UNISWAP_V3_ROUTER ?? contracts.uniswapV3Router;
  const quoter = settings.UNISWAP_V3_QUOTER ?? contracts.uniswapV3Quoter;
  if (factory !== undefined && router !== undefined && quoter !== undefined) return { factory, router, quoter };
  if (factory !== undefined || router !== undefined || quoter !== undefined) {
    problems.push('UNISWAP_V3_FACTORY, UNISWAP_V3_ROUTER, UNISWAP_V3_QUOTER: all three are required, or none');
  }
  return null;
}
