import { formatUnits } from '../../../core/amounts.js';
import { quoteUnitsFloor } from '../../../core/market.js';
import type { Address, Market, Token } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { asAddress, asUint } from '../../../core/wire/shape.js';
import { readTx } from '../../../ledger/db/db.js';
import { lastCandleBefore } from '../../../ledger/market-data/candle-rows.js';
import type { Queryable } from '../../../ledger/types.js';
import { ledgerUpdates, type LedgerUpdate } from '../../../ledger/views/ledger-updates.js';
import { MAX_LEDGER_UPDATES } from '../limits.js';
import { tokensOf } from './markets.js';
import type { InfoHandler } from './types.js';

/** The token that has update types of its own on this wire. */
const NAMED = 'USDC';
/** Address that stands for the chain as the other side of a transfer. */
const CHAIN: Address = `0x${'0'.repeat(40)}`;

/**
 * Deposits and executed withdrawals of an account within two times, both included: the oldest 2,000, oldest first. Those of other tokens than USDC
 * are transfers of spot tokens from or to the zero address, which stands for the chain.
 */
export const userNonFundingLedgerUpdates: InfoHandler = (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  const range = {
    fromMs: asUint(request.startTime ?? 0, 'startTime'),
    toMs: asUint(request.endTime ?? Number.MAX_SAFE_INTEGER, 'endTime'),
    limit: MAX_LEDGER_UPDATES,
  };
  return readTx(db, async (q) => ledgerUpdateRows(q, await ledgerUpdates(q, user, range), gateway.markets()));
};

/** Deposits and withdrawals as this wire writes them, in their order. */
export async function ledgerUpdateRows(
  q: Queryable,
  updates: readonly LedgerUpdate[],
  markets: readonly Market[],
): Promise<object[]> {
  const tokens = new Map(tokensOf(markets).map((token) => [token.address, token]));
  const rows: object[] = [];
  for (const update of updates) {
    const token = tokens.get(update.token);
    // The ledger books no token that no listed pair trades.
    if (token !== undefined) rows.push(await rowOf(q, { token, update, markets }));
  }
  return rows;
}

interface Context {
  token: Token;
  update: LedgerUpdate;
  markets: readonly Market[];
}

async function rowOf(q: Queryable, { token, update, markets }: Context): Promise<object> {
  const { timeMs: time, txHash: hash } = update;
  const isDeposit = update.kind === 'deposited';
  const amount = withPoint(formatUnits(update.amountUnits, token.decimals));
  if (token.symbol === NAMED) {
    const delta = isDeposit
      ? { type: 'deposit', usdc: amount }
      : { type: 'withdraw', usdc: amount, nonce: time, fee: '0.0' };
    return { time, hash, delta };
  }
  const [from, to] = isDeposit ? [CHAIN, update.account] : [update.account, CHAIN];
  const delta = {
    ...{ type: 'spotTransfer', token: token.symbol, amount, usdcValue: await valueOf(q, { token, update, markets }) },
    ...{ user: from, destination: to, fee: '0.0', nativeTokenFee: '0.0', nonce: null, feeToken: '' },
  };
  return { time, hash, delta };
}

/** Value of an amount in USDC at the last trade before, rounded down; zero when the token was never traded for USDC. */
async function valueOf(q: Queryable, { token, update, markets }: Context): Promise<string> {
  const market = markets.find(({ base, quote }) => base.address === token.address && quote.symbol === NAMED);
  const candle =
    market && (await lastCandleBefore(q, { market: market.index, interval: '1m', beforeMs: update.timeMs + 1 }));
  if (market === undefined || !candle) return '0.0';
  return withPoint(formatUnits(quoteUnitsFloor(market, candle.closeTicks, update.amountUnits), market.quote.decimals));
}
