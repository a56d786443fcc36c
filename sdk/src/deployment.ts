import { parseDecimal, parseUnits, powerOfTen } from '../../core/amounts.js';
import { createMarket } from '../../core/market.js';
import type { Address, Market, Token } from '../../core/types.js';
import { CurvebookError } from './errors.js';
import type { Answer } from './read/client.js';
import { asAddress } from './wallet.js';

export type Deployment = Answer<'/v0/deployment'>;

/** Addresses that you know from elsewhere than the server, such as `@curvebook/contracts`. */
export interface TrustedContracts {
  chainId: number;
  custodian: string;
  entrypoint: string;
  orderSettler?: string;
  permit2?: string;
}

/**
 * What may be called and allowed tokens. A server that lies about an address takes what you send there, so that its word is only taken when you
 * say `'server'`; otherwise every address that you name must be the one that it names.
 */
export function trusted(
  deployment: Deployment,
  known: TrustedContracts | 'server',
): Record<string, Address> & { custodian: Address; entrypoint: Address } {
  const said = Object.fromEntries(
    Object.entries(deployment.contracts).map(([name, { address }]) => [name, asAddress(address)]),
  );
  if (known !== 'server') {
    const { chainId, ...contracts } = known;
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

/** A token by its symbol or its address. Throws CurvebookError `UNKNOWN_TOKEN`. */
export function tokenOf({ tokens }: Deployment, name: string): Token {
  const token = tokens.find(({ symbol, address }) => symbol === name || address === name.toLowerCase());
  if (token === undefined) throw new CurvebookError('UNKNOWN_TOKEN', `no token ${name}`);
  return { symbol: token.symbol, address: asAddress(token.address), decimals: token.decimals };
}

/** A market with its grid. Throws CurvebookError `UNKNOWN_PAIR`. */
export function marketOf(deployment: Deployment, pair: string): Market & { asset: number } {
  const index = deployment.markets.findIndex((one) => one.pair === pair);
  const row = deployment.markets[index];
  if (row === undefined) throw new CurvebookError('UNKNOWN_PAIR', `no pair ${pair}`);
  const [base, quote] = [tokenOf(deployment, row.base), tokenOf(deployment, row.quote)];
  const [tick, lot] = [parseDecimal(row.tick_size), parseDecimal(row.lot_size)];
  const tickLotUnits = (tick.digits * lot.digits * powerOfTen(quote.decimals)) / powerOfTen(tick.scale + lot.scale);
  const lotUnits = parseUnits(row.lot_size, base.decimals);
  const market = createMarket({ index, base, quote, lotUnits, tickLotUnits, maxTtlSec: 255 });
  return { ...market, pair, asset: row.asset };
}
