import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';
import { formatUnits } from '../../../core/amounts.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { costUnits, openUnits } from '../../../core/market-data/positions.js';
import { readBalancesOf } from '../../../ledger/chain/balances.js';
import type { Address, Market, Token } from '../../../core/types.js';
import { takerActivity, volumesByDay } from '../../../ledger/accounts/reads.js';
import { DAY_MS, TAKER_DAYS, periodOf } from '../../../ledger/accounts/tables.js';
import { readTx } from '../../../ledger/db/db.js';
import { readPositionsOf, type MakerPosition } from '../../../ledger/market-data/position-rows.js';
import type { Db } from '../../../ledger/types.js';
import { tokensOf } from './markets.js';

/** Role of an address: `agent` of a maker, `user` for a maker or any account with a ledger row, else `missing`. */
export const userRole: InfoHandler = (request, { gateway }) => {
  const user = asAddress(request.user, 'user');
  const standing = gateway.resolve(user);
  if (standing.kind === 'unknown') return { role: 'missing' };
  return standing.maker === user ? { role: 'user' } : { role: 'agent', data: { user: standing.maker } };
};

/** Live agents of a maker that have a name. */
export const extraAgents: InfoHandler = (request, { gateway }) =>
  gateway
    .agentsOf(asAddress(request.user, 'user'))
    .filter(({ name }) => name !== '')
    .map(({ name, address, validUntilMs }) => ({ name, address, validUntil: validUntilMs }));

/** Ledger balances of an account, one row per served token. */
export const spotClearinghouseState: InfoHandler = async (request, { db, gateway }) => {
  const account = asAddress(request.user, 'user');
  const [state] = await spotStatesOf(db, gateway.markets(), [account]);
  return state;
};

/**
 * Balances of these accounts, one row per served token each; `hold` is what withdrawals have reserved. `entryNtl` is the average cost of
 * the open position from fills, in the quote token of the first market: zero for tokens that were only deposited, and for a quote token.
 */
export async function spotStatesOf(
  db: Db,
  markets: readonly Market[],
  accounts: readonly Address[],
): Promise<{ balances: object[] }[]> {
  const [rows, positions] = await readTx(db, async (q) => [
    Map.groupBy(await readBalancesOf(q, accounts), ({ account }) => account),
    Map.groupBy(await readPositionsOf(q, accounts), ({ maker }) => maker),
  ]);
  return accounts.map((account) => ({
    balances: tokensOf(markets).map((token, index) => {
      const row = rows.get(account)?.find((one) => one.token === token.address);
      return {
        coin: token.symbol,
        token: index,
        total: withPoint(formatUnits(row?.balanceUnits ?? 0n, token.decimals)),
        hold: withPoint(formatUnits(row?.reservedUnits ?? 0n, token.decimals)),
        entryNtl: entryNotional(token, markets, positions.get(account) ?? []),
      };
    }),
  }));
}

/** Cost of the open position in a token, over the markets with the first one's quote token. */
function entryNotional(token: Token, markets: readonly Market[], positions: readonly MakerPosition[]): string {
  const [first] = markets;
  if (first === undefined) return '0.0';
  let units = 0n;
  for (const position of positions) {
    const market = markets[position.market];
    if (market?.base.address !== token.address || market.quote.address !== first.quote.address) continue;
    if (openUnits(position) > 0n) units += costUnits(position);
  }
  return withPoint(formatUnits(units, first.quote.decimals));
}

/** Margin accounts do not exist here; the shape with zeros is what clients expect of an empty one. */
export const clearinghouseState: InfoHandler = (request, { clock }) => {
  asAddress(request.user, 'user');
  const summary = { accountValue: '0.0', totalNtlPos: '0.0', totalRawUsd: '0.0', totalMarginUsed: '0.0' };
  return {
    marginSummary: summary,
    crossMarginSummary: summary,
    crossMaintenanceMarginUsed: '0.0',
    withdrawable: '0.0',
    assetPositions: [],
    time: clock(),
  };
};

/** Days of volumes that are listed, today's among them. */
const VOLUME_DAYS = 15;

/**
 * Maker fees are settled outside the platform, so every rate is zero. Volumes are by day in UTC, oldest first: the account's as maker and
 * as taker, and the total, in markets with the quote token of the first one.
 */
export const userFees: InfoHandler = async (request, { db, gateway, clock }) => {
  const user = asAddress(request.user, 'user');
  return {
    dailyUserVlm: await dailyVolumes(db, gateway.markets(), user, clock()),
    feeSchedule: {
      cross: '0.0',
      add: '0.0',
      spotCross: '0.0',
      spotAdd: '0.0',
      tiers: { vip: [], mm: [] },
      referralDiscount: '0.0',
      stakingDiscountTiers: [],
    },
    userCrossRate: '0.0',
    userAddRate: '0.0',
    userSpotCrossRate: '0.0',
    userSpotAddRate: '0.0',
    activeReferralDiscount: '0.0',
    trial: null,
    feeTrialEscrow: '0.0',
    nextTrialAvailableTimestamp: null,
    stakingLink: null,
    activeStakingDiscount: { bpsOfMaxSupply: '0.0', discount: '0.0' },
  };
};

async function dailyVolumes(db: Db, markets: readonly Market[], user: Address, nowMs: number): Promise<object[]> {
  const [first] = markets;
  if (first === undefined) return [];
  const today = periodOf(TAKER_DAYS, nowMs);
  const span = { fromMs: today - (VOLUME_DAYS - 1) * DAY_MS, toMs: today + DAY_MS };
  const days = await readTx(db, (q) => volumesByDay(q, user, quotedAlike(markets), span));
  const text = (units: bigint | undefined): string => withPoint(formatUnits(units ?? 0n, first.quote.decimals));
  return Array.from({ length: VOLUME_DAYS }, (_, i) => {
    const openMs = span.fromMs + i * DAY_MS;
    const { made, taken, all } = days.get(openMs) ?? {};
    const date = new Date(openMs).toISOString().slice(0, 10);
    return { date, userCross: text(taken), userAdd: text(made), exchange: text(all) };
  });
}

/** Indexes of the markets with the quote token of the first one. */
const quotedAlike = (markets: readonly Market[]): number[] =>
  markets.filter(({ quote }) => quote.address === markets[0]?.quote.address).map(({ index }) => index);

/** Requests are not counted per account: the answer has none used, and a very high cap. The volume is that of the ledger. */
export const userRateLimit: InfoHandler = async (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  return {
    cumVlm: await volumeOf(db, gateway.markets(), user),
    nRequestsUsed: 0,
    nRequestsCap: Number.MAX_SAFE_INTEGER,
    nRequestsSurplus: 0,
  };
};

/** Volume of an account as maker and as taker in markets with the quote token of the first one, in that token. */
async function volumeOf(db: Db, markets: readonly Market[], user: Address): Promise<string> {
  const [first] = markets;
  if (first === undefined) return '0.0';
  const [made, taken] = await readTx(db, async (q) => [
    await readPositionsOf(q, [user]),
    await takerActivity(q, user, { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }),
  ]);
  const counted = quotedAlike(markets);
  const counts = (index: number): boolean => counted.includes(index);
  let units = 0n;
  for (const one of made) if (counts(one.market)) units += one.boughtQuoteUnits + one.soldQuoteUnits;
  for (const { market, total } of taken) if (counts(market)) units += total.bought_quote + total.sold_quote;
  return withPoint(formatUnits(units, first.quote.decimals));
}
