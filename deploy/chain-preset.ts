/** What a public chain has at well-known addresses: `chains/<chainId>.json`, each address with the source that it was taken from. */
import { existsSync, readFileSync } from 'node:fs';
import { getAddress, isAddress } from 'ethers';
import { z } from 'zod';
import type { VenueKind } from '../liquidity/venue.js';
import { VENUE_KINDS } from '../liquidity/venues.js';

const address = z
  .string()
  .refine((text) => isAddress(text) && getAddress(text) === text, 'must be an address with its checksum');
const place = z.strictObject({ address, source: z.string().min(1) });

/** The contracts of a venue that are the chain's; a router of our own is each deployment's. */
const knownOf = (contracts: VenueKind['contracts'], hasOwnRouter: true | undefined): string[] =>
  Object.keys(contracts).filter((contract) => contract !== 'router' || hasOwnRouter === undefined);

const presetSchema = z.strictObject({
  chainId: z.int().positive(),
  explorer: z.strictObject({ url: z.url(), source: z.string().min(1) }),
  contracts: z.strictObject({
    wrappedNative: place,
    permit2: place,
    gasPriceOracle: place,
  }),
  /** Addresses by kind of venue and by contract. */
  venues: z.strictObject(
    Object.fromEntries(
      VENUE_KINDS.map(({ name, contracts, hasOwnRouter }: VenueKind) => [
        name,
        z.strictObject(Object.fromEntries(knownOf(contracts, hasOwnRouter).map((one) => [one, place]))).optional(),
      ]),
    ),
  ),
  tokens: z.array(
    place.extend({ symbol: z.string().min(1), name: z.string().min(1), decimals: z.int().min(0).max(36) }),
  ),
});

type ChainPreset = z.output<typeof presetSchema>;

/** The preset of a chain; null for a chain without one. */
export function chainPreset(chainId: number): ChainPreset | null {
  const path = new URL(`chains/${chainId}.json`, import.meta.url);
  if (!existsSync(path)) return null;
  const preset = presetSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  if (preset.chainId !== chainId) throw new RangeError(`chains/${chainId}.json is of chain ${preset.chainId}`);
  return preset;
}

/** Rows of a token list for these tokens, with the preset's names; a token that the preset does not have gets its symbol as name. */
export function tokenRows(
  chainId: number,
  tokens: readonly { symbol: string; address: string; decimals: number }[],
): { chainId: number; address: string; symbol: string; name: string; decimals: number; logoURI: string }[] {
  const known = new Map(chainPreset(chainId)?.tokens.map((token) => [token.address, token.name]));
  return tokens.map(({ symbol, address: at, decimals }) => ({
    chainId,
    address: at,
    symbol,
    name: known.get(getAddress(at)) ?? symbol,
    decimals,
    logoURI: '',
  }));
}
