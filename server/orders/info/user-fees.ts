import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

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
