import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import type { Address, Market, Token } from '../../core/types.js';
import type { ReadDeps } from './deps.js';
import { addressSchema, decimalSchema, signedDecimalSchema } from './schemas.js';

/** `accrued` only grows; `balance` is the address's whole ledger balance in that token, whatever it came from. */
const feeSchema = z.strictObject({ token: z.string(), accrued: decimalSchema, balance: signedDecimalSchema });

export const feesSchema = z.array(z.strictObject({ taker: addressSchema, fees: z.array(feeSchema) }));

/** GET /v0/fees: one row per taker that was ever credited a fee. */
export function feesHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const tokens = tokensOf(deps.markets());
    const rows = new Map<Address, z.infer<typeof feeSchema>[]>();
    for (const { taker, token: address, accruedUnits, balanceUnits } of await deps.store.takerFees()) {
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
    const body: z.infer<typeof feesSchema> = [...rows].map(([taker, fees]) => ({ taker, fees }));
    ctx.body = body;
  };
}

function tokensOf(markets: readonly Market[]): Map<Address, Token> {
  return new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
}
