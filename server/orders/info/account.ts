import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';
import { formatUnits } from '../../../core/amounts.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { readBalances } from '../../../ledger/chain/ledger-log.js';
import type { Address, Market } from '../../../core/types.js';
import { takerActivity } from '../../../ledger/accounts/reads.js';
import { readTx } from '../../../ledger/db/db.js';
import { readPositionsOf } from '../../../ledger/market-data/position-rows.js';
import type { Db } from '../../../ledger/types.js';
import { tokensOf } from './markets.js';

/** What an address is here: `agent` of a maker, `user` for a maker or anybody with a ledger row, else `missing`. */
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

/** Maker fees are settled outside the platform, so every rate is zero. */
export const userFees: InfoHandler = (request) => {
  asAddress(request.user, 'user');
  return {
    dailyUserVlm: [],
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

/** Requests are not counted per account here: nothing is used up, and the cap is out of reach. The volume is what the ledger knows. */
export const userRateLimit: InfoHandler = async (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  return {
    cumVlm: await volumeOf(db, gateway.markets(), user),
    nRequestsUsed: 0,
    nRequestsCap: Number.MAX_SAFE_INTEGER,
    nRequestsSurplus: 0,
  };
};

/** What an account made and took in markets with the quote token of the first one, in that token. */
async function volumeOf(db: Db, markets: readonly Market[], user: Address): Promise<string> {
  const [first] = markets;
  if (first === undefined) return '0.0';
  const [made, taken] = await readTx(db, async (q) => [
    await readPositionsOf(q, [user]),
    await takerActivity(q, user, { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }),
  ]);
  const counts = (index: number): boolean => markets[index]?.quote.address === first.quote.address;
  let units = 0n;
  for (const one of made) if (counts(one.market)) units += one.boughtQuoteUnits + one.soldQuoteUnits;
  for (const { market, total } of taken) if (counts(market)) units += total.bought_quote + total.sold_quote;
  return withPoint(formatUnits(units, first.quote.decimals));
}
