/** The venues that are known, and what is looked at before one is used. */
import { id } from 'ethers';
import { routerKindOf, type RouterKind } from '../core/swap/router-kind.js';
import type { Address, Hex } from '../core/types.js';
import { isFailedCall, type EthReader } from './eth.js';
import { RouterError } from './routers.js';
import { uniswapV2 } from './uniswap-v2.js';
import { uniswapV3 } from './uniswap-v3.js';
import { uniswapV4 } from './uniswap-v4.js';
import type { VenueKind } from './venue.js';

/** To add one: its file, and its place here; then its addresses in the presets of chains that have it. */
export const VENUE_KINDS = [uniswapV3, uniswapV2, uniswapV4] as const;

/** `POOL_MANAGER` of `poolManager`. */
type UpperSnake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? First extends Lowercase<First>
    ? `${Uppercase<First>}${UpperSnake<Rest>}`
    : `_${First}${UpperSnake<Rest>}`
  : '';
const upperSnake = (name: string): string => name.replace(/[A-Z]/g, '_$&').toUpperCase();

type NamesOf<Kind> =
  Kind extends VenueKind<string, infer Setting, infer Manifest, infer Contract>
    ? { setting: `${Setting}_${UpperSnake<Contract>}`; place: `${Manifest}${Capitalize<Contract>}` }
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
      setting: `${kind.setting}_${upperSnake(contract)}` as VenueSetting,
      place: `${kind.manifest}${contract.slice(0, 1).toUpperCase()}${contract.slice(1)}` as VenuePlace,
      about,
    })),
  );

/** Addresses of a venue's contracts, by their names. */
export type VenueContracts = Parameters<VenueKind['create']>[1];

/** What stands at the addresses: the router's kind, or in words what is wrong with them. Throws what says nothing about them. */
export async function inspectVenue(
  eth: EthReader,
  kind: VenueKind,
  contracts: VenueContracts,
): Promise<{ kind: RouterKind } | { isMissing: boolean; problem: string }> {
  const named = Object.entries<Address>(contracts);
  const codes = (await eth.batch(
    named.map(([, address]) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
  )) as Hex[];
  const empty = named.filter((_, i) => codes[i] === '0x');
  if (empty.length > 0) {
    const problem = empty.map(([name, address]) => `the chain has no ${name} at ${address}`).join(', ');
    return { isMissing: true, problem };
  }
  const routerCode = codes[named.findIndex(([name]) => name === 'router')];
  const routerKind = routerCode === undefined ? null : routerKindOf(routerCode, kind.routers);
  if (routerKind === null)
    return { isMissing: false, problem: new RouterError(contracts.router, kind.routers).message };
  const at = new Map(named);
  const parent = at.get(kind.parent)!;
  for (const name of kind.ofParent) {
    const address = at.get(name)!;
    const said = await parentOf(eth, kind.parent, address);
    if (said === parent) continue;
    const problem = `the ${name} ${address} belongs to ${said === null ? `no ${kind.parent}` : `${kind.parent} ${said}`}, not to ${parent}`;
    return { isMissing: false, problem };
  }
  const problem = (await kind.inspectParent?.(eth, parent)) ?? null;
  return problem === null ? { kind: routerKind } : { isMissing: false, problem };
}

/** Null for a contract that does not name one. */
async function parentOf(eth: EthReader, parent: string, address: Address): Promise<Address | null> {
  try {
    const answer = (await eth.call('eth_call', [
      { to: address, data: id(`${parent}()`).slice(0, 10) },
      'latest',
    ])) as Hex;
    return /^0x0{24}[0-9a-f]{40}$/i.test(answer) ? `0x${answer.slice(26).toLowerCase()}` : null;
  } catch (error) {
    if (isFailedCall(error)) return null;
    throw error;
  }
}
