/** Names of tokens: unique in a deployment, and safe in a path, a query, a label and a setting, whatever a token's contract returns. */
import type { Address, Hex, Market, Token } from './types.js';

/** Longest symbol that is used unchanged; shorter than an address, so that no symbol looks like one. */
export const MAX_SYMBOL_CHARS = 32;
const USABLE = new RegExp(`^[A-Za-z0-9._]{1,${MAX_SYMBOL_CHARS}}$`);
/** Digits of the address that are appended to a symbol that another token has. */
const SUFFIX_DIGITS = 8;
const WORD_BYTES = 32;

/** True for a symbol that may name a token. */
export const isUsableSymbol = (symbol: string): boolean => USABLE.test(symbol);

/**
 * The tokens with their names as symbols, in the order given, which must be that of their listing: a name never depends on what is listed
 * later. A token's name is its symbol; or its symbol, a point and the first 8 digits of its address when an earlier token has that name in
 * any letter case; or its address when it has no usable symbol. Naming named tokens again changes nothing.
 */
export function nameTokens(tokens: readonly Token[]): Token[] {
  const byAddress = new Map<Address, string>();
  const taken = new Set<string>();
  return tokens.map((token) => {
    let name = byAddress.get(token.address);
    if (name === undefined) {
      name = nameOf(token, taken);
      byAddress.set(token.address, name);
      taken.add(name.toLowerCase());
    }
    return name === token.symbol ? token : { ...token, symbol: name };
  });
}

function nameOf({ symbol, address }: Token, taken: ReadonlySet<string>): string {
  if (!isUsableSymbol(symbol)) return address;
  if (!taken.has(symbol.toLowerCase())) return symbol;
  const digits = address.slice(2, 2 + SUFFIX_DIGITS);
  const suffixed = `${symbol.slice(0, MAX_SYMBOL_CHARS - SUFFIX_DIGITS - 1)}.${digits}`;
  return taken.has(suffixed.toLowerCase()) ? address : suffixed;
}

/** All markets of a deployment, by index, with the names that `nameTokens` gives their tokens, in the order of listing, base first. */
export function nameMarkets(markets: readonly Market[]): Market[] {
  const tokens = nameTokens(markets.flatMap(({ base, quote }) => [base, quote]));
  return markets.map((market, i) => {
    const [base = market.base, quote = market.quote] = tokens.slice(2 * i, 2 * i + 2);
    if (base === market.base && quote === market.quote) return market;
    return { ...market, base, quote, pair: `${base.symbol}-${quote.symbol}` };
  });
}

/** A record's own value under a name that a token chose; never an inherited property such as `constructor`. */
export const ownValue = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

/** Decodes a token's answer to `symbol()`: an ABI string, or the bytes32 of a few old tokens. Empty for anything else. */
export function decodeSymbol(data: Hex): string {
  const bytes = Buffer.from(data.slice(2), 'hex');
  if (bytes.length === WORD_BYTES) return textOf(bytes);
  const offset = wordAt(bytes, 0);
  const length = offset === null ? null : wordAt(bytes, offset);
  if (offset === null || length === null) return '';
  return textOf(bytes.subarray(offset + WORD_BYTES, offset + WORD_BYTES + length));
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).replaceAll('\0', '');

/** A word as an offset into the data; null when it is beyond its end. */
function wordAt(bytes: Buffer, at: number): number | null {
  if (at + WORD_BYTES > bytes.length) return null;
  const word = BigInt(`0x${bytes.subarray(at, at + WORD_BYTES).toString('hex')}`);
  return word > BigInt(bytes.length) ? null : bytes.readUInt32BE(at + WORD_BYTES - 4);
}
