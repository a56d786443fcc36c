import { tokenLogo } from '../../core/swap/token-logo.js';
import type { ManifestToken, TokenList } from '../manifest.js';

const NAMES: Record<string, string> = {
  WETH: 'Wrapped Ether',
  USDC: 'USD Coin',
  DAI: 'Dai Stablecoin',
  cbBTC: 'Coinbase Wrapped BTC',
};
const COLOURS: Record<string, string> = { WETH: '#627eea', USDC: '#2775ca', DAI: '#f5ac37', cbBTC: '#0052ff' };

/** The list of the sandbox's tokens, with logos that need no network. */
export function sandboxTokenList(chainId: number, tokens: readonly ManifestToken[]): TokenList {
  return {
    name: 'Curvebook sandbox',
    timestamp: '2025-01-01T00:00:00.000Z',
    version: { major: 1, minor: 0, patch: 0 },
    tokens: tokens.map(({ symbol, address, decimals }) => ({
      chainId,
      address,
      symbol,
      name: NAMES[symbol] ?? symbol,
      decimals,
      logoURI: tokenLogo(COLOURS[symbol] ?? '#888888'),
    })),
  };
}
