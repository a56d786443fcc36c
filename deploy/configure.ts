/**
 * The difference between what the owner has set and a configuration, as prepared calls. The configuration is complete: an account that it does
 * not name loses its right, a taker that it does not name pays no fee. Markets are the exception, since the contracts can't remove one: a
 * configuration that leaves out a listed market is refused.
 */
import { Contract, getAddress, isError } from 'ethers';
import type { BaseContract, Provider } from 'ethers';
import { decodeSymbol } from '../core/token-names.js';
import type { Hex } from '../core/types.js';
import { actionOn } from './actions.js';
import type { Action } from './actions.js';
import { connectContracts } from './contracts.js';
import type { Addresses, ContractName, Contracts } from './contracts.js';
import { DeployError } from './errors.js';
import { assertDistinct, assertSignable, gridText, listingOf } from './listing.js';
import type { DeployMarket, Listing } from './listing.js';
import type { ManifestToken } from './manifest.js';
import { readState } from './state.js';
import type { ListedMarket, PlatformState } from './state.js';

/** Selector of symbol() */
const SYMBOL = '0x95d89b41';

export interface PlatformConfig {
  withdrawDelaySec: number;
  tokens: readonly (ManifestToken & { noSymbol?: boolean })[];
  markets: readonly DeployMarket[];
  curvePosters: readonly string[];
  claimPosters: readonly string[];
  executors: readonly string[];
  targets: readonly string[];
  takerFees: readonly { taker: string; ratePpm: number }[];
}

/**
 * The calls that turn the present state into the configured one, rights that end before those that begin.
 * Throws `BAD_CONFIG` when no call can do that: for another grid than the listed one, a market left out, or a token of a new market that has other
 * decimals than configured or no readable symbol.
 */
export async function configureActions(
  provider: Provider,
  at: Addresses,
  config: PlatformConfig,
  fromBlock: number,
): Promise<Action[]> {
  const listings = config.markets.map((market) => listingOf(market, config.tokens));
  assertDistinct(listings);
  assertNoTarget(listings, config.targets);
  const state = await readState(provider, at, fromBlock);
  // Tokens that are listed already are not checked: a fault of theirs must not stop the owner's other calls.
  const listed = new Set(state.markets.flatMap(({ base, quote }) => [getAddress(base), getAddress(quote)]));
  await assertTokens(
    provider,
    config.tokens.filter(({ address }) => !listed.has(getAddress(address))),
  );
  const contracts = connectContracts(at, provider);
  return [
    ...(await rightActions(contracts, state, config, false)),
    ...(await delayActions(contracts, state, config)),
    ...(await feeActions(contracts, state, config)),
    ...(await marketActions(contracts, state, listings)),
    ...(await feeFlagActions(contracts, state, config, listings)),
    ...(await rightActions(contracts, state, config, true)),
  ];
}

/**
 * Throws `BAD_CONFIG` if a token of a market is also a target: a route could make it approve somebody to take what a later order brings. The contracts
 * refuse that, too; this error names the market.
 */
function assertNoTarget(listings: readonly Listing[], targets: readonly string[]): void {
  const called = new Set(targets.map((target) => getAddress(target)));
  for (const { market, base, quote } of listings) {
    const token = [base, quote].find(({ address }) => called.has(getAddress(address)));
    if (token !== undefined)
      throw new DeployError('BAD_CONFIG', `${market.pair}: ${token.symbol} is an external target, and can't be traded`);
  }
}

async function assertTokens(provider: Provider, tokens: PlatformConfig['tokens']): Promise<void> {
  for (const { symbol, address, decimals, noSymbol = false } of tokens) {
    const token = new Contract(address, ['function decimals() view returns (uint8)'], provider);
    const actual = (await token
      .getFunction('decimals')
      .staticCall()
      .catch(() => null)) as bigint | null;
    if (actual === null) throw new DeployError('BAD_CONFIG', `${symbol}: ${address} is no token`);
    if (actual !== BigInt(decimals)) {
      throw new DeployError('BAD_CONFIG', `${symbol} has ${actual} decimals, not ${decimals}`);
    }
    if (!noSymbol && !(await saysSymbol(provider, address))) {
      throw new DeployError(
        'BAD_CONFIG',
        `${symbol}: ${address} does not say its symbol, and a listing is for good; say "noSymbol": true to list it all the same, by its address`,
      );
    }
  }
}

/** Whether a token answers `symbol()` with any text, even one that is not usable as a name. */
async function saysSymbol(provider: Provider, address: string): Promise<boolean> {
  const answer = await provider.call({ to: address, data: SYMBOL }).catch((error: unknown) => {
    if (isError(error, 'CALL_EXCEPTION')) return '0x';
    throw error;
  });
  return decodeSymbol(answer as Hex) !== '';
}

type Right = 'curvePosters' | 'claimPosters' | 'executors' | 'targets';
const RIGHTS: { right: Right; contract: ContractName; method: string; label: string }[] = [
  { right: 'curvePosters', contract: 'curveBook', method: 'setPoster', label: 'curve poster' },
  { right: 'claimPosters', contract: 'custodian', method: 'setPoster', label: 'claim poster' },
  { right: 'executors', contract: 'orderSettler', method: 'setExecutor', label: 'executor' },
  { right: 'targets', contract: 'orderSettler', method: 'setTarget', label: 'external target' },
];

async function rightActions(
  contracts: Contracts,
  state: PlatformState,
  config: PlatformConfig,
  allowed: boolean,
): Promise<Action[]> {
  const actions: Action[] = [];
  for (const { right, contract, method, label } of RIGHTS) {
    const wanted = config[right].map((account) => getAddress(account));
    const [from, to] = allowed ? [state[right], wanted] : [wanted, state[right]];
    for (const account of to.filter((one) => !from.includes(one))) {
      const summary = `${allowed ? '+' : '-'} ${label} ${account}`;
      const target: BaseContract = contracts[contract];
      actions.push(await actionOn(contract, target, method, [account, allowed], summary));
    }
  }
  return actions;
}

async function delayActions({ custodian }: Contracts, state: PlatformState, config: PlatformConfig): Promise<Action[]> {
  const wanted = BigInt(config.withdrawDelaySec);
  if (state.withdrawDelaySec === wanted) return [];
  const summary = `~ withdrawal delay ${state.withdrawDelaySec} s -> ${wanted} s`;
  return [await actionOn('custodian', custodian, 'setWithdrawDelay', [wanted], summary)];
}

async function feeActions({ entrypoint }: Contracts, state: PlatformState, config: PlatformConfig): Promise<Action[]> {
  const wanted = new Map(config.takerFees.map(({ taker, ratePpm }) => [getAddress(taker), BigInt(ratePpm)]));
  const present = new Map(state.takerFees.map(({ taker, ratePpm }) => [taker, ratePpm]));
  const actions: Action[] = [];
  for (const taker of new Set([...present.keys(), ...wanted.keys()])) {
    const [before, after] = [present.get(taker) ?? 0n, wanted.get(taker) ?? 0n];
    if (before === after) continue;
    const summary = `~ fee of taker ${taker} ${before} ppm -> ${after} ppm`;
    actions.push(await actionOn('entrypoint', entrypoint, 'setTakerFee', [taker, after], summary));
  }
  return actions;
}

/** Switches fees on in all markets if any taker has a rate, and off in all if none has: rates are charged only where fees are on. */
async function feeFlagActions(
  { curveBook }: Contracts,
  state: PlatformState,
  config: PlatformConfig,
  listings: readonly Listing[],
): Promise<Action[]> {
  const charged = config.takerFees.some(({ ratePpm }) => ratePpm > 0);
  const actions: Action[] = [];
  for (const { id, market } of listings) {
    const before = state.markets.find((listed) => listed.id === id)?.chargesFees ?? false;
    if (before === charged) continue;
    const summary = `~ taker fees in ${market.pair} ${before ? 'on' : 'off'} -> ${charged ? 'on' : 'off'}`;
    actions.push(await actionOn('curveBook', curveBook, 'setTakerFees', [id, charged], summary));
  }
  return actions;
}

async function marketActions(
  { curveBook }: Contracts,
  state: PlatformState,
  listings: readonly Listing[],
): Promise<Action[]> {
  for (const { id, base, quote } of state.markets) {
    if (!listings.some((listing) => listing.id === id)) {
      throw new DeployError('BAD_CONFIG', `the market of ${base} and ${quote} is listed for good; name it`);
    }
  }
  const actions: Action[] = [];
  for (const listing of listings) {
    const listed = state.markets.find((market) => market.id === listing.id);
    const { market, base, quote, lotExponent, tickLotMantissa, tickLotExponent } = listing;
    if (listed === undefined) {
      assertSignable(listing);
      const args = [base.address, quote.address, lotExponent, tickLotMantissa, tickLotExponent, market.maxTtlSec];
      const summary = `+ market ${market.pair}: tick ${market.tickSize}, lot ${market.lotSize}, longest TTL ${market.maxTtlSec} s`;
      actions.push(await actionOn('curveBook', curveBook, 'listMarket', args, summary));
      continue;
    }
    assertSameGrid(listing, listed);
    if (listed.maxTtlSec === BigInt(market.maxTtlSec)) continue;
    const summary = `~ longest TTL of ${market.pair} ${listed.maxTtlSec} s -> ${market.maxTtlSec} s`;
    actions.push(await actionOn('curveBook', curveBook, 'setMaxTtl', [listing.id, market.maxTtlSec], summary));
  }
  return actions;
}

function assertSameGrid({ market, base, quote, lotUnits, tickLotUnits }: Listing, listed: ListedMarket): void {
  if (listed.base !== getAddress(base.address)) {
    throw new DeployError('BAD_CONFIG', `${market.pair} is listed the other way round`);
  }
  if (listed.lotUnits === lotUnits && listed.tickLotUnits === tickLotUnits) return;
  throw new DeployError(
    'BAD_CONFIG',
    `${market.pair} is listed with ${gridText(listed.lotUnits, listed.tickLotUnits, base, quote)} for good`,
  );
}
