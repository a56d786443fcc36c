/** Curvebook's own figures: swaps, quotes, posts and the custodian's functions. */
import { AbiCoder, keccak256, toBeHex } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import { packSide } from '../../core/curve/words.js';
import { encodePost, type FullPost, type PostRecord } from '../../core/curve/post.js';
import { marketId } from '../../core/market.js';
import type { Address, Hex } from '../../core/types.js';
import { deployCurvebook } from '../../deploy/deploy.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';
import type { Contract, Measured } from './chain.js';
import { figure, row, type Row } from './rows.js';
import { OPERATOR, PRICE, type BenchPair, type BenchToken, type World } from './world.js';

/** One lot is 0.0001 base tokens, one tick 0.01 quote tokens. */
const GRID = { tickSize: '0.01', lotSize: '0.0001' };
const MAX_TTL_SEC = 255;
const TTL_SEC = 200;
export const DEADLINE_SEC = 2_000_000_001n;
export const ONE_BASE = 10n ** 18n;
const CLAIM_UNITS = 123_457n;

/** Every segment is one base token long. */
const KNOT = { mantissa: 2500n, exponent: 2n };
const SHIFT = 5n;
/** 3,000.00 in quanta of 2^5 subticks. */
const MIDDLE_QUANTA = (PRICE * 100n * 256n) >> SHIFT;

export interface Venue {
  world: World;
  custodian: Contract;
  curveBook: Contract;
  entrypoint: Contract;
  settler: Contract;
}

/** Deploys, funds and warms everything up: all storage that is measured has been written before. */
export async function createVenue(world: World): Promise<Venue> {
  const { chain, pairs, others, operator, maker, taker } = world;
  const quote = pairs[1]!.quote;
  const markets = [...pairs, ...others.map((base) => ({ base, quote }))];
  const tokens = [...new Set(markets.flatMap(({ base, quote }) => [base, quote]))];
  const { manifest, orderSettler } = await deployCurvebook({
    deployer: chain.signers[OPERATOR]!,
    owner: operator,
    curvePosters: [operator],
    claimPosters: [operator],
    executors: [operator],
    withdrawDelaySec: 1,
    tokens: tokens.map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
    markets: markets.map(({ base, quote }) => ({
      pair: `${base.symbol}-${quote.symbol}`,
      ...GRID,
      maxTtlSec: MAX_TTL_SEC,
    })),
    log: () => undefined,
  });
  const venue: Venue = {
    world,
    custodian: { address: manifest.contracts.custodian, abi: Custodian__factory.createInterface() },
    curveBook: { address: manifest.contracts.curveBook, abi: CurveBook__factory.createInterface() },
    entrypoint: { address: manifest.contracts.entrypoint, abi: Entrypoint__factory.createInterface() },
    settler: { address: await orderSettler.getAddress(), abi: OrderSettler__factory.createInterface() },
  };
  for (const market of markets) await age(venue, idOf(market));
  await world.approveAll(maker, venue.custodian.address);
  await world.approveAll(taker, venue.entrypoint.address);
  for (const { base, quote } of pairs) {
    await chain.call(maker, venue.custodian, 'deposit', [base.address, 1000n * ONE_BASE]);
    await chain.call(maker, venue.custodian, 'deposit', [quote.address, 1000n * PRICE * 10n ** 6n]);
    // A settled claim, as a vault in use has.
    for (const token of [base, quote]) await settle(venue, maker, token, CLAIM_UNITS, 0n);
  }
  return venue;
}

/** Writes a first curve of 31 knots per side everywhere, and swaps once each way. */
export async function warmUp(venue: Venue): Promise<void> {
  const { world } = venue;
  for (const pair of [...world.pairs, ...otherPairs(world)]) await post(venue, [pair], 31);
  for (const pair of world.pairs) {
    await swap(venue, pair, 'sell', 'swap', 10n ** 15n);
    await swap(venue, pair, 'buy', 'swap', 10n ** 7n);
  }
}

const otherPairs = ({ pairs, others }: World) => others.map((base) => ({ base, quote: pairs[1]!.quote }));
type Pair = Pick<BenchPair, 'base' | 'quote'>;

const idOf = ({ base, quote }: Pair): Hex => marketId(base.address as Address, quote.address as Address);

/** `knots` segments, each about 0.08 % worse than the one before, with few zero bytes; another `turn` gives other words. */
function sideWords(isAsk: boolean, knots: number, turn: number): bigint[] {
  const basePrice = MIDDLE_QUANTA + (isAsk ? 300n : -300n) + BigInt(turn % 100);
  const offsets = Array.from({ length: knots }, (_, i) => 257n + 1999n * BigInt(i) + BigInt(turn % 100));
  return packSide({ shift: SHIFT, basePrice, knots: offsets.map((offset) => ({ ...KNOT, offset })) });
}

interface State {
  cumAsk: bigint;
  cumBid: bigint;
  seq: number;
}

async function stateOf(venue: Venue, id: Hex): Promise<State> {
  const [state] = await venue.world.chain.view(venue.curveBook, 'marketState', [id]);
  const { cumAsk, cumBid, seq } = state as { cumAsk: bigint; cumBid: bigint; seq: bigint };
  return { cumAsk, cumBid, seq: toSafeInt(seq) };
}

/** A full post of a curve whose snapshot reflects the volumes of `cut`; by default the present ones. */
async function fullRecord(
  venue: Venue,
  pair: Pair,
  knots: number,
  deadlineSec: number,
  cut?: State,
): Promise<FullPost> {
  const id = idOf(pair);
  const { cumAsk, cumBid, seq: liveSeq } = cut ?? (await stateOf(venue, id));
  const seq = nextSeq(liveSeq);
  return {
    kind: 'full',
    marketId: id,
    seq,
    deadlineSec,
    snapAskUnits: cumAsk,
    snapBidUnits: cumBid,
    exactAskKnots: 1,
    exactBidKnots: 1,
    askWords: sideWords(true, knots, seq),
    bidWords: sideWords(false, knots, seq),
  };
}

/** The sequence number of a market after about a year: four bytes, none of them zero. */
const YEAR_SEQ = 30_000_001n;
const nextSeq = (liveSeq: number): number => liveSeq + 1;
/** Where the contract keeps its markets; the post word is the second one of a market, and its low 32 bits are the sequence number. */
const MARKETS_SLOT = '0xa38d78212eb18d6bb0d38624cf847896232e7de10c47b7a18de50988a9912d00';

/** Sets the sequence number of a market to `YEAR_SEQ`. */
async function age(venue: Venue, id: Hex): Promise<void> {
  const { provider } = venue.world.chain;
  const { address } = venue.curveBook;
  const swapSlot = BigInt(keccak256(AbiCoder.defaultAbiCoder().encode(['bytes32', 'uint256'], [id, MARKETS_SLOT])));
  const slot = toBeHex(swapSlot + 1n, 32);
  const word = BigInt(await provider.getStorage(address, slot));
  await provider.send('hardhat_setStorageAt', [address, slot, toBeHex(word | YEAR_SEQ, 32)]);
}

async function sendPosts(venue: Venue, method: 'post' | 'postBatch', records: readonly PostRecord[]) {
  const { chain, operator } = venue.world;
  const data = encodePost(await chain.head(), records);
  return chain.call(operator, venue.curveBook, method, [data]);
}

/** Posts new curves with `knots` knots per side, as one batch if there are several. */
export async function post(venue: Venue, pairs: readonly Pair[], knots: number, batch = false): Promise<Measured> {
  const { timestampSec } = await venue.world.chain.head();
  const records: PostRecord[] = [];
  for (const pair of pairs) records.push(await fullRecord(venue, pair, knots, timestampSec + TTL_SEC));
  return sendPosts(venue, batch ? 'postBatch' : 'post', records);
}

/** A post of 15 knots per side, none of them exact, after swaps that came after its cut and that end in segment `segment`. */
async function postLate(venue: Venue, pair: BenchPair, directions: readonly Direction[], segment: number) {
  await post(venue, [pair], 15);
  const cut = await stateOf(venue, idOf(pair));
  for (const direction of directions) await swapInto(venue, pair, direction, segment);
  const { timestampSec } = await venue.world.chain.head();
  const record = await fullRecord(venue, pair, 15, timestampSec + TTL_SEC, cut);
  return sendPosts(venue, 'post', [{ ...record, exactAskKnots: 0, exactBidKnots: 0 }]);
}

/** Prolongs the live curves by touches. */
async function touch(venue: Venue, pairs: readonly Pair[], batch = false): Promise<Measured> {
  const { timestampSec } = await venue.world.chain.head();
  const records: PostRecord[] = [];
  for (const pair of pairs) {
    const marketId = idOf(pair);
    const { seq: baseSeq } = await stateOf(venue, marketId);
    records.push({ kind: 'touch', marketId, baseSeq, seq: nextSeq(baseSeq), deadlineSec: timestampSec + TTL_SEC });
  }
  return sendPosts(venue, batch ? 'postBatch' : 'post', records);
}

export type Direction = 'sell' | 'buy';
type SwapMethod = 'swap' | 'swapExactOutput';

/** The taker sells or buys base, to itself. `units` is what `method` fixes; its limit never binds. */
function swap(venue: Venue, pair: Pair, direction: Direction, method: SwapMethod, units: bigint): Promise<Measured> {
  const { chain, taker } = venue.world;
  const [tokenIn, tokenOut] = path(pair, direction);
  const limit = method === 'swap' ? 1n : 2n ** 100n;
  return chain.call(taker, venue.entrypoint, method, [tokenIn, tokenOut, units, limit, taker, DEADLINE_SEC]);
}

export function path({ base, quote }: Pair, direction: Direction): [string, string] {
  return direction === 'sell' ? [base.address, quote.address] : [quote.address, base.address];
}

/** Quote units that buy, or come from selling, so many base units now. */
export async function quoteUnits(venue: Venue, pair: Pair, direction: Direction, baseUnits: bigint): Promise<bigint> {
  const method = direction === 'sell' ? 'quote' : 'quoteExactOutput';
  const [units] = await venue.world.chain.view(venue.entrypoint, method, [...path(pair, direction), baseUnits]);
  return units as bigint;
}

/** Exact input ending in segment `segment` (from 1) of a curve. */
async function swapInto(venue: Venue, pair: Pair, direction: Direction, segment: number): Promise<Measured> {
  const baseUnits = (BigInt(2 * segment - 1) * ONE_BASE) / 2n;
  const units = direction === 'sell' ? baseUnits : await quoteUnits(venue, pair, direction, baseUnits);
  return swap(venue, pair, direction, 'swap', units);
}

export const DIRECTIONS = ['sell', 'buy'] as const;
const DEEPEST = 31;

async function measureSwaps(venue: Venue, pair: BenchPair): Promise<Row[]> {
  const { undo } = venue.world.chain;
  const rows: Row[] = [];
  await post(venue, [pair], DEEPEST);
  for (const direction of DIRECTIONS) {
    const id = `swap.${pair.id}.${direction}`;
    const gas: number[] = [];
    for (let segment = 1; segment <= DEEPEST; segment++) {
      const measured = await undo(() => swapInto(venue, pair, direction, segment));
      gas.push(measured.gas);
      if ([1, 2, 7, 8, 15, 16, DEEPEST].includes(segment)) rows.push(row(`${id}.segment${segment}`, measured));
    }
    rows.push(figure(`${id}.perSegment`, Math.max(...gas.slice(1).map((one, i) => (one - gas[0]!) / (i + 1)))));

    const half = ONE_BASE / 2n;
    const out = direction === 'buy' ? half : await quoteUnits(venue, pair, direction, half);
    const exactOut = await undo(() => swap(venue, pair, direction, 'swapExactOutput', out));
    rows.push(row(`swapExactOutput.${pair.id}.${direction}`, exactOut));
  }
  return rows;
}

async function measureFee(venue: Venue, pair: BenchPair): Promise<Row[]> {
  const { undo, call } = venue.world.chain;
  const rows: Row[] = [];
  for (const direction of DIRECTIONS) {
    const measured = await undo(async () => {
      await call(venue.world.operator, venue.entrypoint, 'setTakerFee', [venue.world.taker, 500]);
      await call(venue.world.operator, venue.curveBook, 'setTakerFees', [idOf(pair), true]);
      return swapInto(venue, pair, direction, 1);
    });
    rows.push(row(`swap.${pair.id}.${direction}.fee`, measured));
  }
  return rows;
}

async function measurePosts(venue: Venue): Promise<Row[]> {
  const { world } = venue;
  const { undo } = world.chain;
  const pair = world.pairs[0]!;
  const batch = [pair, ...otherPairs(world)];
  const rows: Row[] = [];
  for (const knots of [7, 15, 31]) rows.push(row(`post.${knots}`, await undo(() => post(venue, [pair], knots))));
  for (const segment of [1, 15]) {
    const one = await undo(() => postLate(venue, pair, ['buy'], segment));
    const both = await undo(() => postLate(venue, pair, DIRECTIONS, segment));
    rows.push(row(`post.15.carry${segment}`, one), row(`post.15.carries${segment}`, both));
  }
  const one = await undo(() => post(venue, batch.slice(0, 1), 15, true));
  const all = await undo(() => post(venue, batch, 15, true));
  rows.push(row('postBatch.15x1', one), row(`postBatch.15x${batch.length}`, all));
  rows.push(figure('postBatch.perMarket', (all.gas - one.gas) / (batch.length - 1)));
  rows.push(row('touch', await undo(() => touch(venue, [pair]))));
  const oneTouch = await undo(() => touch(venue, batch.slice(0, 1), true));
  const allTouches = await undo(() => touch(venue, batch, true));
  rows.push(figure('touch.perMarket', (allTouches.gas - oneTouch.gas) / (batch.length - 1)));
  return rows;
}

/** Gas of executing the quotes, for a contract that has called none of our contracts in its transaction before. */
async function measureQuotes(venue: Venue, meter: Contract): Promise<Row[]> {
  const { chain, pairs, taker } = venue.world;
  const of = async (target: Contract, method: string, args: readonly unknown[]): Promise<number> => {
    const data = target.abi.encodeFunctionData(method, args);
    const [gas] = await chain.view(meter, 'measure', [target.address, data]);
    return parseInt(String(gas), 10);
  };
  const rows: Row[] = [];
  for (const pair of pairs) {
    await post(venue, [pair], DEEPEST);
    const half = ONE_BASE / 2n;
    const tokens = path(pair, 'sell');
    rows.push(figure(`preview.${pair.id}`, await of(venue.curveBook, 'preview', [...tokens, half, false])));
    rows.push(figure(`previewSwap.${pair.id}`, await of(venue.curveBook, 'previewSwap', [...tokens, half, false])));
    rows.push(figure(`quote.${pair.id}`, await of(venue.entrypoint, 'quote', [...tokens, half])));
    rows.push(figure(`quoteFor.${pair.id}`, await of(venue.entrypoint, 'quoteFor', [taker, ...tokens, half])));
    const deep = 30n * ONE_BASE + half;
    rows.push(figure(`quote.${pair.id}.segment31`, await of(venue.entrypoint, 'quote', [...tokens, deep])));
  }
  return rows;
}

function settle(venue: Venue, maker: string, token: BenchToken, units: bigint, basis: bigint): Promise<Measured> {
  const { chain, operator } = venue.world;
  return chain.call(operator, venue.custodian, 'settleWithdraw', [maker, token.address, units, basis]);
}

async function measureCustodian(venue: Venue): Promise<Row[]> {
  const { world, custodian } = venue;
  const { undo, call } = world.chain;
  const { operator, maker, taker } = world;
  const { base, quote } = world.pairs[0]!;
  const rows: Row[] = [];
  for (const token of [base, quote]) {
    const name = token.symbol.toLowerCase();
    const deposited = await undo(() => call(maker, custodian, 'deposit', [token.address, CLAIM_UNITS]));
    const requested = await undo(() => call(maker, custodian, 'requestWithdraw', [token.address, CLAIM_UNITS]));
    const raised = await undo(() => settle(venue, maker, token, CLAIM_UNITS * 2n, 1n));
    const executed = await undo(() => call(maker, custodian, 'executeWithdraw', [token.address]));
    rows.push(row(`deposit.${name}`, deposited), row(`requestWithdraw.${name}`, requested));
    rows.push(row(`settleWithdraw.${name}`, raised), row(`executeWithdraw.${name}`, executed));
  }
  const first = await undo(() => settle(venue, taker, quote, CLAIM_UNITS, 0n));
  rows.push(row('settleWithdraw.usdc.first', first));
  const claims = world.pairs.flatMap(({ base, quote }) =>
    [base, quote].map(({ address }) => ({ maker, token: address, amount: CLAIM_UNITS * 2n, basis: 1n })),
  );
  const batch = (count: number) =>
    undo(() => call(operator, custodian, 'settleWithdrawBatch', [claims.slice(0, count)]));
  const one = await batch(1);
  const all = await batch(claims.length);
  rows.push(row('settleWithdrawBatch.4', all));
  rows.push(figure('settleWithdrawBatch.perClaim', (all.gas - one.gas) / (claims.length - 1)));
  return rows;
}

/** Everything of ours but signed orders, in the order of the table. */
export async function measureCurvebook(venue: Venue, meter: Contract): Promise<Row[]> {
  const { world } = venue;
  const rows: Row[] = [];
  const first = await world.chain.undo(() => post(venue, [world.pairs[0]!], 15));
  await warmUp(venue);
  for (const pair of world.pairs) rows.push(...(await measureSwaps(venue, pair)));
  rows.push(...(await measureFee(venue, world.pairs[0]!)));
  rows.push(...(await measureQuotes(venue, meter)));
  rows.push(row('post.first', first), ...(await measurePosts(venue)));
  rows.push(...(await measureCustodian(venue)));
  return rows;
}
