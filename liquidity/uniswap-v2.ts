/** Pairs of Uniswap v2: one per pair of tokens, priced by its reserves and quoted by the router. */
import { Interface, getCreate2Address, keccak256, solidityPacked } from 'ethers';
import { MAX_RESERVE, pairBox, pairSource, type PairState } from '../core/swap/pair-source.js';
import type { Address, Hex } from '../core/types.js';
import { callsAt, isFailedCall, onOne, type EthReader, type Head } from './eth.js';
import { createPoolFinder, type PoolRule } from './pool-finder.js';
import { RouterError, createRouterCheck } from './routers.js';
import { venueKind, type Venue } from './venue.js';

interface UniswapV2Contracts {
  factory: Address;
  router: Address;
}

const KINDS = ['Router02'] as const;
/** Of every pair, by its code. */
const FEE_PPM = 3_000n;
/** Hash of the code that creates a pair of Uniswap itself; what others made of it has another one. */
const PAIR_CODE_HASH = '0x96e8ac4277198ff8b6f785478aa9a39f403cb768dd02cbee326c3e7da348845f';

const FACTORY = new Interface(['function getPair(address, address) view returns (address)']);
const PAIR = new Interface(['function getReserves() view returns (uint112 reserve0, uint112 reserve1, uint32)']);
const ROUTER = new Interface([
  'function getAmountsOut(uint256 amountIn, address[] path) view returns (uint256[])',
  'function getAmountsIn(uint256 amountOut, address[] path) view returns (uint256[])',
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[])',
  'function swapTokensForExactTokens(uint256 amountOut, uint256 amountInMax, address[] path, address to, uint256 deadline) returns (uint256[])',
]);
/** Of a sale, what it sells stands right behind the selector. */
const AMOUNT_AT = 4;

const poolRule = (factory: Address): PoolRule => ({
  factory,
  feesPpm: [FEE_PPM],
  question: (tokens) => FACTORY.encodeFunctionData('getPair', tokens),
  addressOf(tokens) {
    const salt = keccak256(solidityPacked(['address', 'address'], [...tokens].sort()));
    return getCreate2Address(factory, salt, PAIR_CODE_HASH).toLowerCase() as Address;
  },
});

export function createUniswapV2(
  eth: EthReader,
  contracts: UniswapV2Contracts,
  monotonicMs: () => number = () => performance.now(),
): Venue {
  const name = 'uniswap-v2';
  const finder = createPoolFinder(eth, poolRule(contracts.factory), monotonicMs);
  const routerKind = createRouterCheck(eth, contracts.router, KINDS, monotonicMs);

  async function readPair(
    one: EthReader,
    pair: Address,
    sellToken: Address,
    buyToken: Address,
    head: Head,
  ): Promise<PairState> {
    const [answer] = await callsAt(one, head, [{ to: pair, data: PAIR.encodeFunctionData('getReserves') }]);
    const [reserve0, reserve1] = PAIR.decodeFunctionResult('getReserves', answer ?? '0x') as unknown as [
      bigint,
      bigint,
    ];
    if (reserve0 > MAX_RESERVE || reserve1 > MAX_RESERVE)
      throw new RangeError(`no pair has reserves of ${reserve0} and ${reserve1}`);
    const [reserveIn, reserveOut] = sellToken < buyToken ? [reserve0, reserve1] : [reserve1, reserve0];
    return { id: `${name}:${FEE_PPM}`, feePpm: FEE_PPM, reserveIn, reserveOut };
  }

  /** Null for a pair that does not exist. */
  async function find(
    sellToken: Address,
    buyToken: Address,
    head: Head,
  ): Promise<{ pair: Address; state: PairState } | null> {
    const [found] = await finder.poolsOf(sellToken, buyToken, head);
    if (found === undefined) return null;
    const [, pair] = found;
    try {
      return { pair, state: await onOne(eth, (one) => readPair(one, pair, sellToken, buyToken, head)) };
    } catch (error) {
      finder.forget(pair);
      throw error;
    }
  }

  return {
    name,
    target: contracts.router,
    async sources(sellToken, buyToken, head) {
      if ((await routerKind()) === null) return [];
      const found = await find(sellToken, buyToken, head);
      const source = found === null ? null : pairSource(found.state);
      return source === null ? [] : [source];
    },
    async quote({ kind, sellToken, buyToken, inUnits, outUnits }, head) {
      const [method, amount] =
        kind === 'sell' ? (['getAmountsOut', inUnits] as const) : (['getAmountsIn', outUnits] as const);
      const data = ROUTER.encodeFunctionData(method, [amount, [sellToken, buyToken]]);
      try {
        return await onOne(eth, async (one) => {
          const [answer] = await callsAt(one, head, [{ to: contracts.router, data }]);
          const [amounts] = ROUTER.decodeFunctionResult(method, answer ?? '0x') as unknown as [bigint[]];
          const units = kind === 'sell' ? amounts[1] : amounts[0];
          return units === undefined || units === 0n ? null : units;
        });
      } catch (error) {
        if (isFailedCall(error)) return null;
        throw error;
      }
    },
    async call({ kind, sellToken, buyToken, inUnits, outUnits }, { recipient, deadlineSec, maxIn }) {
      if ((await routerKind()) === null) throw new RouterError(contracts.router, KINDS);
      const [method, amountIn, amounts] =
        kind === 'sell'
          ? (['swapExactTokensForTokens', inUnits, [inUnits, 0n]] as const)
          : (['swapTokensForExactTokens', maxIn, [outUnits, maxIn]] as const);
      const args = [...amounts, [sellToken, buyToken], recipient, deadlineSec];
      const data = ROUTER.encodeFunctionData(method, args) as Hex;
      return { target: contracts.router, amountIn, amountAt: AMOUNT_AT, data };
    },
    async checks({ kind, sellToken, buyToken, inUnits, outUnits }, boundUnits, head) {
      const found = await find(sellToken, buyToken, head);
      const box = found === null ? null : pairBox(found.state, kind, kind === 'sell' ? inUnits : outUnits, boundUnits);
      if (found === null || box === null) return null;
      const [wordIn, wordOut] = sellToken < buyToken ? [0, 1] : [1, 0];
      const reserves = { target: found.pair, data: PAIR.encodeFunctionData('getReserves') as Hex };
      return [
        { ...reserves, word: wordIn, minimum: 0n, maximum: box.mostReserveIn },
        { ...reserves, word: wordOut, minimum: box.leastReserveOut, maximum: null },
      ];
    },
  };
}

export const uniswapV2 = venueKind({
  name: 'uniswap-v2',
  title: 'Uniswap v2',
  setting: 'UNISWAP_V2',
  manifest: 'uniswapV2',
  contracts: { factory: '', router: 'Router02; the settler must have it as a target' },
  routers: KINDS,
  ofFactory: ['router'],
  create: createUniswapV2,
});
