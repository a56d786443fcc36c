import { MAX_DECIMALS, parseDecimal, parseUnits, powerOfTen, toSafeInt } from '../../core/amounts.js';
import { createMarket } from '../../core/market.js';
import type { Address, Market, Token } from '../../core/types.js';
import { CurvebookError } from './errors.js';
import type { Answer } from './read/client.js';
import { asAddress, callData, firstWord } from './wallet.js';
import type { Reader } from './wallet.js';

export type Deployment = Answer<'/v0/deployment'>;

/** An answer of `/v0/deployment`. Throws CurvebookError `HTTP_ERROR` for JSON that is something else, such as that of another API. */
export function asDeployment(answer: Deployment): Deployment {
  const { chain_id, contracts, tokens, markets } = fieldsOf(answer);
  const areContracts =
    typeof contracts === 'object' &&
    contracts !== null &&
    Object.values(contracts).every((one) => isAddress(fieldsOf(one)['address']));
  const areLists = Array.isArray(tokens) && tokens.every(isToken) && Array.isArray(markets) && markets.every(isListing);
  if (Number.isSafeInteger(chain_id) && areContracts && areLists) return answer;
  throw new CurvebookError('HTTP_ERROR', 'what answers there describes no deployment: is the URL that of a server?');
}

const fieldsOf = (value: unknown): Record<string, unknown> => Object(value) as Record<string, unknown>;

const isAddress = (value: unknown): boolean => typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value);

function isToken(value: unknown): boolean {
  const { symbol, address, decimals } = fieldsOf(value);
  const areDecimals = Number.isInteger(decimals) && (decimals as number) >= 0 && (decimals as number) <= MAX_DECIMALS;
  return typeof symbol === 'string' && isAddress(address) && areDecimals;
}

function isListing(value: unknown): boolean {
  const { pair, base, quote, tick_size, lot_size, asset } = fieldsOf(value);
  return [pair, base, quote, tick_size, lot_size].every((one) => typeof one === 'string') && Number.isInteger(asset);
}

/** Addresses that you know from another source than the server, such as `@curvebook/contracts`. */
export interface TrustedContracts {
  chainId: number;
  custodian: string;
  entrypoint: string;
  orderSettler?: string;
  permit2?: string;
  /** Tokens by symbol. A token that is not listed here can be named by its address only; its decimals are read from the token itself. */
  tokens?: Readonly<Record<string, TrustedToken>>;
}

export interface TrustedToken {
  address: string;
  decimals: number;
}

/**
 * The contracts that may be called and that tokens may be allowed to. A server that names a wrong address could take what you send there.
 * Therefore its addresses are used unchecked only if you pass `'server'`; otherwise each address that you name must equal the server's.
 */
export function trusted(
  deployment: Deployment,
  known: TrustedContracts | 'server',
): Record<string, Address> & { custodian: Address; entrypoint: Address } {
  const said = Object.fromEntries(
    Object.entries(deployment.contracts).map(([name, { address }]) => [name, asAddress(address)]),
  );
  if (known !== 'server') {
    if (typeof known !== 'object' || known === null) {
      throw new CurvebookError('NO_CONTRACTS', 'name the `contracts` that you know, or "server"');
    }
    const { chainId, tokens: _tokens, ...contracts } = known;
    if (deployment.chain_id !== chainId) {
      throw new CurvebookError('OTHER_DEPLOYMENT', `the server is of chain ${deployment.chain_id}, not ${chainId}`);
    }
    for (const [name, address] of Object.entries<string>(contracts)) {
      if (said[name] !== asAddress(address, name)) {
        throw new CurvebookError('OTHER_DEPLOYMENT', `the server names ${said[name] ?? 'no'} ${name}, you ${address}`);
      }
    }
    for (const name of Object.keys(said)) if (!(name in contracts)) delete said[name];
  }
  const { custodian, entrypoint } = said;
  if (custodian === undefined || entrypoint === undefined)
    throw new CurvebookError('OTHER_DEPLOYMENT', 'no custodian or no entrypoint');
  return { ...said, custodian, entrypoint };
}

/**
 * A token that is about to be sent or allowed. Its address comes from the caller, and its decimals from the caller or from the token; the server's
 * word alone is enough only with `'server'`. Throws CurvebookError `UNTRUSTED_TOKEN` for a symbol that the caller did not name, `OTHER_DEPLOYMENT`
 * where the server names another address or other decimals, and `CANNOT_READ` for an address without a reader.
 */
export async function trustedToken(
  deployment: Deployment,
  name: string,
  { known, reader }: { known: TrustedContracts | 'server'; reader: Reader | undefined },
): Promise<Token> {
  assertName(name);
  if (known === 'server') return tokenOf(deployment, name);
  const token = namedToken(known, name) ?? (await tokenAt(name, reader));
  for (const said of deployment.tokens) {
    const isSame = said.address.toLowerCase() === token.address;
    if (said.symbol !== token.symbol && !isSame) continue;
    if (!isSame || said.decimals !== token.decimals) {
      const text = `the server says that ${said.symbol} is ${said.address} with ${said.decimals} decimals`;
      throw new CurvebookError('OTHER_DEPLOYMENT', `${text}, not ${token.address} with ${token.decimals}`);
    }
  }
  return token;
}

function assertName(name: unknown): void {
  if (typeof name !== 'string')
    throw new CurvebookError('BAD_ARGUMENT', 'a token is named by its symbol or its address');
}

function namedToken({ tokens = {} }: TrustedContracts, name: string): Token | null {
  for (const [symbol, { address: text, decimals }] of Object.entries(tokens)) {
    const address = asAddress(text, symbol);
    if (symbol === name || address === name.toLowerCase()) return { symbol, address, decimals };
  }
  return null;
}

async function tokenAt(name: string, reader: Reader | undefined): Promise<Token> {
  if (!/^0x[0-9a-fA-F]{40}$/.test(name)) {
    throw new CurvebookError(
      'UNTRUSTED_TOKEN',
      `${name} is not among the tokens of \`contracts\`: name it there, or by its address`,
    );
  }
  if (reader === undefined)
    throw new CurvebookError('CANNOT_READ', `the decimals of ${name} need a reader of the chain`);
  const address = asAddress(name);
  const decimals = firstWord(await reader.call({ to: address, data: callData('decimals()', []) }));
  if (decimals > BigInt(MAX_DECIMALS)) throw new CurvebookError('UNTRUSTED_TOKEN', `${name} has ${decimals} decimals`);
  return { symbol: address, address, decimals: toSafeInt(decimals) };
}

/** A token as the server describes it, by its symbol or its address. Throws CurvebookError `UNKNOWN_TOKEN`. */
export function tokenOf({ tokens }: Deployment, name: string): Token {
  const token = tokens.find(({ symbol, address }) => symbol === name || address === name.toLowerCase());
  if (token === undefined) throw new CurvebookError('UNKNOWN_TOKEN', `no token ${name}`);
  return { symbol: token.symbol, address: asAddress(token.address), decimals: token.decimals };
}

/** A market with its grid. Throws CurvebookError `UNKNOWN_PAIR`, and `HTTP_ERROR` where what the server says of it is no grid. */
export function marketOf(deployment: Deployment, pair: string): Market & { asset: number } {
  const index = deployment.markets.findIndex((one) => one.pair === pair);
  const row = deployment.markets[index];
  if (row === undefined) throw new CurvebookError('UNKNOWN_PAIR', `no pair ${pair}`);
  const [base, quote] = [tokenOf(deployment, row.base), tokenOf(deployment, row.quote)];
  try {
    const [tick, lot] = [parseDecimal(row.tick_size), parseDecimal(row.lot_size)];
    const tickLotUnits = (tick.digits * lot.digits * powerOfTen(quote.decimals)) / powerOfTen(tick.scale + lot.scale);
    const lotUnits = parseUnits(row.lot_size, base.decimals);
    const market = createMarket({ index, base, quote, lotUnits, tickLotUnits, maxTtlSec: 255 });
    return { ...market, pair, asset: row.asset };
  } catch (error) {
    throw new CurvebookError('HTTP_ERROR', `the server describes no market for ${pair}`, { cause: error });
  }
}
