/** Which contracts of a public chain's preset exist on the present chain: a private chain may have the same id and none of them. */
import type { Address } from '../core/types.js';
import type { EthReader } from '../liquidity/eth.js';
import {
  VENUE_KINDS,
  inspectVenue,
  venueContracts,
  type VenueContracts,
  type VenuePlace,
} from '../liquidity/venues.js';
import { chainPreset } from './chain-preset.js';
import type { RpcProvider } from './context.js';
import { DeployError } from './errors.js';

export interface KnownPlaces {
  /** Addresses by their names in the manifest. */
  contracts: Partial<Record<'wrappedNative' | VenuePlace, string>>;
  /** What the settler may call. */
  targets: readonly string[];
}

/**
 * The wrapped native token and the external venues for which the chain has code. A venue counts only if all of its contracts have code. Throws
 * `BAD_CONFIG` when the code is not the venue's: a router that orders can't be encoded for, or contracts of another factory.
 */
export async function knownPlaces(provider: RpcProvider, chainId: number): Promise<KnownPlaces> {
  const preset = chainPreset(chainId);
  if (preset === null) return { contracts: {}, targets: [] };
  const { address: native } = preset.contracts.wrappedNative;
  const contracts: KnownPlaces['contracts'] = {};
  const targets: string[] = [];
  if ((await provider.getCode(native)) !== '0x') contracts.wrappedNative = native;
  for (const kind of VENUE_KINDS) {
    const known = preset.venues[kind.name];
    if (known === undefined) continue;
    const lower = Object.entries(known).map(([name, { address }]) => [name, address.toLowerCase() as Address]);
    const found = await inspectVenue(readerOf(provider), kind, Object.fromEntries(lower) as VenueContracts);
    if ('problem' in found) {
      if (found.isMissing) continue;
      throw new DeployError('BAD_CONFIG', `the preset's ${kind.title} is not on this chain: ${found.problem}`);
    }
    for (const { contract, place } of venueContracts([kind])) contracts[place] = known[contract]!.address;
    targets.push(known['router']!.address);
  }
  return { contracts, targets };
}

const readerOf = (provider: RpcProvider): EthReader => ({
  call: (method, params = []) => provider.send(method, params),
  batch: (requests) => Promise.all(requests.map(({ method, params }) => provider.send(method, params))),
});
