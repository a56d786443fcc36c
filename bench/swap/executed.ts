/**
 * What orders bring that our service executes, beside the best that Uniswap alone gives in the same state of the same pools: one pool of its, or
 * the best split over several, as its own quoters say at the block of our quote.
 */
import { readFileSync } from 'node:fs';
import { Contract, ContractFactory, MaxUint256, Wallet, ZeroAddress, toQuantity, type InterfaceAbi } from 'ethers';
import { BPS, toSafeInt } from '../../core/amounts.js';
import { feeUnits, type GasPrice } from '../../core/swap/pricing.js';
import { OWN, type Source } from '../../core/swap/source.js';
import { split, type SplitKind } from '../../core/swap/split.js';
import type { Address } from '../../core/types.js';
import { sandboxIssuerKey } from '../../deploy/sandbox/accounts.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import type { Head } from '../../liquidity/eth.js';
import { sellToPool } from '../../test/support/contracts/pool-router.js';
import { startManualChain, type ManualChain } from '../../test/support/keeper-stack.js';
import { seededRandom, type Random } from '../../test/support/random.js';
import { startSwapStack, type QuoteAnswer, type SwapStack } from '../../test/support/swap-stack.js';
import { readSnapshot } from '../gas/snapshot.js';
import { median } from '../gateway/measure.js';

const TRADES = 1_000;
const SEED = 1_915;
/** A usual price of gas on the real chain. */
const BASE_FEE_WEI = 10n ** 7n;
/** Of a basis point. */
const PARTS = 1_000n;
const GAS = { gasLimit: 1_000_000n, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 0n };
/** Of a transaction, which a split over several pools has once. */
const BASE_GAS = 21_000n;
const TOKENS = ['WETH', 'USDC'] as const;
const ETHER = 10n ** 18n;
/** The middle of the market at first, in ticks of a cent. */
const MIDDLE_TICKS = 250_000n;

/** How much better an order is than Uniswap alone, in basis points. */
interface Gains {
  meanBps: number;
  medianBps: number;
  worstBps: number;
}

export interface ExecutedFigures {
  trades: number;
  /** How many of them were executed at exactly what was quoted. */
  exact: number;
  /** By our curve alone, by it and pools, and by pools alone. */
  routes: { own: number; both: number; pools: number };
  /** Of what is traded alone, without fee or gas. */
  price: Gains;
  /** Of the whole: our fee against the gas of Uniswap's routers for their part, at the price of the block. */
  whole: Gains;
}

interface Bench {
  chain: ManualChain;
  stack: SwapStack;
  taker: Wallet;
  quoterV4: Contract;
}

interface Trade {
  kind: SplitKind;
  sellToken: Address;
  buyToken: Address;
}

/** Trades of all sizes, from 20 dollars to 50,000, both ways, while makers quote anew and others trade in the pools. */
export async function measureExecuted(databaseUrl: string, trades = TRADES): Promise<ExecutedFigures> {
  const bench = await begin(databaseUrl);
  try {
    const random = seededRandom(SEED);
    const figures = { trades: 0, exact: 0, routes: { own: 0, both: 0, pools: 0 } };
    const [price, whole]: [number[], number[]] = [[], []];
    await requote(bench, random);
    for (let i = 0; i < trades; i++) {
      await move(bench, random, i);
      const one = await trade(bench, random);
      figures.trades += 1;
      figures.exact += one.isExact ? 1 : 0;
      figures.routes[one.route] += 1;
      price.push(one.priceBps);
      whole.push(one.wholeBps);
    }
    return { ...figures, price: gainsOf(price), whole: gainsOf(whole) };
  } finally {
    await bench.stack.stop();
    await bench.stack.db.close();
    await bench.chain.close();
  }
}

const gainsOf = (bps: readonly number[]): Gains => ({
  meanBps: bps.reduce((sum, one) => sum + one, 0) / bps.length,
  medianBps: median(bps),
  worstBps: Math.min(...bps),
});

async function begin(databaseUrl: string): Promise<Bench> {
  const chain = await startManualChain(1, { pools: true, pairs: true, managedPools: true });
  const taker = chain.wallet('taker3');
  const db = await openDb(databaseUrl);
  await migrate(db);
  // As owners who have traded before are served.
  const stack = await startSwapStack(db, chain, {}, { newAccountGas: 700_000n });
  const { abi, bytecode } = JSON.parse(
    readFileSync(new URL('../../test/fixtures/v4-quoter.json', import.meta.url), 'utf8'),
  ) as { abi: InterfaceAbi; bytecode: string };
  const issuer = new Wallet(sandboxIssuerKey(), chain.provider);
  const at = chain.manifest.contracts;
  const deployed = await new ContractFactory(abi, bytecode, issuer).deploy(at['uniswapV4PoolManager']);
  const router = at['uniswapV3Router']!;
  for (const symbol of TOKENS) await chain.tokenAs(symbol, 'taker1').getFunction('approve').send(router, MaxUint256);
  await mineAndScan({ chain, stack });
  return { chain, stack, taker, quoterV4: new Contract(await deployed.getAddress(), abi, chain.provider) };
}

async function mineAndScan({ chain, stack }: Pick<Bench, 'chain' | 'stack'>): Promise<void> {
  await chain.provider.send('hardhat_setNextBlockBaseFeePerGas', [toQuantity(BASE_FEE_WEI)]);
  await chain.mine();
  await stack.keepers.watcher.scan();
}

let resting: number[] = [];

/** A maker quotes anew around where the pools are, three levels a side, half a basis point to five from the middle. */
async function requote(bench: Bench, random: Random): Promise<void> {
  const { chain, stack } = bench;
  const middle = await middleTicks(bench);
  const level = (i: number): bigint => random.big(12n, 60n) + 60n * BigInt(i);
  const orders = [0, 1, 2].flatMap((i) => [
    { side: 'ask' as const, priceTicks: middle + level(i), sizeLots: random.big(1_000n, 60_000n) },
    { side: 'bid' as const, priceTicks: middle - level(i), sizeLots: random.big(1_000n, 60_000n) },
  ]);
  resting = await stack.keepers.order(chain.address('maker1'), orders, resting);
  await post(bench);
}

async function post(bench: Bench): Promise<void> {
  await bench.stack.keepers.poster.round();
  await mineAndScan(bench);
}

/** The middle between what a small sale and a small purchase get at the best pools, in ticks. */
async function middleTicks({ stack }: Bench): Promise<bigint> {
  const [weth, usdc] = TOKENS.map(stack.token) as [Address, Address];
  const head = await stack.marketData.head();
  const poolsOf = async (sell: Address, buy: Address): Promise<Source[]> =>
    (await stack.marketData.sources(sell, buy, head, head.timestampSec)).filter(({ id }) => id !== OWN);
  const unit = ETHER / 100n;
  const bids = (await poolsOf(weth, usdc)).map(({ outputFor }) => outputFor(unit) ?? 0n);
  const asks = (await poolsOf(usdc, weth)).map(({ inputFor }) => inputFor(unit)).filter((cost) => cost !== null);
  const best = [bids.reduce((a, b) => (a > b ? a : b), 0n), asks.reduce((a, b) => (a < b ? a : b), asks[0] ?? 0n)];
  // Hundredths of a WETH in millionths of a dollar: a tick of a cent each hundred.
  return asks.length === 0 ? MIDDLE_TICKS : (best[0]! + best[1]!) / 200n;
}

/** Now and then the makers follow the pools, or somebody trades in one of them. */
async function move(bench: Bench, random: Random, i: number): Promise<void> {
  const { chain, stack } = bench;
  if (i % 4 === 0) await requote(bench, random);
  if (i % 50 === 25) await refill(bench);
  if (random.int(0, 2) > 0) return;
  const sells = (await middleTicks(bench)) > MIDDLE_TICKS;
  const [from, to] = sells ? TOKENS : (['USDC', 'WETH'] as const);
  const wethUnits = random.big(ETHER / 10n, 6n * ETHER);
  const amountIn = sells ? wethUnits : (wethUnits * 2_500n) / 10n ** 12n;
  await sellToPool(chain, 'taker1', { tokenIn: stack.token(from), tokenOut: stack.token(to), amountIn }, GAS);
  await mineAndScan(bench);
}

/** What others have keeps the taker from running out. */
async function refill(bench: Bench): Promise<void> {
  const { chain, stack, taker } = bench;
  for (const symbol of TOKENS) {
    const from = chain.tokenAs(symbol, 'taker2');
    const units = (await stack.balanceOf(symbol, chain.address('taker2'))) / 4n;
    await from.getFunction('transfer').send(taker.address, units, GAS);
  }
  await mineAndScan(bench);
}

async function trade(
  bench: Bench,
  random: Random,
): Promise<{ priceBps: number; wholeBps: number; isExact: boolean; route: keyof ExecutedFigures['routes'] }> {
  const { stack, taker } = bench;
  const weth = await stack.balanceOf('WETH', taker.address);
  const usdc = await stack.balanceOf('USDC', taker.address);
  // Whoever has more of one token sells that more often.
  const sells = (weth * 2_500n) / 10n ** 12n > usdc ? random.int(0, 3) > 0 : random.int(0, 3) === 0;
  const kind = random.pick(['sell', 'buy'] as const);
  const [sellToken, buyToken] = (sells ? TOKENS : (['USDC', 'WETH'] as const)).map(stack.token) as [Address, Address];
  const wethUnits = random.big(8n, 20n) * 10n ** random.pick([15n, 16n, 17n, 18n]);
  const isWeth = (kind === 'sell') === sells;
  const amount = isWeth ? wethUnits : (wethUnits * 2_500n) / 10n ** 12n;
  const head = await stack.marketData.head();
  const quote = await stack.quote(taker.address, {
    ...{ sellToken, buyToken, kind },
    ...(kind === 'sell' ? { sellAmountBeforeFee: String(amount) } : { buyAmountAfterFee: String(amount) }),
  });
  const gasPrice = await stack.marketData.gasPrice(sellToken, head, head.timestampSec);
  if (gasPrice === null) throw new Error('nothing prices gas');
  const theirs = await uniswapAlone(bench, { kind, sellToken, buyToken }, quote, gasPrice, head);
  const { status, body } = await stack.submit(quote, taker);
  if (status !== 200) throw new Error(`a submission: ${status} ${JSON.stringify(body)}`);
  await stack.executor.round();
  await mineAndScan(bench);
  const order = await stack.order(body.orderId);
  if (order.status !== 'filled') throw new Error(`an order was not filled: ${JSON.stringify(order)}`);
  const [spent, got] = [BigInt(order.executedSellAmount), BigInt(order.executedBuyAmount)];
  const fee = BigInt(quote.quote.feeAmount);
  const expected = quote.route.reduce((sum, { sellAmount }) => sum + BigInt(sellAmount), fee);
  const owns = quote.route.filter(({ source }) => source === OWN).length;
  return {
    priceBps: kind === 'sell' ? gainBps(got, theirs.price) : gainBps(theirs.price, spent - fee),
    wholeBps: kind === 'sell' ? gainBps(got, theirs.whole) : gainBps(theirs.whole, spent),
    isExact: got === BigInt(quote.quote.buyAmount) && spent === expected,
    route: owns === 0 ? 'pools' : owns === quote.route.length ? 'own' : 'both',
  };
}

/** By how much `more` exceeds `less`, in basis points of it. */
const gainBps = (more: bigint, less: bigint): number =>
  toSafeInt(((more - less) * BPS * PARTS) / less) / toSafeInt(PARTS);

/**
 * The most that a sale brings at Uniswap alone, or the least that a purchase costs: for what our order trades besides its fee (`price`), and for all
 * that it takes, where Uniswap's routers take the gas of the pools that they call (`whole`).
 */
async function uniswapAlone(
  bench: Bench,
  trade: Trade,
  { quote, route }: QuoteAnswer,
  gasPrice: GasPrice,
  head: Head,
): Promise<{ price: bigint; whole: bigint }> {
  const { kind, sellToken, buyToken } = trade;
  const sources = await bench.stack.marketData.sources(sellToken, buyToken, head, head.timestampSec);
  const pools = sources.filter(({ id }) => id !== OWN);
  const isSale = kind === 'sell';
  const traded = route.reduce((sum, { sellAmount }) => sum + BigInt(sellAmount), 0n);
  const [most, amount] = isSale ? [BigInt(quote.sellAmount), traded] : [0n, BigInt(quote.buyAmount)];
  const price: bigint[] = [];
  const whole: bigint[] = [];
  for (let members = 1; members < 1 << pools.length; members++) {
    const set = pools.filter((_, i) => (members >> i) & 1);
    const gas = feeUnits(gasOf(set, sellToken === bench.stack.token('WETH')), gasPrice, 0, set.length);
    const plain = await quotedSplit(bench, trade, set, amount, head);
    if (plain !== null) price.push(plain);
    if (!isSale && plain !== null) whole.push(plain + gas);
    const left = isSale && most > gas ? await quotedSplit(bench, trade, set, most - gas, head) : null;
    if (left !== null) whole.push(left);
  }
  if (price.length === 0 || whole.length === 0) throw new Error('Uniswap alone has not the depth');
  const best = (values: readonly bigint[]): bigint =>
    values.reduce((a, b) => ((isSale ? a > b : a < b) ? a : b), values[0]!);
  return { price: best(price), whole: best(whole) };
}

/** The best split over exactly these pools, each part as Uniswap's own quoter quotes it; null where there is none. */
async function quotedSplit(
  bench: Bench,
  trade: Trade,
  pools: readonly Source[],
  amount: bigint,
  head: Head,
): Promise<bigint | null> {
  const parts = split(trade.kind, pools, amount);
  if (parts?.length !== pools.length) return null;
  let sum = 0n;
  for (const { id, inUnits, outUnits } of parts) {
    const units = trade.kind === 'sell' ? inUnits : outUnits;
    const quoted = id.startsWith('uniswap-v4:')
      ? await quotedByV4(bench, trade, id, units, head)
      : await bench.stack.marketData.quote({ ...trade, id, inUnits: units, outUnits: units }, head);
    if (quoted === null) return null;
    sum += quoted;
  }
  return sum;
}

/** Their own quoter, not our router, which quotes for orders. */
async function quotedByV4(
  { quoterV4 }: Bench,
  { kind, sellToken, buyToken }: Trade,
  id: string,
  units: bigint,
  head: Head,
): Promise<bigint> {
  const [currency0, currency1] = [sellToken, buyToken].sort();
  const fee = BigInt(id.slice('uniswap-v4:'.length));
  const key = [currency0, currency1, fee, fee / 50n, ZeroAddress];
  const method = kind === 'sell' ? 'quoteExactInputSingle' : 'quoteExactOutputSingle';
  const question = [key, sellToken < buyToken, units, '0x'];
  const [amount] = (await quoterV4.getFunction(method).staticCall(question, { blockTag: head.number })) as unknown as [
    bigint,
  ];
  return amount;
}

/** Measured: a swap in each of the pools by the venue's router, in one transaction. */
function gasOf(pools: readonly Source[], sellsWeth: boolean): bigint {
  const snapshot = readSnapshot();
  const each = pools.map(({ id }) => {
    const venue = /^uniswap-(v\d):/.exec(id)?.[1] ?? '';
    const row = snapshot[`${venue}.weth.${sellsWeth ? 'sell' : 'buy'}`];
    if (row === undefined) throw new Error(`no gas is measured for ${id}`);
    return BigInt(row.gas) - BASE_GAS;
  });
  return each.reduce((sum, gas) => sum + gas, BASE_GAS);
}
