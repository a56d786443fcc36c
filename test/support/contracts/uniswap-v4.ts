/** Uniswap v4 on a chain of its own, and our venue over it. */
import { MaxUint256 } from 'ethers';
import type { Address } from '../../../core/types.js';
import { createRpc, type Rpc } from '../../../keepers/chain/rpc.js';
import { createUniswapV4, type UniswapV4Contracts } from '../../../liquidity/uniswap-v4.js';
import type { Venue } from '../../../liquidity/venue.js';
import { startManualChain, type ManualChain } from '../keeper-stack.js';

export const WETH_UNIT = 10n ** 18n;

/** Within a `describe`: one chain for all tests. */
export function uniswapV4Chain() {
  let chain: ManualChain;
  let rpc: Rpc;
  let contracts: UniswapV4Contracts;
  let venue: Venue;
  let weth: Address;
  let usdc: Address;
  let token0: Address;
  let token1: Address;

  before(async () => {
    chain = await startManualChain(2, { pools: true, managedPools: true });
    rpc = createRpc(chain.rpcUrl);
    const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
    contracts = { poolManager: at('uniswapV4PoolManager'), router: at('uniswapV4Router') };
    venue = createUniswapV4(rpc, contracts);
    [weth, usdc] = ['weth', 'usdc'].map(at) as [Address, Address];
    [token0, token1] = [weth, usdc].sort() as [Address, Address];
    await chain.provider.send('evm_setAutomine', [true]);
    for (const symbol of ['WETH', 'USDC']) {
      await chain.tokenAs(symbol, 'taker1').getFunction('approve').send(contracts.router, MaxUint256);
    }
  });
  after(() => chain?.close());

  return {
    get chain() {
      return chain;
    },
    get rpc() {
      return rpc;
    },
    get contracts() {
      return contracts;
    },
    get venue() {
      return venue;
    },
    get weth() {
      return weth;
    },
    get usdc() {
      return usdc;
    },
    get token0() {
      return token0;
    },
    get token1() {
      return token1;
    },
  };
}
