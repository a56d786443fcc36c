/** What the swap API and the executor need of the chain, looked at once: wrong addresses stop the start, what is missing is said. */
import { computeAddress, type Interface } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { startLoop, type Loop } from '../../keepers/loop.js';
import type { EthReader } from '../../liquidity/eth.js';
import { inspectUniswapV3 } from '../../liquidity/uniswap-v3.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';
import type { BaseConfig } from '../base-config.js';
import { ConfigError } from '../errors.js';
import type { Shared } from './shared.js';

/** Pause between two looks while no endpoint answers. */
const RETRY_MS = 5_000;
const SETTLER: Interface = OrderSettler__factory.createInterface();

/** `wrong` is an address that can't be meant; `missing` what works once it is there. */
interface SwapFindings {
  wrong: string[];
  missing: string[];
}

/** Looks until an endpoint has answered, and calls `onWrong` when what is configured can't be right. */
export function startSwapCheck(shared: Shared, signal: AbortSignal, onWrong: (error: ConfigError) => void): Loop {
  const { config, logger, monotonicMs } = shared;
  const done = new AbortController();
  const { chainId } = config.manifest;
  const rpc = createRpcPool(config.rpcUrls, { nowMs: monotonicMs, logger, chainId });
  const round = async (): Promise<void> => {
    const { wrong, missing } = await inspectSwaps(rpc, config);
    done.abort();
    for (const line of missing) logger.warn(line);
    if (wrong.length > 0) onWrong(new ConfigError(wrong));
  };
  return startLoop(round, {
    name: 'swap-check',
    intervalMs: RETRY_MS,
    signal: AbortSignal.any([signal, done.signal]),
    logger,
  });
}

/** Throws what says nothing about the chain, such as an endpoint that does not answer. */
export async function inspectSwaps(
  eth: EthReader,
  { swap, ROLES, keys }: Pick<BaseConfig, 'swap' | 'ROLES' | 'keys'>,
): Promise<SwapFindings> {
  const findings: SwapFindings = { wrong: [], missing: [] };
  if (swap === null || !(ROLES.includes('gateway') || ROLES.includes('executor'))) return findings;
  const { missing } = findings;
  if (!(await hasCode(eth, swap.permit2)))
    missing.push(`no Permit2 at ${swap.permit2}: no signed order can be executed`);
  if (!(await hasCode(eth, swap.wrappedNative))) {
    missing.push(`WRAPPED_NATIVE: no contract at ${swap.wrappedNative}: gas can't be priced, so nothing is quoted`);
  }
  if (swap.tokens.length === 0) {
    missing.push('no token list, neither TOKEN_LIST nor in the manifest: the tokens of listed markets are served');
  }
  await inspectVenue(eth, swap, findings);
  if (ROLES.includes('executor') && keys.executor !== undefined) {
    const executor = computeAddress(keys.executor).toLowerCase();
    if (!(await isAllowed(eth, swap.settler, 'isExecutor', executor))) {
      missing.push(`the settler does not take orders from ${executor}: name it among the executors, and run configure`);
    }
  }
  return findings;
}

async function inspectVenue(
  eth: EthReader,
  { uniswapV3, settler }: NonNullable<BaseConfig['swap']>,
  { wrong, missing }: SwapFindings,
): Promise<void> {
  if (uniswapV3 === null) {
    missing.push('no external liquidity is configured: swaps are quoted on our own curves alone');
    return;
  }
  const { origin, router } = uniswapV3;
  const found = await inspectUniswapV3(eth, uniswapV3);
  if ('problem' in found) {
    const where = { settings: 'UNISWAP_V3_ROUTER', manifest: 'MANIFEST', preset: 'chain preset' }[origin];
    // The preset is of the public chain; a private one may have its id and nothing else of it.
    if (found.isMissing && origin === 'preset') missing.push(`no external liquidity: ${found.problem}`);
    else wrong.push(`${where}: ${found.problem}`);
    return;
  }
  if (!(await isAllowed(eth, settler, 'isTarget', router))) {
    missing.push(`the settler may not call the router ${router}: name it among the targets, and run configure`);
  }
}

async function hasCode(eth: EthReader, at: Address): Promise<boolean> {
  return (await eth.call('eth_getCode', [at, 'latest'])) !== '0x';
}

async function isAllowed(eth: EthReader, settler: Address, method: 'isExecutor' | 'isTarget', who: string) {
  const data = SETTLER.encodeFunctionData(method, [who]);
  const answer = (await eth.call('eth_call', [{ to: settler, data }, 'latest'])) as Hex;
  return BigInt(answer === '0x' ? 0 : answer) === 1n;
}
