import { toSafeInt } from '../core/amounts.js';
import { consumedUnits } from '../core/curve/walk.js';
import { decodeSide } from '../core/curve/words.js';
import type { CurveState } from '../core/swap/curve-source.js';
import type { Address, Hex, Market } from '../core/types.js';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { callsAt, onOne, type EthReader, type Head } from './eth.js';
import type { StateCheck, Venue } from './venue.js';

const BOOK = CurveBook__factory.createInterface();
const CUSTODIAN = Custodian__factory.createInterface();

/** Of `swap`: behind the selector and both tokens. */
const SWAP_AMOUNT_AT = 0x44;

/** A place as the settler trades with it. */
export type TradedVenue = Pick<Venue, 'target' | 'call' | 'checks'>;

/** Our own curves as legs of a path, and what their trades rely on. Their sources are those of the markets. */
export function createOwnVenue({ entrypoint, curveBook }: Record<'entrypoint' | 'curveBook', Address>): TradedVenue {
  const swaps = Entrypoint__factory.createInterface();
  return {
    target: entrypoint,
    call({ kind, sellToken, buyToken, inUnits, outUnits }, { recipient, deadlineSec, maxIn }) {
      const isSale = kind === 'sell';
      const amounts: [bigint, bigint] = isSale ? [inUnits, 0n] : [outUnits, maxIn];
      const args = [sellToken, buyToken, ...amounts, recipient, BigInt(deadlineSec)] as const;
      const data = (
        isSale ? swaps.encodeFunctionData('swap', [...args]) : swaps.encodeFunctionData('swapExactOutput', [...args])
      ) as Hex;
      const amountIn = isSale ? inUnits : maxIn;
      return Promise.resolve({ target: entrypoint, amountIn, amountAt: SWAP_AMOUNT_AT, data });
    },
    checks({ kind, sellToken, buyToken, inUnits, outUnits }, boundUnits) {
      const isBuy = kind === 'buy';
      const data = BOOK.encodeFunctionData('preview', [sellToken, buyToken, isBuy ? outUnits : inUnits, isBuy]) as Hex;
      // Both amounts are zero for what would not trade. Not `previewSwap`, which asks for the vault's free liquidity besides: that falls by
      // swaps and by claims that the operator settles, so that to make it short someone trades the vault dry, which costs more than a revert.
      const check: StateCheck = isBuy
        ? { target: curveBook, word: 0, minimum: 1n, maximum: boundUnits, data }
        : { target: curveBook, word: 1, minimum: boundUnits > 1n ? boundUnits : 1n, maximum: null, data };
      return Promise.resolve([check]);
    },
  };
}

/** A market's curve as it is at a block, and when it ends. */
interface LiveCurve {
  state: CurveState;
  /** First second in which it can't be executed any more. */
  deadlineSec: number;
  /** Free liquidity of the vault. */
  availableUnits: { base: bigint; quote: bigint };
}

/** Reads a market's words, counters and the vault's free liquidity, in one round trip. */
export async function readCurve(
  eth: EthReader,
  contracts: { curveBook: Address; custodian: Address },
  market: Market,
  head: Head,
): Promise<LiveCurve> {
  return onOne(eth, (one) => readCurveOn(one, contracts, market, head));
}

async function readCurveOn(
  eth: EthReader,
  contracts: { curveBook: Address; custodian: Address },
  market: Market,
  head: Head,
): Promise<LiveCurve> {
  const available = (token: Address) => ({
    to: contracts.custodian,
    data: CUSTODIAN.encodeFunctionData('availableLiquidity', [token]),
  });
  const [stateData, wordsData, baseData, quoteData] = await callsAt(eth, head, [
    { to: contracts.curveBook, data: BOOK.encodeFunctionData('marketState', [market.id]) },
    { to: contracts.curveBook, data: BOOK.encodeFunctionData('curveWords', [market.id]) },
    available(market.base.address),
    available(market.quote.address),
  ]);
  const [chain] = BOOK.decodeFunctionResult('marketState', stateData ?? '0x') as unknown as [
    { cumAsk: bigint; cumBid: bigint; snapAsk: bigint; snapBid: bigint; deadline: bigint },
  ];
  const decoded = BOOK.decodeFunctionResult('curveWords', wordsData ?? '0x') as unknown as [bigint[], bigint[]];
  const [askWords, bidWords] = [[...decoded[0]], [...decoded[1]]];
  return {
    state: {
      market,
      sides: { asks: decodeSide(market, 'ask', askWords), bids: decodeSide(market, 'bid', bidWords) },
      consumed: {
        askUnits: consumedUnits(chain.cumAsk, chain.snapAsk),
        bidUnits: consumedUnits(chain.cumBid, chain.snapBid),
      },
    },
    deadlineSec: toSafeInt(chain.deadline),
    availableUnits: { base: BigInt(baseData ?? '0x0'), quote: BigInt(quoteData ?? '0x0') },
  };
}
