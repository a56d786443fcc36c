/** What of a public chain's preset is on the chain at hand: a private one may have its id and nothing else of it. */
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
 * The wrapped native token, and external venues, where the chain has code for them; the contracts of a venue all or none. Throws `BAD_CONFIG` when
 * what is there is not the venue: a router that orders can't be encoded for, or contracts of another factory.
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
