/** External liquidity of the sandbox: Uniswap v3 from its published artifacts, with a pool per market that holds liquidity. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  Contract,
  ContractFactory,
  MaxUint256,
  Wallet,
  ZeroAddress,
  parseUnits,
  type InterfaceAbi,
  type JsonRpcProvider,
} from 'ethers';
import { squareRoot } from '../../core/swap/pool-math.js';
import { sandboxIssuerKey } from './accounts.js';
import { WETH_ADDRESS } from './canonical.js';
import type { ManifestMarket } from '../manifest.js';
import { reasonOf } from '../reasons.js';
import type { SandboxSymbol, SandboxToken } from './tokens.js';
import { mined } from '../transactions.js';

const CORE = '@uniswap/v3-core/artifacts/contracts';
const PERIPHERY = '@uniswap/v3-periphery/artifacts/contracts';
const ROUTER_02 = '@uniswap/swap-router-contracts/artifacts/contracts/SwapRouter02.sol/SwapRouter02.json';
/** 0.05 %, and the tick spacing that goes with it. */
const FEE_PPM = 500;
const TICK_SPACING = 10;
/** Ticks to either side of the price that a position covers: about 10 % for the wide one, 1 % for the narrow one. */
export const WIDTHS = [960, 100] as const;
/** Dollars on each side of the wide position, and of the narrow one. */
export const DEPTHS = [400_000n, 100_000n] as const;
/** Dollars per token: the first prices of the example makers. */
const DOLLARS: Record<SandboxSymbol, bigint> = { WETH: 2_500n, USDC: 1n, DAI: 1n, cbBTC: 65_000n };

/** A fixed limit instead of an estimate: the gas for a pool's price history depends on the second in which the block is mined. */
export const GAS = { gasLimit: 8_000_000n };

const require = createRequire(import.meta.url);

/** Contracts by their names in the manifest. */
interface PoolContracts {
  uniswapV3Factory: string;
  uniswapV3Router: string;
  uniswapV3Quoter: string;
}

/** Which router to deploy: SwapRouter02, which the real chain has, or its predecessor. */
export type SandboxRouter = 'SwapRouter02' | 'SwapRouter';

/** Deploys factory, router, quoter and positions, and a pool for each market. The issuer of the tokens provides the liquidity. */
export async function deployPools(
  provider: JsonRpcProvider,
  tokens: readonly SandboxToken[],
  markets: readonly Pick<ManifestMarket, 'pair'>[],
  kind: SandboxRouter,
): Promise<PoolContracts> {
  const provided = new Wallet(sandboxIssuerKey(), provider);
  const factory = await publish(provided, `${CORE}/UniswapV3Factory.sol/UniswapV3Factory.json`);
  const at = await factory.getAddress();
  const quoter = await publish(provided, `${PERIPHERY}/lens/QuoterV2.sol/QuoterV2.json`, at, WETH_ADDRESS);
  const managerPath = `${PERIPHERY}/NonfungiblePositionManager.sol/NonfungiblePositionManager.json`;
  const positions = await publish(provided, managerPath, at, WETH_ADDRESS, ZeroAddress);
  const manager = await positions.getAddress();
  const router =
    kind === 'SwapRouter02'
      ? await publish(provided, ROUTER_02, ZeroAddress, at, manager, WETH_ADDRESS)
      : await publish(provided, `${PERIPHERY}/SwapRouter.sol/SwapRouter.json`, at, WETH_ADDRESS);
  for (const token of tokens) {
    const pools = BigInt(markets.filter(({ pair }) => pair.split('-').includes(token.symbol)).length);
    await token.give(provided, unitsWorth(token, pools * (DEPTHS[0] + DEPTHS[1])));
    await token.approve(provided, manager, MaxUint256);
  }
  for (const { pair } of markets) {
    await addPool(positions, provided, sorted(tokens, pair)).catch((error: unknown) => {
      throw new Error(`the pool of ${pair} can't be made: ${reasonOf(error)}`, { cause: error });
    });
  }
  return {
    uniswapV3Factory: at,
    uniswapV3Router: await router.getAddress(),
    uniswapV3Quoter: await quoter.getAddress(),
  };
}

/** Deploys a published artifact. */
export async function publish(deployer: Wallet, path: string, ...args: unknown[]): Promise<Contract> {
  const { abi, bytecode } = JSON.parse(readFileSync(require.resolve(path), 'utf8')) as {
    abi: InterfaceAbi;
    bytecode: string | { object: string };
  };
  const contract = await new ContractFactory(abi, bytecode, deployer).deploy(...args);
  await contract.deploymentTransaction()?.wait();
  return new Contract(await contract.getAddress(), abi, deployer);
}

/** The tokens of a pair as a pool orders them, lower address first. */
export function sorted(tokens: readonly SandboxToken[], pair: string): [SandboxToken, SandboxToken] {
  const [one, other] = pair.split('-').map((symbol) => tokens.find((token) => token.symbol === symbol));
  if (one === undefined || other === undefined) throw new Error(`the tokens of ${pair} do not exist`);
  return BigInt(one.address) < BigInt(other.address) ? [one, other] : [other, one];
}

/** Units of a token that are worth so many dollars at the example makers' first prices. */
export const unitsWorth = (token: Pick<SandboxToken, 'symbol' | 'decimals'>, dollars: bigint): bigint =>
  (parseUnits('1', token.decimals) * dollars) / DOLLARS[token.symbol];

/** The price of a pair at the example makers' first prices, and its tick, rounded down to the spacing. */
export function startOf(
  [token0, token1]: readonly [Pick<SandboxToken, 'symbol' | 'decimals'>, Pick<SandboxToken, 'symbol' | 'decimals'>],
  spacing: number,
): { sqrtPrice: bigint; tick: number } {
  const many = 10n ** 15n;
  const [worth0, worth1] = [unitsWorth(token0, many), unitsWorth(token1, many)];
  const tick = Math.floor(Math.log(Number(worth1) / Number(worth0)) / Math.log(1.0001) / spacing) * spacing;
  return { sqrtPrice: squareRoot((worth1 << 192n) / worth0), tick };
}

async function addPool(positions: Contract, owner: Wallet, both: [SandboxToken, SandboxToken]): Promise<void> {
  const [token0, token1] = both;
  const { sqrtPrice, tick } = startOf(both, TICK_SPACING);
  const pool = [token0.address, token1.address, FEE_PPM] as const;
  await mined(positions.getFunction('createAndInitializePoolIfNecessary').send(...pool, sqrtPrice, GAS));
  for (const [i, width] of WIDTHS.entries()) {
    const depth = DEPTHS[i] ?? 0n;
    const amounts = [unitsWorth(token0, depth), unitsWorth(token1, depth)];
    const position = [...pool, tick - width, tick + width + TICK_SPACING, ...amounts, 0, 0, owner.address, MaxUint256];
    await mined(positions.getFunction('mint').send(position, GAS));
  }
}
