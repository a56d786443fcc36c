import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';
import { formatUnits } from '../../../core/amounts.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { readBalances } from '../../../ledger/chain/ledger-log.js';
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

/** Requests are not counted per account here: nothing is used up, and the cap is out of reach. */
export const userRateLimit: InfoHandler = (request) => {
  asAddress(request.user, 'user');
  return { cumVlm: '0.0', nRequestsUsed: 0, nRequestsCap: Number.MAX_SAFE_INTEGER, nRequestsSurplus: 0 };
};
