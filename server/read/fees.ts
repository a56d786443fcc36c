import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import type { Address, Market, Token } from '../../core/types.js';
import type { ReadDeps, ReadStore } from './deps.js';
import { createRemembered, render, sendText, type Rendered } from '../rendered.js';
import { addressSchema, decimalSchema, signedDecimalSchema } from './schemas.js';

/** `accrued` only grows; `balance` is the address's whole ledger balance in that token, whatever it came from. */
const feeSchema = z.strictObject({ token: z.string(), accrued: decimalSchema, balance: signedDecimalSchema });

export const feesSchema = z.array(z.strictObject({ taker: addressSchema, fees: z.array(feeSchema) }));

/**
 * GET /v0/fees: one row per taker that was ever credited a fee. Serialised once per generation, because totals and balances change only
 * with generations.
 */
export function feesHandler(deps: ReadDeps): RouterMiddleware {
  const remembered = createRemembered<Rendered>();
  return async (ctx) => {
    const markets = deps.markets();
    const name = `${await deps.store.ledgerVersion()} ${markets.length}`;
    const { body } = await remembered.get(name, async () => render(feeRows(markets, await deps.store.takerFees())));
    sendText(ctx, body);
  };
}

function feeRows(markets: readonly Market[], totals: Awaited<ReturnType<ReadStore['takerFees']>>) {
  const tokens = tokensOf(markets);
  const rows = new Map<Address, z.infer<typeof feeSchema>[]>();
  for (const { taker, token: address, accruedUnits, balanceUnits } of totals) {
    const token = tokens.get(address);
    if (token === undefined || accruedUnits === 0n) continue;
    const fees = rows.get(taker) ?? [];
    rows.set(taker, fees);
    fees.push({
      token: token.symbol,
      accrued: formatUnits(accruedUnits, token.decimals),
      balance: formatUnits(balanceUnits, token.decimals),
    });
  }
  return [...rows].map(([taker, fees]): z.infer<typeof feesSchema>[number] => ({ taker, fees }));
}

function tokensOf(markets: readonly Market[]): Map<Address, Token> {
  return new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
}
