/** Which contracts of a public chain's preset exist on the present chain: a private chain may have the same id and none of them. */
import type { Address } from '../core/types.js';
import {
  VENUE_KINDS,
  inspectVenue,
  venueContracts,
  type VenueContracts,
  type VenuePlace,
} from '../liquidity/venues.js';
import type { VenueKind } from '../liquidity/venue.js';
import { chainPreset } from './chain-preset.js';
import { readerOf, type RpcProvider } from './context.js';
import { DeployError } from './errors.js';
import type { DeploymentRecord } from './record.js';

export interface KnownPlaces {
  /** Addresses by their names in the manifest. */
  contracts: Partial<Record<'wrappedNative' | VenuePlace, string>>;
  /** What the settler may call. */
  targets: readonly string[];
}

/**
 * The wrapped native token and the external venues for which the chain has code. A venue counts only if all of its contracts have code, and one with a
 * router of our own only if that is recorded, wherever its manager is. Throws `BAD_CONFIG` when the code is not the venue's: a router that orders can't be
 * encoded for, or contracts of another factory.
 */
export async function knownPlaces(
  provider: RpcProvider,
  chainId: number,
  recorded: DeploymentRecord['contracts'],
): Promise<KnownPlaces> {
  const preset = chainPreset(chainId);
  const contracts: KnownPlaces['contracts'] = {};
  const targets: string[] = [];
  const native = preset?.contracts.wrappedNative.address;
  if (native !== undefined && (await provider.getCode(native)) !== '0x') contracts.wrappedNative = native;
  for (const kind of VENUE_KINDS as readonly VenueKind[]) {
    const known = kind.hasOwnRouter === true ? recordedPlaces(kind, recorded) : presetPlaces(kind, preset);
    if (known === null) continue;
    const lower = Object.entries(known).map(([name, address]) => [name, address.toLowerCase() as Address]);
    const found = await inspectVenue(readerOf(provider), kind, Object.fromEntries(lower) as VenueContracts);
    if ('problem' in found) {
      if (found.isMissing) continue;
      throw new DeployError(
        'BAD_CONFIG',
        `${kind.hasOwnRouter === true ? "the record's" : "the preset's"} ${kind.title} is not on this chain: ${found.problem}`,
      );
    }
    for (const { contract, place } of venueContracts([kind])) contracts[place] = known[contract]!;
    targets.push(known['router']!);
  }
  return { contracts, targets };
}

type Places = Readonly<Record<string, string>>;

/** Null where the preset does not name the venue. */
function presetPlaces({ name }: VenueKind, preset: ReturnType<typeof chainPreset>): Places | null {
  const known = preset?.venues[name];
  if (known === undefined) return null;
  return Object.fromEntries(Object.entries(known).map(([contract, { address }]) => [contract, address]));
}

/** Null unless the record names all of the venue's contracts. */
function recordedPlaces(kind: VenueKind, recorded: DeploymentRecord['contracts']): Places | null {
  const known = venueContracts([kind]).map(({ contract, place }) => [contract, recorded[place]] as const);
  return known.some(([, address]) => address === undefined) ? null : (Object.fromEntries(known) as Places);
}
