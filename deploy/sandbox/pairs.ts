/** Uniswap v2 of the sandbox, from its published artifacts, with a pair per market that holds liquidity. */
import { MaxUint256, Wallet, type JsonRpcProvider } from 'ethers';
import type { ManifestMarket } from '../manifest.js';
import { mined } from '../transactions.js';
import { sandboxIssuerKey } from './accounts.js';
import { WETH_ADDRESS } from './canonical.js';
import { GAS, publish, sorted, unitsWorth } from './pools.js';
import type { SandboxToken } from './tokens.js';

const FACTORY = '@uniswap/v2-core/build/UniswapV2Factory.json';
const ROUTER = '@uniswap/v2-periphery/build/UniswapV2Router02.json';
/** Dollars on each side of a pair. */
const DEPTH = 300_000n;

/** Contracts by their names in the manifest. */
interface PairContracts {
  uniswapV2Factory: string;
  uniswapV2Router: string;
}

/** Deploys factory and router, and a pair for each market. The issuer of the tokens provides the liquidity. */
export async function deployPairs(
  provider: JsonRpcProvider,
  tokens: readonly SandboxToken[],
  markets: readonly Pick<ManifestMarket, 'pair'>[],
): Promise<PairContracts> {
  const provided = new Wallet(sandboxIssuerKey(), provider);
  const factory = await publish(provided, FACTORY, provided.address);
  const uniswapV2Factory = await factory.getAddress();
  const router = await publish(provided, ROUTER, uniswapV2Factory, WETH_ADDRESS);
  const uniswapV2Router = await router.getAddress();
  for (const token of tokens) {
    const pairs = BigInt(markets.filter(({ pair }) => pair.split('-').includes(token.symbol)).length);
    await token.give(provided, unitsWorth(token, pairs * DEPTH));
    await token.approve(provided, uniswapV2Router, MaxUint256);
  }
  for (const { pair } of markets) {
    const both = sorted(tokens, pair);
    const amounts = both.map((token) => unitsWorth(token, DEPTH));
    const liquidity = [...both.map(({ address }) => address), ...amounts, 0, 0, provided.address, MaxUint256];
    await mined(router.getFunction('addLiquidity').send(...liquidity, GAS));
  }
  return { uniswapV2Factory, uniswapV2Router };
}
