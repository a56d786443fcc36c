/** Checks the deployment on the chain: code, owner, rights of our keys, markets, and what swaps need. */
import { computeAddress, getAddress, ZeroAddress, type Interface } from 'ethers';
import type { Address, Hex } from '../../../core/types.js';
import type { DeployConfig } from '../../../deploy/config.js';
import { gridText, listingOf } from '../../../deploy/listing.js';
import type { EthReader } from '../../../liquidity/eth.js';
import { CurveBook__factory } from '../../../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../../../typechain-types/factories/Custodian__factory.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import type { BaseConfig } from '../../base-config.js';
import type { Config } from '../../config.js';
import { inspectSwaps } from '../../roles/swap-check.js';
import { SIGNING_ROLES, type SigningRole } from '../../settings/keystore.js';
import type { Report } from './finding.js';

const CUSTODIAN = Custodian__factory.createInterface();
const CURVE_BOOK = CurveBook__factory.createInterface();
const SETTLER = OrderSettler__factory.createInterface();
/** More than any deployment has; a higher answer is not followed market by market. */
const MAX_MARKETS = 10_000n;
/** A person has to notice the halt, reconcile, and have the settler's transaction mined. */
const LEAST_DELAY_SEC = 300n;

/** Throws for an answer that can't be decoded. */
async function view(
  eth: EthReader,
  abi: Interface,
  to: string,
  method: string,
  args: readonly unknown[] = [],
): Promise<readonly unknown[]> {
  const answer = (await eth.call('eth_call', [{ to, data: abi.encodeFunctionData(method, args) }, 'latest'])) as Hex;
  return abi.decodeFunctionResult(method, answer);
}

async function hasCode(eth: EthReader, at: string): Promise<boolean> {
  return (await eth.call('eth_getCode', [at, 'latest'])) !== '0x';
}

/** False when an address of the manifest has no code; the other checks of contracts are then skipped. */
export async function checkContracts(
  eth: EthReader,
  { manifest }: Pick<BaseConfig, 'manifest'>,
  report: Report,
): Promise<boolean> {
  const { custodian, curveBook, entrypoint, orderSettler } = manifest.contracts;
  const absent: string[] = [];
  for (const [name, at] of Object.entries({ custodian, curveBook, entrypoint, orderSettler })) {
    if (at !== undefined && !(await hasCode(eth, at))) absent.push(`${name} ${at}`);
  }
  if (absent.length > 0) report.fail('CONTRACTS', 'manifest', `the chain has no code at ${absent.join(', ')}`);
  else report.ok('CONTRACTS', 'manifest', `deployment ${manifest.deploymentId} is on the chain`);
  return absent.length === 0;
}

export async function checkOwner(
  eth: EthReader,
  { contracts }: BaseConfig['manifest'],
  configuration: DeployConfig | null,
  report: Report,
): Promise<void> {
  const { custodian, curveBook, entrypoint, orderSettler } = contracts;
  for (const [name, at] of Object.entries({ custodian, curveBook, entrypoint, orderSettler })) {
    if (at === undefined) continue;
    const [owner] = await view(eth, CUSTODIAN, at, 'owner');
    const [pending] = await view(eth, CUSTODIAN, at, 'pendingOwner');
    const wanted = configuration?.owner;
    if (pending !== ZeroAddress)
      report.warn('OWNER', name, `${String(owner)} owns it; offered to ${String(pending)}, who has not accepted`);
    else if (wanted !== undefined && owner !== wanted)
      report.warn('OWNER', name, `${String(owner)} owns it, not ${wanted} as configured`);
    else report.ok('OWNER', name, `${String(owner)} owns it`);
  }
}

/**
 * Checks how long a settled claim waits for its payment: a reorganisation can leave one above the balance that it was settled from, and it can be
 * lowered only while it waits. What a sandbox pays out is worth nothing.
 */
export function checkDelay(delaySec: bigint, { isSandbox }: { isSandbox: boolean }, report: Report): void {
  const text = `a settled withdrawal waits ${delaySec} s`;
  if (isSandbox || delaySec >= LEAST_DELAY_SEC) report.ok('WITHDRAW_DELAY', 'custodian', text);
  else
    report.warn(
      'WITHDRAW_DELAY',
      'custodian',
      `${text}: after a reorganisation it may be more than its maker has, and \`curvebook claim lower\` must come within that time`,
    );
}

export async function readDelay(eth: EthReader, { contracts }: BaseConfig['manifest']): Promise<bigint> {
  return (await view(eth, CUSTODIAN, contracts.custodian, 'withdrawDelay'))[0] as bigint;
}

/** Checks that each key has exactly the rights of its role on the chain. */
export async function checkRoles(
  eth: EthReader,
  { manifest, keys, ROLES }: Pick<Config, 'manifest' | 'keys' | 'ROLES'>,
  report: Report,
): Promise<void> {
  const { custodian, curveBook, orderSettler } = manifest.contracts;
  const has = async (role: SigningRole, who: string): Promise<boolean> => {
    const [abi, at, method] = {
      poster: [CURVE_BOOK, curveBook, 'isPoster'] as const,
      settler: [CUSTODIAN, custodian, 'isPoster'] as const,
      executor: [SETTLER, orderSettler ?? ZeroAddress, 'isExecutor'] as const,
    }[role];
    return (await view(eth, abi, at, method, [who]))[0] === true;
  };
  for (const role of SIGNING_ROLES) {
    const key = keys[role];
    if (key === undefined || !ROLES.includes(role) || (role === 'executor' && orderSettler === undefined)) continue;
    const address = computeAddress(key);
    if (await has(role, address)) report.ok('ROLES', role, `${address} may act`);
    else report.fail('ROLES', role, `${address} has no right on the chain`);
    const other = role === 'poster' ? 'settler' : role === 'settler' ? 'poster' : null;
    if (other !== null && (await has(other, address)))
      report.warn('ROLES', role, `${address} may act as the ${other}, too: one key must not both price and pay`);
  }
}

/** Before a deployment: checks that the configuration names the keys that the settings have. */
export function checkNamedKeys(keys: BaseConfig['keys'], configuration: DeployConfig, report: Report): void {
  const named = {
    poster: configuration.curvePosters,
    settler: configuration.claimPosters,
    executor: configuration.executors,
  };
  for (const role of SIGNING_ROLES) {
    const key = keys[role];
    if (key === undefined) report.warn('ROLES', role, 'no key is here');
    else if (named[role].includes(computeAddress(key)))
      report.ok('ROLES', role, `${computeAddress(key)} is configured`);
    else report.fail('ROLES', role, `${computeAddress(key)} is not named in the configuration`);
  }
}

/** The markets that are listed, beside those that are configured, and how long posts may live in them. */
export async function checkMarkets(
  eth: EthReader,
  { manifest, CURVE_TTL_SEC: ttlSec }: Pick<Config, 'manifest' | 'CURVE_TTL_SEC'>,
  configuration: DeployConfig | null,
  report: Report,
): Promise<number> {
  const { curveBook } = manifest.contracts;
  const [count] = (await view(eth, CURVE_BOOK, curveBook, 'marketCount')) as [bigint];
  if (count > MAX_MARKETS) {
    report.fail('MARKETS', 'curveBook', `names ${count} markets`);
    return 0;
  }
  const listings = new Map(
    configuration?.markets.map((market) => [
      listingOf(market, configuration.tokens).id,
      listingOf(market, configuration.tokens),
    ]),
  );
  const seen = new Set<string>();
  for (let index = 0n; index < count; index++) {
    const [id] = (await view(eth, CURVE_BOOK, curveBook, 'marketAt', [index])) as [string];
    const [state] = (await view(eth, CURVE_BOOK, curveBook, 'marketState', [id])) as unknown as [
      { base: string; lotUnits: bigint; tickLotUnits: bigint; maxTtlSec: bigint },
    ];
    seen.add(id);
    const listing = listings.get(id);
    const pair = listing?.market.pair ?? `market ${index}`;
    if (listing === undefined) {
      if (configuration !== null)
        report.warn('MARKETS', pair, 'is listed and not configured; configure refuses to leave it out');
    } else if (state.base !== getAddress(listing.base.address))
      report.fail('MARKETS', pair, 'is listed the other way round');
    else if (state.lotUnits !== listing.lotUnits || state.tickLotUnits !== listing.tickLotUnits) {
      const { base, quote } = listing;
      report.fail(
        'MARKETS',
        pair,
        `is listed with ${gridText(state.lotUnits, state.tickLotUnits, base, quote)}, configured with ${gridText(listing.lotUnits, listing.tickLotUnits, base, quote)}`,
      );
    } else report.ok('MARKETS', pair, 'is listed with the grid that is configured');
    if (BigInt(ttlSec) > state.maxTtlSec)
      report.warn('LIFETIME', pair, `posts live ${state.maxTtlSec} s at most, and CURVE_TTL_SEC is ${ttlSec}`);
    else report.ok('LIFETIME', pair, `CURVE_TTL_SEC ${ttlSec} is within ${state.maxTtlSec} s`);
  }
  for (const [id, { market }] of listings)
    if (!seen.has(id)) report.fail('MARKETS', market.pair, 'is configured and not listed');
  if (count === 0n && configuration === null) report.warn('MARKETS', 'curveBook', 'no market is listed');
  return listings.size === 0 ? seen.size : Math.max(seen.size, listings.size);
}

export async function checkPermit2(eth: EthReader, at: Address, report: Report): Promise<void> {
  if (await hasCode(eth, at)) report.ok('PERMIT2', at, 'is on the chain');
  else report.warn('PERMIT2', at, 'no contract is there: no signed order can be executed');
}

/** Everything else that swaps need; Permit2 has a check of its own. */
export async function checkSwaps(
  eth: EthReader,
  config: Pick<BaseConfig, 'swap' | 'ROLES' | 'keys'>,
  report: Report,
): Promise<void> {
  const { wrong, missing } = await inspectSwaps(eth, config);
  for (const text of wrong) report.fail('SWAPS', 'settings', text);
  const others = missing.filter((text) => !text.startsWith('no Permit2'));
  for (const text of others) report.warn('SWAPS', 'settings', text);
  if (wrong.length + others.length === 0) report.ok('SWAPS', 'settings', 'routes, tokens and targets are there');
}
