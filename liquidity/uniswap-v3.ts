import { AbiCoder, Interface, ZeroAddress } from 'ethers';
import { toSafeInt } from '../core/amounts.js';
import { sqrtPriceAtTick } from '../core/swap/pool-math.js';
import { routerKindOf, type RouterKind } from '../core/swap/router-kind.js';
import { poolSource, type PoolRange, type PoolState } from '../core/swap/pool-source.js';
import type { Source } from '../core/swap/source.js';
import type { Address, Hex } from '../core/types.js';
import { callsAt, codeAt, isFailedCall, onOne, type EthReader, type Head } from './eth.js';
import type { Venue } from './venue.js';

export interface UniswapV3Contracts {
  factory: Address;
  /** SwapRouter or SwapRouter02; which of them it is, its code tells. */
  router: Address;
  /** QuoterV2. */
  quoter: Address;
}

const FACTORY = new Interface(['function getPool(address, address, uint24) view returns (address)']);
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
const ROUTERS: Record<RouterKind, Interface> = {
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
const PLACES = new Interface(['function factory() view returns (address)']);

const FEE_TIERS_PPM = [100n, 500n, 3_000n, 10_000n];
/** Words of the tick bitmap that are read to either side of the current one; each spans 256 tick spacings. */
const BITMAP_REACH = 2;
/** Ticks beyond this many, nearest first, are not read: the known depth then ends there. */
const MAX_TICKS = 60;

/** Pools of Uniswap v3, one source per fee tier, priced by their own state and quoted by QuoterV2. */
export function createUniswapV3(eth: EthReader, contracts: UniswapV3Contracts): Venue {
  const name = 'uniswap-v3';
  const idOf = (feePpm: bigint): string => `${name}:${feePpm}`;
  const feeOf = (id: string): bigint => BigInt(id.slice(name.length + 1));

  /** A contract's code does not change, so that it is read once; an address without code may get some. */
  let known: RouterKind | null = null;

  async function routerKind(): Promise<RouterKind | null> {
    if (known !== null) return known;
    const code = await codeAt(eth, contracts.router);
    if (code === '0x') return null;
    known = routerKindOf(code);
    if (known === null) throw new RouterError(contracts.router);
    return known;
  }

  /** Pools that exist, by pair. One that did not exist may be created, so only what was found is kept. */
  const pools = new Map<string, Address>();

  async function poolsOf(sellToken: Address, buyToken: Address, head: Head): Promise<[bigint, Address][]> {
    const unknown = FEE_TIERS_PPM.filter((fee) => !pools.has(`${sellToken}:${buyToken}:${fee}`));
    const answers = await callsAt(
      eth,
      head,
      unknown.map((fee) => ({
        to: contracts.factory,
        data: FACTORY.encodeFunctionData('getPool', [sellToken, buyToken, fee]),
      })),
    );
    answers.forEach((answer, i) => {
      const [pool] = AbiCoder.defaultAbiCoder().decode(['address'], answer) as unknown as [string];
      if (pool !== ZeroAddress) pools.set(`${sellToken}:${buyToken}:${unknown[i]}`, pool.toLowerCase() as Address);
    });
    return FEE_TIERS_PPM.flatMap((fee) => {
      const pool = pools.get(`${sellToken}:${buyToken}:${fee}`);
      return pool === undefined ? [] : [[fee, pool] as [bigint, Address]];
    });
  }

  async function sources(sellToken: Address, buyToken: Address, head: Head): Promise<Source[]> {
    if ((await routerKind()) === null) return [];
    const zeroForOne = sellToken < buyToken;
    const found = await poolsOf(sellToken, buyToken, head);
    const states = await Promise.all(
      found.map(([fee, pool]) => onOne(eth, (one) => readPool(one, pool, idOf(fee), fee, zeroForOne, head))),
    );
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
      if (router === null) throw new RouterError(contracts.router);
      const pool = [sellToken, buyToken, feeOf(id), recipient, ...(router === 'SwapRouter' ? [deadlineSec] : [])];
      const [method, amountIn, amounts] =
        kind === 'sell'
          ? (['exactInputSingle', inUnits, [inUnits, 0n]] as const)
          : (['exactOutputSingle', maxIn, [outUnits, maxIn]] as const);
      const data = ROUTERS[router].encodeFunctionData(method, [[...pool, ...amounts, 0n]]) as Hex;
      return { target: contracts.router, amountIn, data };
    },
  };
}

/** The address of a router is that of something else. */
export class RouterError extends Error {
  override readonly name = 'RouterError';

  constructor(router: Address) {
    super(`${router} is neither Uniswap's SwapRouter nor its SwapRouter02`);
  }
}

/** What stands at the addresses: the router's kind, or in words what is wrong with them. Throws what says nothing about them. */
export async function inspectUniswapV3(
  eth: EthReader,
  contracts: UniswapV3Contracts,
): Promise<{ kind: RouterKind } | { isMissing: boolean; problem: string }> {
  const { factory, router, quoter } = contracts;
  const named = { factory, router, quoter };
  const codes = (await eth.batch(
    Object.values(named).map((address) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
  )) as Hex[];
  const empty = Object.entries(named).filter((_, i) => codes[i] === '0x');
  if (empty.length > 0) {
    const problem = empty.map(([name, address]) => `the chain has no ${name} at ${address}`).join(', ');
    return { isMissing: true, problem };
  }
  const kind = routerKindOf(codes[1] ?? '0x');
  if (kind === null) return { isMissing: false, problem: new RouterError(router).message };
  for (const [name, address] of Object.entries({ router, quoter })) {
    const said = await factoryOf(eth, address);
    if (said === factory) continue;
    const problem = `the ${name} ${address} belongs to ${said === null ? 'no factory' : `factory ${said}`}, not to ${factory}`;
    return { isMissing: false, problem };
  }
  return { kind };
}

/** Null for a contract that does not name one. */
async function factoryOf(eth: EthReader, address: Address): Promise<Address | null> {
  try {
    const call = { to: address, data: PLACES.encodeFunctionData('factory') };
    const answer = (await eth.call('eth_call', [call, 'latest'])) as Hex;
    return /^0x0{24}[0-9a-f]{40}$/i.test(answer) ? `0x${answer.slice(26).toLowerCase()}` : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}

/** Null for a pool that was never initialised or has nothing to give. */
async function readPool(
  eth: EthReader,
  pool: Address,
  id: string,
  feePpm: bigint,
  zeroForOne: boolean,
  head: Head,
): Promise<PoolState | null> {
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
  const tick = toSafeInt(currentTick);
  const ticks = await readTicks(eth, at, { tick, spacing, zeroForOne }, head);
  const ranges = rangesOf(liquidity, ticks, zeroForOne);
  return ranges.length === 0 ? null : { id, zeroForOne, feePpm, sqrtPrice, ranges };
}

interface InitializedTick {
  tick: number;
  net: bigint;
}

/** Initialised ticks that a swap meets, nearest first. */
async function readTicks(
  eth: EthReader,
  at: (method: string, args?: unknown[]) => { to: Address; data: string },
  { tick, spacing, zeroForOne }: { tick: number; spacing: number; zeroForOne: boolean },
  head: Head,
): Promise<InitializedTick[]> {
  const compressed = Math.floor(tick / spacing);
  const direction = zeroForOne ? -1 : 1;
  const words = Array.from({ length: BITMAP_REACH + 1 }, (_, i) => (compressed >> 8) + i * direction);
  const bitmaps = await callsAt(
    eth,
    head,
    words.map((word) => at('tickBitmap', [word])),
  );
  const found = bitmaps.flatMap((bitmap, i) => bitsOf(BigInt(bitmap)).map((bit) => (words[i] ?? 0) * 256 + bit));
  // The current tick's own boundary is crossed by a falling price only.
  const ahead = found.filter((one) => (zeroForOne ? one <= compressed : one > compressed));
  const nearest = ahead.sort((a, b) => (a - b) * direction).slice(0, MAX_TICKS);
  const answers = await callsAt(
    eth,
    head,
    nearest.map((one) => at('ticks', [one * spacing])),
  );
  return answers.map((answer, i) => {
    const [, net] = POOL.decodeFunctionResult('ticks', answer) as unknown as [bigint, bigint];
    return { tick: (nearest[i] ?? 0) * spacing, net };
  });
}

function bitsOf(word: bigint): number[] {
  return Array.from({ length: 256 }, (_, bit) => bit).filter((bit) => (word >> BigInt(bit)) & 1n);
}

/** Liquidity changes by a tick's net amount when the price rises through it, and the other way when it falls. */
function rangesOf(first: bigint, ticks: readonly InitializedTick[], zeroForOne: boolean): PoolRange[] {
  let liquidity = first;
  return ticks.map(({ tick, net }) => {
    const range = { liquidity, endSqrtPrice: sqrtPriceAtTick(tick) };
    liquidity += zeroForOne ? -net : net;
    return range;
  });
}
