/** The venues that are known, and what is looked at before one is used. */
import { Interface } from 'ethers';
import { routerKindOf, type RouterKind } from '../core/swap/router-kind.js';
import type { Address, Hex } from '../core/types.js';
import { isFailedCall, type EthReader } from './eth.js';
import { RouterError } from './routers.js';
import { uniswapV2 } from './uniswap-v2.js';
import { uniswapV3 } from './uniswap-v3.js';
import type { VenueKind } from './venue.js';

/** To add one: its file, and its place here; then its addresses in the presets of chains that have it. */
export const VENUE_KINDS = [uniswapV3, uniswapV2] as const;

type NamesOf<Kind> =
  Kind extends VenueKind<string, infer Setting, infer Manifest, infer Contract>
    ? { setting: `${Setting}_${Uppercase<Contract>}`; place: `${Manifest}${Capitalize<Contract>}` }
    : never;
type Names = NamesOf<(typeof VENUE_KINDS)[number]>;

/** `UNISWAP_V3_ROUTER` and its like. */
export type VenueSetting = Names['setting'];
/** `uniswapV3Router` and its like, as the manifest and the record name contracts. */
export type VenuePlace = Names['place'];

/** One contract of a venue, by all its names. */
interface VenueContract {
  kind: VenueKind;
  contract: string;
  setting: VenueSetting;
  place: VenuePlace;
  /** What there is to say of its setting; empty for nothing. */
  about: string;
}

/** All contracts of all venues, or those of one. */
export const venueContracts = (kinds: readonly VenueKind[] = VENUE_KINDS): VenueContract[] =>
  kinds.flatMap((kind) =>
    Object.entries(kind.contracts).map(([contract, about]) => ({
      kind,
      contract,
      setting: `${kind.setting}_${contract.toUpperCase()}` as VenueSetting,
      place: `${kind.manifest}${contract.slice(0, 1).toUpperCase()}${contract.slice(1)}` as VenuePlace,
      about,
    })),
  );

/** Addresses of a venue's contracts, by their names. */
export type VenueContracts = Parameters<VenueKind['create']>[1];

const PLACES = new Interface(['function factory() view returns (address)']);

/** What stands at the addresses: the router's kind, or in words what is wrong with them. Throws what says nothing about them. */
export async function inspectVenue(
  eth: EthReader,
  kind: VenueKind,
  contracts: VenueContracts,
): Promise<{ kind: RouterKind } | { isMissing: boolean; problem: string }> {
  const named = Object.entries(contracts);
  const codes = (await eth.batch(
    named.map(([, address]) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
  )) as Hex[];
  const empty = named.filter((_, i) => codes[i] === '0x');
  if (empty.length > 0) {
    const problem = empty.map(([name, address]) => `the chain has no ${name} at ${address}`).join(', ');
    return { isMissing: true, problem };
  }
  const { factory, router } = contracts;
  const routerCode = codes[named.findIndex(([name]) => name === 'router')];
  const routerKind = routerCode === undefined ? null : routerKindOf(routerCode, kind.routers);
  if (routerKind === null) return { isMissing: false, problem: new RouterError(router, kind.routers).message };
  for (const name of kind.ofFactory) {
    const address = (contracts as Record<string, Address>)[name]!;
    const said = await factoryOf(eth, address);
    if (said === factory) continue;
    const problem = `the ${name} ${address} belongs to ${said === null ? 'no factory' : `factory ${said}`}, not to ${factory}`;
    return { isMissing: false, problem };
  }
  return { kind: routerKind };
}

/** Null for a contract that does not name one. */
async function factoryOf(eth: EthReader, address: Address): Promise<Address | null> {
  try {
    const call = { to: address, data: PLACES.encodeFunctionData('factory') };
    const answer = (await eth.call('eth_call', [call, 'latest'])) as Hex;
    return /^0x0{24}[0-9a-f]{40}$/i.test(answer) ? `0x${answer.slice(26).toLowerCase()}` : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}
