/** What of a public chain's preset is on the chain at hand: a private one may have its id and nothing else of it. */
import { Contract, getAddress } from 'ethers';
import type { Provider } from 'ethers';
import { routerKindOf } from '../core/swap/router-kind.js';
import type { Hex } from '../core/types.js';
import { chainPreset } from './chain-preset.js';
import { DeployError } from './errors.js';

/** Addresses by their names in the manifest. */
export type KnownPlaces = Partial<
  Record<'wrappedNative' | 'uniswapV3Factory' | 'uniswapV3Quoter' | 'uniswapV3Router', string>
>;

const VENUE = ['uniswapV3Factory', 'uniswapV3Quoter', 'uniswapV3Router'] as const;

/**
 * The wrapped native token and Uniswap v3 where the chain has code for them; Uniswap's three contracts all or none. Throws `BAD_CONFIG` when the
 * router there is none that orders can be encoded for, or is of another factory.
 */
export async function knownPlaces(provider: Provider, chainId: number): Promise<KnownPlaces> {
  const preset = chainPreset(chainId)?.contracts;
  if (preset === undefined) return {};
  const has = async (name: keyof typeof preset): Promise<boolean> =>
    (await provider.getCode(preset[name].address)) !== '0x';
  const places: KnownPlaces = {};
  if (await has('wrappedNative')) places.wrappedNative = preset.wrappedNative.address;
  const present = await Promise.all(VENUE.map(has));
  if (!present.every(Boolean)) return places;
  const router = preset.uniswapV3Router.address;
  const kind = routerKindOf((await provider.getCode(router)) as Hex);
  const factory = await new Contract(router, ['function factory() view returns (address)'], provider)
    .getFunction('factory')
    .staticCall()
    .then((answer: unknown) => getAddress(String(answer)))
    .catch(() => null);
  if (kind === null || factory !== preset.uniswapV3Factory.address) {
    throw new DeployError('BAD_CONFIG', `${router} is no router of Uniswap v3 at ${preset.uniswapV3Factory.address}`);
  }
  for (const name of VENUE) places[name] = preset[name].address;
  return places;
}
