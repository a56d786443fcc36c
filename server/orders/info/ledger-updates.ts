import { formatUnits } from '../../../core/amounts.js';
import { openOf } from '../../../core/market-data/intervals.js';
import { quoteUnitsFloor } from '../../../core/market.js';
import type { Address, Market, Token } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { asAddress, asUint } from '../../../core/wire/shape.js';
import { readTx } from '../../../ledger/db/db.js';
import { closesAt } from '../../../ledger/market-data/closes.js';
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

/** Deposits and withdrawals as this wire writes them, in their order. What they are worth is read for all of them together. */
export async function ledgerUpdateRows(
  q: Queryable,
  updates: readonly LedgerUpdate[],
  markets: readonly Market[],
): Promise<object[]> {
  const tokens = new Map(tokensOf(markets).map((token) => [token.address, { token, market: valuing(markets, token) }]));
  const known = updates.flatMap((update): Known[] => {
    const of = tokens.get(update.token);
    // The ledger books no token that no listed pair trades.
    return of === undefined ? [] : [{ ...of, update }];
  });
  const prices = await pricesOf(q, known);
  return known.map((one) => rowOf(one, prices));
}

interface Known {
  token: Token;
  update: LedgerUpdate;
  /** The market whose trades say what the token is worth; none for USDC, and for a token that no pair trades for it. */
  market: Market | undefined;
}

const valuing = (markets: readonly Market[], token: Token): Market | undefined =>
  markets.find(({ base, quote }) => base.address === token.address && quote.symbol === NAMED);

/** Ticks of last trades, by market and minute. */
type Prices = ReadonlyMap<number, ReadonlyMap<number, bigint>>;

/** Prices of trades are kept by minute: a time's is the last one of its minute or of one before. */
const minuteOf = ({ timeMs }: LedgerUpdate): number => openOf('1m', timeMs);

async function pricesOf(q: Queryable, known: readonly Known[]): Promise<Prices> {
  const minutes = new Map<number, Set<number>>();
  for (const { market, update } of known)
    if (market !== undefined) minutes.set(market.index, (minutes.get(market.index) ?? new Set()).add(minuteOf(update)));
  const prices = new Map<number, Map<number, bigint>>();
  for (const [market, own] of minutes) prices.set(market, await closesAt(q, market, [...own]));
  return prices;
}

function rowOf(one: Known, prices: Prices): object {
  const { token, update } = one;
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
    ...{ type: 'spotTransfer', token: token.symbol, amount, usdcValue: valueOf(one, prices) },
    ...{ user: from, destination: to, fee: '0.0', nativeTokenFee: '0.0', nonce: null, feeToken: '' },
  };
  return { time, hash, delta };
}

/** Value of an amount in USDC at the last trade before, rounded down; zero when the token was never traded for USDC. */
function valueOf({ market, update }: Known, prices: Prices): string {
  const ticks = market && prices.get(market.index)?.get(minuteOf(update));
  if (market === undefined || ticks === undefined) return '0.0';
  return withPoint(formatUnits(quoteUnitsFloor(market, ticks, update.amountUnits), market.quote.decimals));
}
