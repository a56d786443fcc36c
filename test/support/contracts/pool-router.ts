import { Contract, MaxUint256 } from 'ethers';
import type { TransactionResponse } from 'ethers';
import { routerKindOf } from '../../../core/swap/router-kind.js';
import type { Hex } from '../../../core/types.js';
import type { ManualChain } from '../keeper-stack.js';

const COMMON = 'address tokenIn, address tokenOut, uint24 fee, address recipient';
const ABI = {
  SwapRouter: `function exactInputSingle((${COMMON}, uint256 deadline, uint256 amountIn, uint256 minimum, uint160 limit)) returns (uint256)`,
  SwapRouter02: `function exactInputSingle((${COMMON}, uint256 amountIn, uint256 minimum, uint160 limit)) returns (uint256)`,
};

/** Somebody's own sale to a pool of the sandbox, whichever router it has. `overrides` need a gas limit: what a pool costs depends on the second. */
export async function sellToPool(
  chain: ManualChain,
  role: string,
  { tokenIn, tokenOut, amountIn }: { tokenIn: string; tokenOut: string; amountIn: bigint },
  overrides: { gasLimit: bigint },
): Promise<TransactionResponse> {
  const at = chain.manifest.contracts['uniswapV3Router']!;
  const kind = routerKindOf((await chain.provider.getCode(at)) as Hex, ['SwapRouter', 'SwapRouter02'])!;
  const { address } = chain.wallet(role);
  const deadline = kind === 'SwapRouter' ? [MaxUint256] : [];
  const call = [tokenIn, tokenOut, 500, address, ...deadline, amountIn, 0, 0];
  const router = new Contract(at, [ABI[kind]], chain.wallet(role));
  return router.getFunction('exactInputSingle').send(call, overrides);
}
