import { formatUnits } from '../../../core/amounts.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { asAddress } from '../../../core/wire/shape.js';
import { readBalances } from '../../../ledger/chain/ledger-log.js';
import { tokensOf } from './spot-meta.js';
import type { InfoHandler } from './types.js';

/** Ledger balances of an account, one row per served token; `hold` is what withdrawals have reserved. */
export const spotClearinghouseState: InfoHandler = async (request, { db, gateway }) => {
  const account = asAddress(request.user, 'user');
  const rows = await readBalances(db.reads, { account });
  const balances = tokensOf(gateway.markets()).map((token, index) => {
    const row = rows.find((one) => one.token === token.address);
    return {
      coin: token.symbol,
      token: index,
      total: withPoint(formatUnits(row?.balanceUnits ?? 0n, token.decimals)),
      hold: withPoint(formatUnits(row?.reservedUnits ?? 0n, token.decimals)),
      entryNtl: '0.0',
    };
  });
  return { balances };
};
