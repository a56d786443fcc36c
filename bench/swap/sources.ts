/** Quotes per second of a whole server while a pair trades at one place, at three, and at six. */
import { Contract, MaxUint256, Wallet, ZeroAddress } from 'ethers';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import type { Address } from '../../core/types.js';
import { changeLiquidity, publishModifier, type PoolKeyTuple } from '../../deploy/sandbox/managed-pools.js';
import { GAS, publish, startOf } from '../../deploy/sandbox/pools.js';
import { mined } from '../../deploy/transactions.js';
import { createRpc } from '../../keepers/chain/rpc.js';
import { createHeadReader } from '../../liquidity/eth.js';
import type { VenueKind } from '../../liquidity/venue.js';
import { VENUE_KINDS, venueContracts, type VenueContracts } from '../../liquidity/venues.js';
import { accountOf, startStack, tokenOf, until, type Stack } from '../../test/support/stack.js';
import { place, untilQuoted } from '../../test/support/trading.js';
import { OrderSettler__factory } from '../../typechain-types/index.js';
import { inRounds, median } from '../gateway/measure.js';
import { load } from './load.js';
import { fundedOwner } from './owners.js';

const QUOTES = 200;
const ROUNDS = 5;
const PLENTY = '1000000';
const ROLES = 'watcher,gateway,poster,settler';
const ETHER = 10n ** 18n;
/** Beside the tiers of the sandbox, whose pools have a fee of 500. */
const FEE_PPM = 3_000;
const SPACING = 60;
/** Ticks to either side of the price, and millionths of a dollar on each. */
const WIDTH = 960;
const DEPTH_MICROS = 200_000n * 10n ** 6n;
const POSITIONS =
  '@uniswap/v3-periphery/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager.json';
const INITIALIZE = ['function initialize((address,address,uint24,int24,address), uint160) returns (int24)'];

/** The venues that the settler may call, by the number of places with our own curve: v2 has one pool, and v3 and v4 have two each. */
const CASES = {
  1: [],
  3: ['uniswap-v3'],
  6: ['uniswap-v3', 'uniswap-v2', 'uniswap-v4'],
} as const;
type Count = keyof typeof CASES;

/** Quotes per second by the number of places, 32 at a time: medians of interleaved rounds. */
export type SourceFigures = Record<Count, { perSec: number; cpuUs: number }>;

export async function measureSources(databaseUrl: string): Promise<SourceFigures> {
  const stack = await startStack({
    ...{ databaseUrl, blockTimeMs: 2_000, processes: [ROLES], pools: true, pairs: true, managedPools: true },
    // As owners who have traded before are quoted, over any number of places.
    env: { SWAP_QUOTES_PER_MINUTE: PLENTY, SWAP_OWNER_QUOTES_PER_MINUTE: PLENTY, SWAP_NEW_ACCOUNT_GAS: '700000' },
  });
  try {
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    await place(
      stack,
      'maker1',
      [
        ['2500.1', '2499.9'],
        ['2500.8', '2499.2'],
        ['2501.6', '2498.4'],
        ['2503.2', '2496.8'],
      ].flatMap(([ask = '', bid = '']) => [
        { isBuy: false, price: ask, size: '10' },
        { isBuy: true, price: bid, size: '10' },
      ]),
    );
    await untilQuoted(stack, 'WETH', 'USDC', 30n * ETHER);
    await addPools(stack);
    const wallet = await fundedOwner(stack, {});
    const bodies = bodiesOf(stack, wallet.address);
    const cpuUs: Record<Count, number[]> = { 1: [], 3: [], 6: [] };
    const measured = (count: Count) => async (): Promise<number> => {
      await allow(stack, count);
      const loaded = await load({ url: `${stack.manifest.serverUrl}/api/v1/quote`, pid: stack.pid(ROLES) }, bodies);
      cpuUs[count].push(loaded.cpuUs);
      return loaded.perSec;
    };
    const perSec = await inRounds({ one: measured(1), three: measured(3), six: measured(6) }, ROUNDS);
    const of = (count: Count, rates: readonly number[]) => ({
      perSec: median(rates),
      cpuUs: median(cpuUs[count].slice(1)),
    });
    return { 1: of(1, perSec.one), 3: of(3, perSec.three), 6: of(6, perSec.six) };
  } finally {
    await stack.close();
  }
}

/** Lets the settler call the venues of a case, and no others; waits until the server sees just as many places. */
async function allow(stack: Stack, count: Count): Promise<void> {
  const { provider, manifest } = stack;
  const wallet = new Wallet(accountOf(stack, 'owner').privateKey, provider);
  const settler = OrderSettler__factory.connect(manifest.contracts['orderSettler']!, wallet);
  const wanted: readonly string[] = CASES[count];
  const eth = createRpc(manifest.rpcUrl);
  const [sell, buy] = ['WETH', 'USDC'].map((symbol) => tokenOf(stack, symbol).address.toLowerCase() as Address);
  let places = 1;
  for (const kind of VENUE_KINDS as readonly VenueKind[]) {
    const named = venueContracts([kind]).map(({ contract, place: at }) => [
      contract,
      manifest.contracts[at]!.toLowerCase(),
    ]);
    const contracts = Object.fromEntries(named) as VenueContracts;
    const isWanted = wanted.includes(kind.name);
    if ((await settler.isTarget(contracts.router)) !== isWanted)
      await mined(settler.setTarget(contracts.router, isWanted));
    if (!isWanted) continue;
    places += (await kind.create(eth, contracts).sources(sell!, buy!, await createHeadReader(eth).head())).length;
  }
  if (places !== count) throw new Error(`${places} places instead of ${count}`);
  // Another block, of which the server has read nothing.
  const from = await provider.getBlockNumber();
  await until('the next block', async () => (await provider.getBlockNumber()) > from);
}

/** A pool of another fee in each of v3 and v4. */
async function addPools(stack: Stack): Promise<void> {
  const { manifest } = stack;
  const owner = await fundedOwner(stack, { WETH: 400n * ETHER, USDC: 4n * DEPTH_MICROS });
  const both = ['WETH', 'USDC'].map(
    (symbol) => tokenOf(stack, symbol) as Parameters<typeof startOf>[0][0] & { address: string },
  );
  both.sort((a, b) => (BigInt(a.address) < BigInt(b.address) ? -1 : 1));
  const [one, other] = both as [(typeof both)[0], (typeof both)[0]];
  const start = startOf([one, other], SPACING);
  const [lower, upper] = [start.tick - WIDTH, start.tick + WIDTH + SPACING];
  const factory = manifest.contracts['uniswapV3Factory']!;
  const positions = await publish(owner, POSITIONS, factory, tokenOf(stack, 'WETH').address, ZeroAddress);
  const manager = manifest.contracts['uniswapV4PoolManager']!;
  const modifier = await publishModifier(owner, manager);
  for (const { address } of both) {
    for (const spender of [await positions.getAddress(), await modifier.getAddress()])
      await approve(owner, address, spender);
  }
  const units = both.map(({ symbol }) => (symbol === 'USDC' ? DEPTH_MICROS : (DEPTH_MICROS * ETHER) / 2_500_000_000n));
  const pool = [one.address, other.address, FEE_PPM] as const;
  await mined(positions.getFunction('createAndInitializePoolIfNecessary').send(...pool, start.sqrtPrice, GAS));
  const position = [...pool, lower, upper, ...units, 0, 0, owner.address, MaxUint256];
  await mined(positions.getFunction('mint').send(position, GAS));
  const key: PoolKeyTuple = [one.address, other.address, FEE_PPM, SPACING, ZeroAddress];
  await mined(new Contract(manager, INITIALIZE, owner).getFunction('initialize').send(key, start.sqrtPrice, GAS));
  const liquidity = (units[1]! << 96n) / (start.sqrtPrice - sqrtPriceAtTick(lower));
  await changeLiquidity(modifier, key, { lower, upper, liquidity });
}

async function approve(owner: Wallet, token: string, spender: string): Promise<void> {
  const erc20 = new Contract(token, ['function approve(address, uint256)'], owner);
  await mined(erc20.getFunction('approve').send(spender, MaxUint256));
}

/** Sales and purchases both ways, from 1 to 30 WETH. */
function bodiesOf(stack: Stack, from: string): string[] {
  const [weth, usdc] = [tokenOf(stack, 'WETH').address, tokenOf(stack, 'USDC').address];
  return Array.from({ length: QUOTES }, (_, index) => {
    const base = ETHER + (BigInt(index) * 29n * ETHER) / BigInt(QUOTES);
    const sellsBase = index % 2 === 0;
    const isSell = index % 4 < 2;
    const amount = (isSell === sellsBase ? base : (base * 2_500n) / 10n ** 12n).toString();
    return JSON.stringify({
      ...{ chainId: stack.manifest.chainId, from, signingScheme: 'eip712', kind: isSell ? 'sell' : 'buy' },
      ...{ sellToken: sellsBase ? weth : usdc, buyToken: sellsBase ? usdc : weth },
      ...(isSell ? { sellAmountBeforeFee: amount } : { buyAmountAfterFee: amount }),
    });
  });
}
