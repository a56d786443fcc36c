/**
 * Uniswap v2, v3 and v4 from their published artifacts. Each pool has one position that spans a wide range, and v3 and v4 a narrow
 * one around the price as well, so that a trade of the right size crosses one initialized tick.
 */
import { AbiCoder, Interface, keccak256, ZeroAddress } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import type { Contract, GasChain, Measured } from './chain.js';
import { row, type Row } from './rows.js';
import { DEPLOYER, PRICE, publishedArtifact, type BenchPair, type World } from './world.js';

const DEADLINE_SEC = 2_000_000_001n;
const ONE_BASE = 10n ** 18n;
const HALF_BASE = ONE_BASE / 2n;
/** 0.05 %, the tier that trades WETH with USDC most. */
export const FEE_PPM = 500;
const TICK_SPACING = 10;
/** Base units in each wide position, and in the narrow one. */
const WIDE_BASE = 500n * ONE_BASE;
const NARROW_BASE = ONE_BASE / 20n;
const Q96 = 2n ** 96n;
const PERIPHERY = '@uniswap/v3-periphery/artifacts/contracts';
/** The router that orders are measured with. */
export const ROUTER_PATH = `${PERIPHERY}/SwapRouter.sol/SwapRouter.json`;

type Direction = 'sell' | 'buy';
const DIRECTIONS: readonly Direction[] = ['sell', 'buy'];

/** A pool's view of a pair: token0 has the lower address. */
interface Pool {
  pair: BenchPair;
  token0: string;
  token1: string;
  baseIsToken0: boolean;
  sqrtPriceX96: bigint;
  /** Greatest multiple of the spacing not above the price. */
  tick: number;
}

function poolOf(pair: BenchPair): Pool {
  const baseIsToken0 = BigInt(pair.base.address) < BigInt(pair.quote.address);
  const quotePerBase = [PRICE * 10n ** 6n, ONE_BASE] as const;
  const [numerator, denominator] = baseIsToken0 ? quotePerBase : [quotePerBase[1], quotePerBase[0]];
  const sqrtPriceX96 = squareRoot((numerator * Q96 * Q96) / denominator);
  const exactTick = Math.log(Number(numerator) / Number(denominator)) / Math.log(1.0001);
  return {
    pair,
    token0: baseIsToken0 ? pair.base.address : pair.quote.address,
    token1: baseIsToken0 ? pair.quote.address : pair.base.address,
    baseIsToken0,
    sqrtPriceX96,
    tick: Math.floor(exactTick / TICK_SPACING) * TICK_SPACING,
  };
}

function squareRoot(value: bigint): bigint {
  let root = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
  for (;;) {
    const next = (root + value / root) / 2n;
    if (next >= root) return root;
    root = next;
  }
}

/** The range of a position: `width` spacings to either side of the spacing that holds the price. */
const rangeOf = ({ tick }: Pool, width: number) =>
  ({ lower: tick - width * TICK_SPACING, upper: tick + (width + 1) * TICK_SPACING }) as const;
const WIDE = 2000;
const NARROW = 3;
/** Prices of v3 end here. */
const MAX_TICK = 887_272;

/** What to sell, in the input token, to move the price past the end of the narrow range but not to the next initialized tick. */
function crossingAmount(pool: Pool, direction: Direction, liquidity: bigint): bigint {
  const { lower, upper } = rangeOf(pool, NARROW);
  const zeroForOne = (direction === 'sell') === pool.baseIsToken0;
  const target = zeroForOne ? lower - TICK_SPACING : upper + TICK_SPACING;
  const sqrtTarget = BigInt(Math.floor(1.0001 ** (target / 2) * 2 ** 96));
  if (zeroForOne) return (liquidity * Q96) / sqrtTarget - (liquidity * Q96) / pool.sqrtPriceX96;
  return (liquidity * (sqrtTarget - pool.sqrtPriceX96)) / Q96;
}

/** So many base units and as much in value of quote units, in the pool's order. */
const amountsOf = (pool: Pool, base: bigint): [bigint, bigint] => {
  const quote = (base * PRICE) / 10n ** 12n;
  return pool.baseIsToken0 ? [base, quote] : [quote, base];
};

/** An amount of the direction's input, in the other token. */
const inValue = (direction: Direction, amountIn: bigint): bigint =>
  direction === 'sell' ? (amountIn * PRICE) / 10n ** 12n : (amountIn * 10n ** 12n) / PRICE;

function inputOf({ pair }: Pool, direction: Direction) {
  return direction === 'sell'
    ? { tokenIn: pair.base.address, tokenOut: pair.quote.address, amountIn: HALF_BASE }
    : { tokenIn: pair.quote.address, tokenOut: pair.base.address, amountIn: (HALF_BASE * PRICE) / 10n ** 12n };
}

type Swap = (direction: Direction, amountIn: bigint) => Promise<Measured>;

/** One swap each way, then each measured way on its own. */
async function measured(chain: GasChain, pool: Pool, name: string, swap: Swap): Promise<Row[]> {
  for (const direction of DIRECTIONS) await swap(direction, inputOf(pool, direction).amountIn / 100n);
  const rows: Row[] = [];
  for (const direction of DIRECTIONS) {
    const amount = inputOf(pool, direction).amountIn;
    const id = `${name}.${pool.pair.id}.${direction}`;
    rows.push(row(id, await chain.undo(() => swap(direction, amount))));
    // A trade of a dollar leaves the price within its tick, so v3 does not write an observation.
    if (name === 'v3') rows.push(row(`${id}.sameTick`, await chain.undo(() => swap(direction, amount / 1_500n))));
  }
  return rows;
}

/** As `measured`, and once more each way across one initialized tick. That the ticks are crossed, or not, is checked. */
async function measuredAcross(
  chain: GasChain,
  pool: Pool,
  name: string,
  swap: Swap,
  state: () => Promise<{ tick: number; liquidity: bigint }>,
): Promise<Row[]> {
  const { lower, upper } = rangeOf(pool, NARROW);
  const inside = (tick: number) => tick >= lower && tick < upper;
  const checked =
    (across: boolean): Swap =>
    async (direction, amountIn) => {
      const before = await state();
      const result = await swap(direction, amountIn);
      const { tick } = await state();
      const wide = Math.abs(tick - before.tick) >= WIDE * TICK_SPACING;
      if (!inside(before.tick) || inside(tick) === across || wide)
        throw new Error(`${name} went from tick ${before.tick} to ${tick}, the narrow range is ${lower}..${upper}`);
      return result;
    };
  const { liquidity } = await state();
  const across = (direction: Direction) => crossingAmount(pool, direction, liquidity);
  // Once across both ends and back, so that the storage of these ticks has been written before.
  for (const direction of DIRECTIONS) {
    await swap(direction, across(direction));
    await swap(direction === 'sell' ? 'buy' : 'sell', inValue(direction, across(direction)));
  }
  const rows = await measured(chain, pool, name, checked(false));
  for (const direction of DIRECTIONS) {
    const amountIn = across(direction);
    const crossed = await chain.undo(() => checked(true)(direction, amountIn));
    rows.push(row(`${name}.${pool.pair.id}.${direction}.crossing1`, crossed));
  }
  return rows;
}

async function published(world: World, path: string, args: readonly unknown[] = []): Promise<Contract> {
  const { abi, bytecode } = publishedArtifact(path);
  return world.chain.deploy(world.chain.signers[DEPLOYER]!, abi, bytecode, args);
}

/** v2 through its Router02. */
export async function measureV2(world: World): Promise<Row[]> {
  const { chain, pairs, maker, taker } = world;
  const factory = await published(world, '@uniswap/v2-core/build/UniswapV2Factory.json', [world.operator]);
  const weth = pairs[0]!.base.address;
  const router = await published(world, '@uniswap/v2-periphery/build/UniswapV2Router02.json', [factory.address, weth]);
  for (const holder of [maker, taker]) await world.approveAll(holder, router.address);
  const rows: Row[] = [];
  for (const pool of pairs.map(poolOf)) {
    await chain.call(maker, router, 'addLiquidity', [
      pool.token0,
      pool.token1,
      ...amountsOf(pool, WIDE_BASE),
      0,
      0,
      maker,
      DEADLINE_SEC,
    ]);
    const swap: Swap = (direction, amountIn) => {
      const { tokenIn, tokenOut } = inputOf(pool, direction);
      const args = [amountIn, 1, [tokenIn, tokenOut], taker, DEADLINE_SEC];
      return chain.call(taker, router, 'swapExactTokensForTokens', args);
    };
    rows.push(...(await measured(chain, pool, 'v2', swap)));
  }
  return rows;
}

/** Contracts of v3. */
interface V3 {
  factory: Contract;
  router: Contract;
  positions: Contract;
}

/** v3 without pools; maker and taker let it take their tokens. */
export async function deployV3(world: World): Promise<V3> {
  const core = '@uniswap/v3-core/artifacts/contracts';
  const factory = await published(world, `${core}/UniswapV3Factory.sol/UniswapV3Factory.json`);
  const weth = world.pairs[0]!.base.address;
  const managerPath = `${PERIPHERY}/NonfungiblePositionManager.sol/NonfungiblePositionManager.json`;
  const router = await published(world, ROUTER_PATH, [factory.address, weth]);
  const positions = await published(world, managerPath, [factory.address, weth, ZeroAddress]);
  await world.approveAll(world.maker, positions.address);
  await world.approveAll(world.taker, router.address);
  return { factory, router, positions };
}

/** The pool of a pair, with a wide position and a narrow one. */
async function addPool({ chain, maker }: World, { positions }: V3, pool: Pool): Promise<void> {
  const { token0, token1 } = pool;
  const price = [token0, token1, FEE_PPM, pool.sqrtPriceX96];
  await chain.call(maker, positions, 'createAndInitializePoolIfNecessary', price);
  for (const [width, depth] of [[WIDE, WIDE_BASE] as const, [NARROW, NARROW_BASE] as const]) {
    const { lower, upper } = rangeOf(pool, width);
    const range = [token0, token1, FEE_PPM, lower, upper];
    const mint = [...range, ...amountsOf(pool, depth), 0, 0, maker, DEADLINE_SEC];
    await chain.call(maker, positions, 'mint', [mint]);
  }
}

/** Another tier of a pair, with one position over every price. */
export async function addFullRangePool(
  { chain, maker }: World,
  { positions }: V3,
  pair: BenchPair,
  { feePpm, spacing }: { feePpm: number; spacing: number },
): Promise<void> {
  const pool = poolOf(pair);
  const { token0, token1 } = pool;
  await chain.call(maker, positions, 'createAndInitializePoolIfNecessary', [token0, token1, feePpm, pool.sqrtPriceX96]);
  const end = Math.floor(MAX_TICK / spacing) * spacing;
  const mint = [token0, token1, feePpm, -end, end, ...amountsOf(pool, WIDE_BASE), 0, 0, maker, DEADLINE_SEC];
  await chain.call(maker, positions, 'mint', [mint]);
}

/** v3 through its SwapRouter. */
export async function measureV3(world: World): Promise<Row[]> {
  const v3 = await deployV3(world);
  const rows: Row[] = [];
  for (const pair of world.pairs) rows.push(...(await measureV3Pool(world, v3, pair)));
  return rows;
}

/** Creates the pool of a pair and measures swaps in it. */
export async function measureV3Pool(world: World, v3: V3, pair: BenchPair): Promise<Row[]> {
  const { chain, taker } = world;
  const pool = poolOf(pair);
  await addPool(world, v3, pool);
  const { abi } = publishedArtifact('@uniswap/v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json');
  const [address] = await chain.view(v3.factory, 'getPool', [pool.token0, pool.token1, FEE_PPM]);
  const contract = { address: address as string, abi: new Interface(abi) };
  const state = async () => {
    const [, tick] = await chain.view(contract, 'slot0', []);
    const [liquidity] = await chain.view(contract, 'liquidity', []);
    return { tick: toSafeInt(tick as bigint), liquidity: liquidity as bigint };
  };
  const swap: Swap = (direction, amountIn) => {
    const { tokenIn, tokenOut } = inputOf(pool, direction);
    const args = [tokenIn, tokenOut, FEE_PPM, taker, DEADLINE_SEC, amountIn, 1, 0];
    return chain.call(taker, v3.router, 'exactInputSingle', [args]);
  };
  return measuredAcross(chain, pool, 'v3', swap, state);
}

/** Slot of the mapping of pools in the PoolManager, and of a pool's liquidity relative to the pool's. */
const POOLS_SLOT = 6n;
const LIQUIDITY_OFFSET = 3n;

/** Contracts of v4. */
interface V4 {
  manager: Contract;
  modifier: Contract;
}

/** v4 without pools; the maker lets it take its tokens. */
export async function deployV4(world: World): Promise<V4> {
  const artifacts = '@uniswap/v4-core/out';
  const managerPath = `${artifacts}/PoolManager.sol/PoolManager.json`;
  const manager = await published(world, managerPath, [world.operator]);
  const modifierPath = `${artifacts}/PoolModifyLiquidityTest.sol/PoolModifyLiquidityTest.json`;
  const modifier = await published(world, modifierPath, [manager.address]);
  await world.approveAll(world.maker, modifier.address);
  return { manager, modifier };
}

type PoolKey = readonly [string, string, number, number, string];
const keyOf = ({ token0, token1 }: Pool): PoolKey => [token0, token1, FEE_PPM, TICK_SPACING, ZeroAddress];

/** The pool of a pair, with a wide position and a narrow one. */
export async function addManagedPool(
  { chain, maker }: World,
  { manager, modifier }: V4,
  pair: BenchPair,
): Promise<void> {
  const pool = poolOf(pair);
  const key = keyOf(pool);
  await chain.call(maker, manager, 'initialize', [key, pool.sqrtPriceX96]);
  const [amount0, amount1] = amountsOf(pool, WIDE_BASE);
  const liquidity = squareRoot(amount0 * amount1);
  for (const [width, delta] of [[WIDE, liquidity] as const, [NARROW, liquidity / 10n] as const]) {
    const { lower, upper } = rangeOf(pool, width);
    const change = [lower, upper, delta, `0x${'00'.repeat(32)}`];
    await chain.call(
      maker,
      modifier,
      'modifyLiquidity((address,address,uint24,int24,address),(int24,int24,int256,bytes32),bytes)',
      [key, change, '0x'],
    );
  }
}

/** v4 through `UnlockRouter`. */
export async function measureV4(world: World): Promise<Row[]> {
  const { chain, pairs, taker, compiled } = world;
  const v4 = await deployV4(world);
  const { manager } = v4;
  const { abi, bytecode } = compiled.UnlockRouter;
  const router = await chain.deploy(chain.signers[DEPLOYER]!, abi, bytecode, [manager.address]);
  await world.approveAll(taker, router.address);
  const coder = AbiCoder.defaultAbiCoder();
  const rows: Row[] = [];
  for (const pool of pairs.map(poolOf)) {
    await addManagedPool(world, v4, pool.pair);
    const key = keyOf(pool);
    const id = keccak256(coder.encode(['address', 'address', 'uint24', 'int24', 'address'], key));
    const poolSlot = BigInt(keccak256(coder.encode(['bytes32', 'uint256'], [id, POOLS_SLOT])));
    const word = async (slot: bigint): Promise<bigint> => {
      const answer = await chain.provider.getStorage(manager.address, slot);
      return BigInt(answer);
    };
    const state = async () => ({
      tick: toSafeInt(BigInt.asIntN(24, (await word(poolSlot)) >> 160n)),
      liquidity: BigInt.asUintN(128, await word(poolSlot + LIQUIDITY_OFFSET)),
    });
    const swap: Swap = (direction, amountIn) => {
      const zeroForOne = (direction === 'sell') === pool.baseIsToken0;
      return chain.call(taker, router, 'swap', [key, zeroForOne, amountIn, 1]);
    };
    rows.push(...(await measuredAcross(chain, pool, 'v4', swap, state)));
  }
  return rows;
}

/** The transfers alone. */
export async function measureFloor(world: World): Promise<Row[]> {
  const { chain, pairs, maker, taker, compiled } = world;
  const floor = await chain.deploy(chain.signers[DEPLOYER]!, compiled.Floor.abi, compiled.Floor.bytecode);
  await world.approveAll(taker, floor.address);
  const rows: Row[] = [];
  for (const pool of pairs.map(poolOf)) {
    for (const token of [pool.pair.base, pool.pair.quote]) {
      const transfer = new Interface(['function transfer(address to, uint256 amount) returns (bool)']);
      const amount = token === pool.pair.base ? ONE_BASE : PRICE * 10n ** 6n;
      await chain.call(maker, { address: token.address, abi: transfer }, 'transfer', [floor.address, amount]);
    }
    const swap: Swap = (direction, amountIn) => {
      const { tokenIn, tokenOut } = inputOf(pool, direction);
      return chain.call(taker, floor, 'swap', [tokenIn, tokenOut, amountIn, inValue(direction, amountIn)]);
    };
    rows.push(...(await measured(chain, pool, 'floor', swap)));
  }
  return rows;
}
