/** A partner's part of a gasless order, and a hash that goes with it. */
import { MOST_PARTNER_BPS, NO_HASH, type PartnerTerms } from '../../core/swap/partner.js';
import type { Hex } from '../../core/types.js';
import { CurvebookError } from './errors.js';
import { asAddress } from './wallet.js';

/** What a gasless order may give a partner, and a hash that goes with it; both are signed. */
export interface Partnered {
  /** Gets this part of what is bought, in bps of it; all amounts of the swap are beside it. */
  partner?: { address: string; bps: number };
  /** 32 bytes as hex, which the service and the chain only repeat. */
  appData?: string;
}

/** The terms to sign. Throws CurvebookError `BAD_ARGUMENT`. */
export function termsOf({ partner, appData }: Partnered): PartnerTerms {
  const refuse = (what: string): never => {
    throw new CurvebookError('BAD_ARGUMENT', what);
  };
  const hash = appData?.toLowerCase() ?? NO_HASH;
  if (!/^0x[0-9a-f]{64}$/.test(hash)) refuse('appData is 32 bytes as hex');
  const bps = partner?.bps ?? 0;
  if (!Number.isInteger(bps) || bps < 0 || bps > MOST_PARTNER_BPS)
    refuse(`partner.bps is a whole number from 0 to ${MOST_PARTNER_BPS}`);
  return {
    partner: partner === undefined ? null : asAddress(partner.address),
    partnerBps: bps,
    appData: hash === NO_HASH ? null : (hash as Hex),
  };
}

/** The same as a quote asks for them. */
export const askedOf = ({ partner, partnerBps, appData }: PartnerTerms): object => ({
  ...(partner === null ? {} : { partner, partnerBps }),
  ...(appData === null ? {} : { appData }),
});
