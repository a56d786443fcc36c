/** Uniswap v4 of the sandbox, from its published artifact, with our own router and a pool per market that holds liquidity. */
import { MaxUint256, Wallet, ZeroAddress, ZeroHash, type Contract, type JsonRpcProvider } from 'ethers';
import { minBig } from '../../core/amounts.js';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import { UniswapV4Router__factory } from '../../typechain-types/factories/periphery/UniswapV4Router__factory.js';
import type { ManifestMarket } from '../manifest.js';
import { mined } from '../transactions.js';
import { sandboxIssuerKey } from './accounts.js';
import { DEPTHS, GAS, WIDTHS, publish, sorted, startOf, unitsWorth } from './pools.js';
import type { SandboxToken } from './tokens.js';

const ARTIFACTS = '@uniswap/v4-core/out';
/** 0.05 %, and the tick spacing that goes with it. */
const TIER = [500, 10] as const;
const MODIFY = 'modifyLiquidity((address,address,uint24,int24,address),(int24,int24,int256,bytes32),bytes)';

/** Contracts by their names in the manifest. */
interface ManagedPoolContracts {
  uniswapV4PoolManager: string;
  uniswapV4Router: string;
}

/** Deploys manager and router, and a pool for each market. The issuer of the tokens provides the liquidity. */
export async function deployManagedPools(
  provider: JsonRpcProvider,
  tokens: readonly SandboxToken[],
  markets: readonly Pick<ManifestMarket, 'pair'>[],
): Promise<ManagedPoolContracts> {
  const provided = new Wallet(sandboxIssuerKey(), provider);
  const manager = await publish(provided, `${ARTIFACTS}/PoolManager.sol/PoolManager.json`, provided.address);
  const uniswapV4PoolManager = await manager.getAddress();
  const router = await new UniswapV4Router__factory(provided).deploy(uniswapV4PoolManager);
  await router.deploymentTransaction()?.wait();
  const modifier = await publishModifier(provided, uniswapV4PoolManager);
  for (const token of tokens) {
    const pools = BigInt(markets.filter(({ pair }) => pair.split('-').includes(token.symbol)).length);
    await token.give(provided, unitsWorth(token, pools * (DEPTHS[0] + DEPTHS[1])));
    await token.approve(provided, await modifier.getAddress(), MaxUint256);
  }
  for (const { pair } of markets) {
    const both = sorted(tokens, pair);
    const [token0, token1] = both;
    const key: PoolKeyTuple = [token0.address, token1.address, ...TIER, ZeroAddress];
    const { sqrtPrice, tick } = startOf(both, TIER[1]);
    await mined(manager.getFunction('initialize').send(key, sqrtPrice, GAS));
    for (const [i, width] of WIDTHS.entries()) {
      const [lower, upper] = [tick - width, tick + width + TIER[1]];
      const [end0, end1] = [sqrtPriceAtTick(upper), sqrtPriceAtTick(lower)];
      const [units0, units1] = both.map((token) => unitsWorth(token, DEPTHS[i] ?? 0n)) as [bigint, bigint];
      const byToken0 = (units0 * ((sqrtPrice * end0) >> 96n)) / (end0 - sqrtPrice);
      const liquidity = minBig(byToken0, (units1 << 96n) / (sqrtPrice - end1));
      await changeLiquidity(modifier, key, { lower, upper, liquidity });
    }
  }
  return { uniswapV4PoolManager, uniswapV4Router: await router.getAddress() };
}

export type PoolKeyTuple = [currency0: string, currency1: string, feePpm: number, spacing: number, hooks: string];

/** A contract that adds liquidity to pools for its caller, from the tokens that are approved to it. */
export const publishModifier = (deployer: Wallet, manager: string): Promise<Contract> =>
  publish(deployer, `${ARTIFACTS}/PoolModifyLiquidityTest.sol/PoolModifyLiquidityTest.json`, manager);

/** Adds to a position of the modifier. */
export async function changeLiquidity(
  modifier: Contract,
  key: PoolKeyTuple,
  { lower, upper, liquidity }: { lower: number; upper: number; liquidity: bigint },
): Promise<void> {
  await mined(modifier.getFunction(MODIFY).send(key, [lower, upper, liquidity, ZeroHash], '0x', GAS));
}
