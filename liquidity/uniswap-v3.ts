import { AbiCoder, Interface, getCreate2Address, keccak256 } from 'ethers';
import { toSafeInt } from '../core/amounts.js';
import { MAX_CROSSED, poolBox, poolSource, type PoolState } from '../core/swap/pool-source.js';
import type { Source } from '../core/swap/source.js';
import type { Address, Hex } from '../core/types.js';
import { callsAt, isFailedCall, onOne, type EthReader, type Head } from './eth.js';
import { createPoolFinder, type PoolRule } from './pool-finder.js';
import { rangesAhead, type KnownRanges } from './pool-ranges.js';
import { RouterError, createRouterCheck } from './routers.js';
import { venueKind, type StateCheck, type Venue } from './venue.js';

export interface UniswapV3Contracts {
  factory: Address;
  /** SwapRouter or SwapRouter02; which of them it is, its code tells. */
  router: Address;
  /** QuoterV2. */
  quoter: Address;
}

const KINDS = ['SwapRouter', 'SwapRouter02'] as const;
const FEE_TIERS_PPM = [100n, 500n, 3_000n, 10_000n];
const FACTORY = new Interface(['function getPool(address, address, uint24) view returns (address)']);
/** Hash of the code that creates a pool of Uniswap itself; what others made of it has another one. */
const POOL_CODE_HASH = '0xe34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54';

/** How the factory of Uniswap v3 knows its pools. */
export const poolRule = (factory: Address): PoolRule => ({
  factory,
  feesPpm: FEE_TIERS_PPM,
  question: (tokens, feePpm) => FACTORY.encodeFunctionData('getPool', [...tokens, feePpm]),
  addressOf(tokens, feePpm) {
    const sorted = [...tokens].sort();
    const salt = keccak256(AbiCoder.defaultAbiCoder().encode(['address', 'address', 'uint24'], [...sorted, feePpm]));
    return getCreate2Address(factory, salt, POOL_CODE_HASH).toLowerCase() as Address;
  },
});

const POOL = new Interface([
  'function slot0() view returns (uint160 sqrtPriceX96, int24 tick, uint16, uint16, uint16, uint8, bool unlocked)',
  'function liquidity() view returns (uint128)',
  'function tickSpacing() view returns (int24)',
  'function tickBitmap(int16) view returns (uint256)',
  'function ticks(int24) view returns (uint128 gross, int128 net, uint256, uint256, int56, uint160, uint32, bool)',
]);
const QUOTER = new Interface([
  'function quoteExactInputSingle((address tokenIn, address tokenOut, uint256 amountIn, uint24 fee, uint160 limit)) returns (uint256 amountOut, uint160, uint32, uint256)',
  'function quoteExactOutputSingle((address tokenIn, address tokenOut, uint256 amount, uint24 fee, uint160 limit)) returns (uint256 amountIn, uint160, uint32, uint256)',
]);
const ROUTERS: Record<(typeof KINDS)[number], Interface> = {
  SwapRouter: new Interface([
    'function exactInputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 deadline, uint256 amountIn, uint256 amountOutMinimum, uint160 limit)) returns (uint256)',
    'function exactOutputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 deadline, uint256 amountOut, uint256 amountInMaximum, uint160 limit)) returns (uint256)',
  ]),
  // Without a deadline: the order has one, which Permit2 holds against the clock in the same transaction.
  SwapRouter02: new Interface([
    'function exactInputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 amountIn, uint256 amountOutMinimum, uint160 limit)) returns (uint256)',
    'function exactOutputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 amountOut, uint256 amountInMaximum, uint160 limit)) returns (uint256)',
  ]),
};
/** Pools of Uniswap v3, one source per fee tier, priced by their own state and quoted by QuoterV2. */
export function createUniswapV3(
  eth: EthReader,
  contracts: UniswapV3Contracts,
  monotonicMs: () => number = () => performance.now(),
): Venue {
  const name = 'uniswap-v3';
  const idOf = (feePpm: bigint): string => `${name}:${feePpm}`;
  const feeOf = (id: string): bigint => BigInt(id.slice(name.length + 1));

  const finder = createPoolFinder(eth, poolRule(contracts.factory), monotonicMs);

  const routerKind = createRouterCheck(eth, contracts.router, KINDS, monotonicMs);

  async function stateOf(pool: Address, fee: bigint, zeroForOne: boolean, head: Head): Promise<KnownPool | null> {
    try {
      return await onOne(eth, (one) => readPool(one, pool, idOf(fee), fee, zeroForOne, head));
    } catch (error) {
      finder.forget(pool);
      throw error;
    }
  }

  async function sources(sellToken: Address, buyToken: Address, head: Head): Promise<Source[]> {
    if ((await routerKind()) === null) return [];
    const found = await finder.poolsOf(sellToken, buyToken, head);
    const states = await Promise.all(found.map(([fee, pool]) => stateOf(pool, fee, sellToken < buyToken, head)));
    return states.filter((state) => state !== null).map(poolSource);
  }

  return {
    name,
    target: contracts.router,
    sources,
    async quote({ id, kind, sellToken, buyToken, inUnits, outUnits }, head) {
      const [method, amount] =
        kind === 'sell'
          ? (['quoteExactInputSingle', inUnits] as const)
          : (['quoteExactOutputSingle', outUnits] as const);
      const data = QUOTER.encodeFunctionData(method, [[sellToken, buyToken, amount, feeOf(id), 0n]]);
      try {
        return await onOne(eth, async (one) => {
          const [answer] = await callsAt(one, head, [{ to: contracts.quoter, data }]);
          const [units] = QUOTER.decodeFunctionResult(method, answer ?? '0x') as unknown as [bigint];
          return units === 0n ? null : units;
        });
      } catch (error) {
        if (isFailedCall(error)) return null;
        throw error;
      }
    },
    async call({ id, kind, sellToken, buyToken, inUnits, outUnits }, { recipient, deadlineSec, maxIn }) {
      const router = await routerKind();
      if (router === null) throw new RouterError(contracts.router, KINDS);
      const pool = [sellToken, buyToken, feeOf(id), recipient, ...(router === 'SwapRouter' ? [deadlineSec] : [])];
      const [method, amountIn, amounts] =
        kind === 'sell'
          ? (['exactInputSingle', inUnits, [inUnits, 0n]] as const)
          : (['exactOutputSingle', maxIn, [outUnits, maxIn]] as const);
      const data = ROUTERS[router].encodeFunctionData(method, [[...pool, ...amounts, 0n]]) as Hex;
      // Behind the selector and what names the pool, a word each.
      return { target: contracts.router, amountIn, amountAt: 4 + 32 * pool.length, data };
    },
    async checks({ id, kind, sellToken, buyToken, inUnits, outUnits }, boundUnits, head) {
      const fee = feeOf(id);
      const [, pool] = (await finder.poolsOf(sellToken, buyToken, head)).find(([one]) => one === fee) ?? [];
      if (pool === undefined) return null;
      const zeroForOne = sellToken < buyToken;
      const state = await stateOf(pool, fee, zeroForOne, head);
      const box = state === null ? null : poolBox(state, kind, kind === 'sell' ? inUnits : outUnits, boundUnits);
      if (state === null || box === null || box.crossed > MAX_CROSSED) return null;
      const check = (method: string, args: unknown[], rest: Omit<StateCheck, 'target' | 'data'>): StateCheck => ({
        ...{ target: pool, data: POOL.encodeFunctionData(method, args) as Hex },
        ...rest,
      });
      return [
        check('slot0', [], { word: 0, minimum: box.lowSqrtPrice, maximum: box.highSqrtPrice }),
        check('liquidity', [], { word: 0, minimum: box.leastLiquidity, maximum: box.mostLiquidity }),
        ...state.ticks.slice(0, box.crossed).map(({ tick, net }) => {
          const word = BigInt.asUintN(256, net);
          return check('ticks', [tick], { word: 1, minimum: word, maximum: word });
        }),
      ];
    },
  };
}

/** A pool's state, with the tick at which each of its ranges ends. */
type KnownPool = PoolState & KnownRanges;

/** Null for a pool that was never initialised or has nothing to give. */
async function readPool(
  eth: EthReader,
  pool: Address,
  id: string,
  feePpm: bigint,
  zeroForOne: boolean,
  head: Head,
): Promise<KnownPool | null> {
  const at = (method: string, args: unknown[] = []) => ({ to: pool, data: POOL.encodeFunctionData(method, args) });
  const [slotData, liquidityData, spacingData] = await callsAt(eth, head, [
    at('slot0'),
    at('liquidity'),
    at('tickSpacing'),
  ]);
  const [sqrtPrice, currentTick] = POOL.decodeFunctionResult('slot0', slotData ?? '0x') as unknown as [bigint, bigint];
  if (sqrtPrice === 0n) return null;
  const liquidity = BigInt(liquidityData ?? '0x0');
  const spacing = toSafeInt(BigInt(spacingData ?? '0x1'));
  const place = { sqrtPrice, tick: toSafeInt(currentTick), spacing, liquidity };
  const known = await rangesAhead(place, zeroForOne, {
    async bitmaps(words) {
      const answers = await callsAt(
        eth,
        head,
        words.map((word) => at('tickBitmap', [word])),
      );
      return answers.map(BigInt);
    },
    async nets(ticks) {
      const answers = await callsAt(
        eth,
        head,
        ticks.map((tick) => at('ticks', [tick])),
      );
      return answers.map((answer) => (POOL.decodeFunctionResult('ticks', answer) as unknown as [bigint, bigint])[1]);
    },
  });
  return known.ranges.length === 0 ? null : { id, zeroForOne, feePpm, sqrtPrice, ...known };
}

export const uniswapV3 = venueKind({
  name: 'uniswap-v3',
  title: 'Uniswap v3',
  setting: 'UNISWAP_V3',
  manifest: 'uniswapV3',
  contracts: {
    factory: '',
    router: 'SwapRouter02 or SwapRouter, which its code tells; the settler must have it as a target',
    quoter: 'QuoterV2',
  },
  routers: KINDS,
  parent: 'factory',
  ofParent: ['router', 'quoter'],
  create: createUniswapV3,
});
