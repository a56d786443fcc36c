/** Checks once what the swap API and the executor need on the chain: wrong addresses stop the start, missing contracts are logged. */
import { computeAddress, type Interface } from 'ethers';
import { RpcUnavailableError } from '../../core/rpc-errors.js';
import type { Address, Hex } from '../../core/types.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { startLoop, type Loop } from '../../keepers/loop.js';
import { agreedOn, type EthReader } from '../../liquidity/eth.js';
import { inspectVenue, venueContracts } from '../../liquidity/venues.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';
import type { BaseConfig } from '../base-config.js';
import type { VenueConfig } from '../settings/swap.js';
import { ConfigError } from '../errors.js';
import type { RoleContext } from './context.js';

/** Pause between two looks while no endpoint answers. */
const RETRY_MS = 5_000;
const SETTLER: Interface = OrderSettler__factory.createInterface();

/** `wrong` is an address that can't be meant; `missing` what works once it is there. */
interface SwapFindings {
  wrong: string[];
  missing: string[];
}

/** Looks until an endpoint has answered, and calls `onWrong` when what is configured can't be right. */
export function startSwapCheck(context: RoleContext, signal: AbortSignal, onWrong: (error: ConfigError) => void): Loop {
  const { config, logger, monotonicMs } = context;
  const done = new AbortController();
  const { chainId } = config.manifest;
  const rpc = createRpcPool(config.rpcUrls, { nowMs: monotonicMs, logger, chainId });
  const round = async (): Promise<void> => {
    // Needs agreement of endpoints, so that a single one can neither stop a start nor hide a wrong address.
    const found = await agreedOn(rpc, (one) => inspectSwaps(one, config), JSON.stringify);
    if (found === null)
      throw new RpcUnavailableError('no two endpoints agree on what stands at the addresses for swaps');
    const { wrong, missing } = found;
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
  // A node that has lost its state, or has not got it yet, answers for every address that nothing is there.
  if (!(await hasCode(eth, swap.settler))) throw new RpcUnavailableError(`there is no settler at ${swap.settler} yet`);
  if (!(await hasCode(eth, swap.permit2)))
    missing.push(`no Permit2 at ${swap.permit2}: no signed order can be executed`);
  if (!(await hasCode(eth, swap.wrappedNative))) {
    missing.push(`WRAPPED_NATIVE: no contract at ${swap.wrappedNative}: gas can't be priced, so nothing is quoted`);
  }
  if (swap.tokens.length === 0) {
    missing.push('no token list, neither TOKEN_LIST nor in the manifest: the tokens of listed markets are served');
  }
  for (const { kind, parent } of swap.unrouted) {
    const problem = (await hasCode(eth, parent))
      ? 'the deployment has no router of its own for it yet; run deploy, then configure'
      : `the chain has no ${kind.parent} at ${parent}`;
    missing.push(`no liquidity of ${kind.title}: ${problem}`);
  }
  if (swap.venues.length === 0)
    missing.push('no external liquidity is configured: swaps are quoted on our own curves alone');
  for (const venue of swap.venues) await lookAtVenue(eth, venue, swap.settler, findings);
  if (ROLES.includes('executor') && keys.executor !== undefined) {
    const executor = computeAddress(keys.executor).toLowerCase();
    if (!(await isAllowed(eth, swap.settler, 'isExecutor', executor))) {
      missing.push(`the settler does not take orders from ${executor}: name it among the executors, and run configure`);
    }
  }
  return findings;
}

async function lookAtVenue(
  eth: EthReader,
  { kind, contracts, origin }: VenueConfig,
  settler: Address,
  { wrong, missing }: SwapFindings,
): Promise<void> {
  const found = await inspectVenue(eth, kind, contracts);
  if ('problem' in found) {
    const setting = venueContracts([kind]).find(({ contract }) => contract === 'router')!.setting;
    const where = { settings: setting, manifest: 'MANIFEST', preset: 'chain preset' }[origin];
    // The preset is of the public chain; a private one may have its id and nothing else of it.
    if (found.isMissing && origin === 'preset') missing.push(`no liquidity of ${kind.title}: ${found.problem}`);
    else wrong.push(`${where}: ${found.problem}`);
    return;
  }
  if (!(await isAllowed(eth, settler, 'isTarget', contracts.router))) {
    missing.push(
      `the settler may not call the router ${contracts.router}: name it among the targets, and run configure`,
    );
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
