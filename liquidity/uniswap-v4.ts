/**
 * Pools of Uniswap v4 without hooks. They are all in one contract, the PoolManager, whose storage anybody may read: a pool is known by its key
 * alone, so that there is nothing to find. Of a key without hooks the fee can't be dynamic. Pools of ether are left out: orders trade its wrapped token.
 */
import { AbiCoder, Interface, ZeroAddress, keccak256 } from 'ethers';
import { toSafeInt, wordOf } from '../core/amounts.js';
import { FEE_DENOMINATOR } from '../core/swap/pool-math.js';
import { MAX_CROSSED, poolBox, poolSource, type PoolState } from '../core/swap/pool-source.js';
import type { Address, Hex } from '../core/types.js';
import { callsAt, isFailedCall, onOne, type EthReader, type Head } from './eth.js';
import { rangesAhead, type KnownRanges } from './pool-ranges.js';
import { RouterError, createRouterCheck } from './routers.js';
import { venueKind, type StateCheck, type Venue } from './venue.js';

export interface UniswapV4Contracts {
  poolManager: Address;
  /** UniswapV4Router, which quotes, too. */
  router: Address;
}

const KINDS = ['UniswapV4Router'] as const;
/** Fees with the tick spacings that go with them. A key may have any two; these are what Uniswap's own interface makes pools of. */
const TIERS = [
  { feePpm: 100n, spacing: 1 },
  { feePpm: 500n, spacing: 10 },
  { feePpm: 3_000n, spacing: 60 },
  { feePpm: 10_000n, spacing: 200 },
] as const;
type Tier = (typeof TIERS)[number];

const KEY = '(address currency0, address currency1, uint24 fee, int24 tickSpacing, address hooks)';
const MANAGER = new Interface([
  'function extsload(bytes32[] slots) view returns (bytes32[])',
  'function extsload(bytes32 slot) view returns (bytes32)',
  'function owner() view returns (address)',
]);
const ROUTER = new Interface([
  `function swapExactIn(${KEY} key, bool zeroForOne, uint256 amountIn, uint256 minAmountOut) returns (uint256)`,
  `function swapExactOut(${KEY} key, bool zeroForOne, uint256 amountOut, uint256 maxAmountIn) returns (uint256)`,
  `function quoteExactIn(${KEY} key, bool zeroForOne, uint256 amountIn) returns (uint256)`,
  `function quoteExactOut(${KEY} key, bool zeroForOne, uint256 amountOut) returns (uint256)`,
  `function sqrtPriceOf(${KEY} key) view returns (uint160)`,
]);
/** Behind the selector, the five words of the key, and the direction. */
const AMOUNT_AT = 4 + 32 * 6;

/** Where the PoolManager keeps its owner and its pools, and a pool the parts of its state, by the layout that is part of its interface. */
const OWNER_SLOT = 0n;
const POOLS_SLOT = 6n;
const LIQUIDITY_OFFSET = 3n;
const TICKS_OFFSET = 4n;
const BITMAP_OFFSET = 5n;
/** The most of the input that the protocol takes, in millionths. */
const MAX_PROTOCOL_FEE = 1_000n;

const HALF_WORD = (1n << 128n) - 1n;

const coder = AbiCoder.defaultAbiCoder();
const mappingSlot = (type: string, key: unknown, slot: bigint): bigint =>
  BigInt(keccak256(coder.encode([type, 'uint256'], [key, slot])));

const tickSlot = (poolSlot: bigint, tick: number): bigint => mappingSlot('int24', tick, poolSlot + TICKS_OFFSET);

type Key = readonly [currency0: Address, currency1: Address, feePpm: bigint, spacing: number, hooks: string];

const keyOf = (sellToken: Address, buyToken: Address, { feePpm, spacing }: Tier): Key => {
  const [currency0, currency1] = sellToken < buyToken ? [sellToken, buyToken] : [buyToken, sellToken];
  return [currency0, currency1, feePpm, spacing, ZeroAddress];
};

/** The slot at which a pool's state begins. */
const stateSlot = (key: Key): bigint =>
  mappingSlot(
    'bytes32',
    keccak256(coder.encode(['address', 'address', 'uint24', 'int24', 'address'], key)),
    POOLS_SLOT,
  );

/**
 * What a pool takes of an input, in millionths: the protocol's fee first, then that of the liquidity providers of what is left. Throws RangeError for fees that
 * a pool of this tier can't have.
 */
export function swapFeePpm(slot0: bigint, zeroForOne: boolean, tierPpm: bigint): bigint {
  const protocolPpm = (slot0 >> (zeroForOne ? 184n : 196n)) & 0xfffn;
  const lpPpm = (slot0 >> 208n) & 0xffffffn;
  if (lpPpm !== tierPpm || protocolPpm > MAX_PROTOCOL_FEE)
    throw new RangeError(`no pool of the fee ${tierPpm} has one of ${lpPpm}, and the protocol one of ${protocolPpm}`);
  return protocolPpm + lpPpm - (protocolPpm * lpPpm) / FEE_DENOMINATOR;
}

/** A pool's state, with what ends each of its ranges, and the first slot of its storage. */
type KnownPool = PoolState & KnownRanges & { slot: bigint };

export function createUniswapV4(
  eth: EthReader,
  contracts: UniswapV4Contracts,
  monotonicMs: () => number = () => performance.now(),
): Venue {
  const name = 'uniswap-v4';
  const idOf = ({ feePpm }: Tier): string => `${name}:${feePpm}`;
  const routerKind = createRouterCheck(eth, contracts.router, KINDS, monotonicMs);

  /** The tier that an id names. Throws RangeError for an id that is none of this venue's. */
  function tierNamed(id: string): Tier {
    const tier = TIERS.find((one) => idOf(one) === id);
    if (tier === undefined) throw new RangeError(`${id} is no pool of ${name}`);
    return tier;
  }

  /** The states of a pair's pools that exist, and where each is in the manager's storage. */
  async function read(
    one: EthReader,
    [sellToken, buyToken]: readonly [Address, Address],
    tiers: readonly Tier[],
    head: Head,
  ): Promise<KnownPool[]> {
    const zeroForOne = sellToken < buyToken;
    const load = (slots: readonly bigint[]): Promise<bigint[]> => storageOf(one, contracts.poolManager, slots, head);
    const pools = tiers.map((tier) => ({ tier, slot: stateSlot(keyOf(sellToken, buyToken, tier)) }));
    const states = await load(pools.flatMap(({ slot }) => [slot, slot + LIQUIDITY_OFFSET]));
    const known = await Promise.all(
      pools.map(async ({ tier, slot }, i) => {
        const [slot0, liquidity] = states.slice(2 * i, 2 * i + 2) as [bigint, bigint];
        const sqrtPrice = BigInt.asUintN(160, slot0);
        if (sqrtPrice === 0n) return null;
        const feePpm = swapFeePpm(slot0, zeroForOne, tier.feePpm);
        const tick = toSafeInt(BigInt.asIntN(24, slot0 >> 160n));
        const place = { sqrtPrice, tick, spacing: tier.spacing, liquidity };
        const ahead = await rangesAhead(place, zeroForOne, {
          bitmaps: (words) => load(words.map((word) => mappingSlot('int16', word, slot + BITMAP_OFFSET))),
          async nets(all) {
            const infos = await load(all.map((at) => tickSlot(slot, at)));
            return infos.map((info) => BigInt.asIntN(128, info >> 128n));
          },
        });
        return ahead.ranges.length === 0 ? null : { id: idOf(tier), zeroForOne, feePpm, sqrtPrice, slot, ...ahead };
      }),
    );
    return known.filter((pool) => pool !== null);
  }

  return {
    name,
    target: contracts.router,
    async sources(sellToken, buyToken, head) {
      if ((await routerKind()) === null) return [];
      const pools = await onOne(eth, (one) => read(one, [sellToken, buyToken], TIERS, head));
      return pools.map(poolSource);
    },
    async quote({ id, kind, sellToken, buyToken, inUnits, outUnits }, head) {
      const [method, amount] =
        kind === 'sell' ? (['quoteExactIn', inUnits] as const) : (['quoteExactOut', outUnits] as const);
      const key = keyOf(sellToken, buyToken, tierNamed(id));
      const data = ROUTER.encodeFunctionData(method, [key, sellToken < buyToken, amount]);
      try {
        return await onOne(eth, async (one) => {
          const [answer] = await callsAt(one, head, [{ to: contracts.router, data }]);
          const [units] = ROUTER.decodeFunctionResult(method, answer ?? '0x') as unknown as [bigint];
          return units === 0n ? null : units;
        });
      } catch (error) {
        if (isFailedCall(error)) return null;
        throw error;
      }
    },
    async call({ id, kind, sellToken, buyToken, inUnits, outUnits }, { maxIn }) {
      if ((await routerKind()) === null) throw new RouterError(contracts.router, KINDS);
      const [method, amountIn, amounts] =
        kind === 'sell'
          ? (['swapExactIn', inUnits, [inUnits, 0n]] as const)
          : (['swapExactOut', maxIn, [outUnits, maxIn]] as const);
      // Without recipient and deadline: the router pays its caller, and the order has a deadline.
      const args = [keyOf(sellToken, buyToken, tierNamed(id)), sellToken < buyToken, ...amounts];
      const data = ROUTER.encodeFunctionData(method, args) as Hex;
      return { target: contracts.router, amountIn, amountAt: AMOUNT_AT, data };
    },
    async checks({ id, kind, sellToken, buyToken, inUnits, outUnits }, boundUnits, head) {
      const tier = tierNamed(id);
      const [pool] = await onOne(eth, (one) => read(one, [sellToken, buyToken], [tier], head));
      const box = pool === undefined ? null : poolBox(pool, kind, kind === 'sell' ? inUnits : outUnits, boundUnits);
      if (pool === undefined || box === null || box.crossed > MAX_CROSSED) return null;
      const { lowSqrtPrice, highSqrtPrice, leastLiquidity, mostLiquidity, crossed } = box;
      const price = ROUTER.encodeFunctionData('sqrtPriceOf', [keyOf(sellToken, buyToken, tier)]) as Hex;
      const word = (slot: bigint, minimum: bigint, maximum: bigint | null): StateCheck => {
        const data = MANAGER.encodeFunctionData('extsload(bytes32)', [`0x${wordOf(slot)}`]) as Hex;
        return { target: contracts.poolManager, word: 0, minimum, maximum, data };
      };
      return [
        { target: contracts.router, word: 0, minimum: lowSqrtPrice, maximum: highSqrtPrice, data: price },
        word(pool.slot + LIQUIDITY_OFFSET, leastLiquidity, mostLiquidity),
        // The net change is the upper half of a tick's word, whatever stands in the lower one.
        ...pool.ticks.slice(0, crossed).map(({ tick, net }) => {
          const least = BigInt.asUintN(128, net) << 128n;
          return word(tickSlot(pool.slot, tick), least, least | HALF_WORD);
        }),
      ];
    },
  };
}

/** Words of the manager's storage, in one call. */
async function storageOf(one: EthReader, at: Address, slots: readonly bigint[], head: Head): Promise<bigint[]> {
  const data = MANAGER.encodeFunctionData('extsload(bytes32[])', [slots.map((slot) => `0x${wordOf(slot)}`)]);
  const [answer] = await callsAt(one, head, [{ to: at, data }]);
  return wordsIn(answer ?? '0x', slots.length);
}

function wordsIn(answer: Hex, count: number): bigint[] {
  const [words] = MANAGER.decodeFunctionResult('extsload(bytes32[])', answer) as unknown as [string[]];
  if (words.length !== count) throw new RangeError(`${words.length} words of storage instead of ${count}`);
  return words.map(BigInt);
}

/** A PoolManager shows its storage, and has its owner where it says. */
async function inspectManager(eth: EthReader, at: Address): Promise<string | null> {
  const ask = async (data: string): Promise<Hex> => (await eth.call('eth_call', [{ to: at, data }, 'latest'])) as Hex;
  const problem = `${at} is not Uniswap's PoolManager`;
  try {
    const owner = await ask(MANAGER.encodeFunctionData('owner'));
    const storage = await ask(MANAGER.encodeFunctionData('extsload(bytes32[])', [[`0x${wordOf(OWNER_SLOT)}`]]));
    if (owner.length !== 66 || storage.length !== 194) return problem;
    return wordsIn(storage, 1)[0] === BigInt(owner) ? null : problem;
  } catch (error) {
    if (isFailedCall(error)) return problem;
    throw error;
  }
}

export const uniswapV4 = venueKind({
  name: 'uniswap-v4',
  title: 'Uniswap v4',
  setting: 'UNISWAP_V4',
  manifest: 'uniswapV4',
  contracts: {
    poolManager: '',
    router: "the platform's UniswapV4Router, which `deploy` makes; the settler must have it as a target",
  },
  routers: KINDS,
  parent: 'poolManager',
  ofParent: ['router'],
  inspectParent: inspectManager,
  hasOwnRouter: true,
  create: createUniswapV4,
});
