/** The partner of a quote and its hash: what may be asked for, and what answers say of them. */
import { z } from 'zod';
import {
  grossUnits,
  hasTerms,
  MOST_PARTNER_BPS,
  NO_HASH,
  partnerUnits,
  type PartnerTerms,
} from '../../core/swap/partner.js';
import type { Part } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';

const HASH = /^0x[0-9a-fA-F]{64}$/;

/** Optional fields of a quote's request; `address` is the schema of its other addresses. */
export const partnerFields = (address: z.ZodType<Address>) => ({
  partner: address.optional(),
  partnerBps: z.int().min(0).max(MOST_PARTNER_BPS).optional(),
  appData: z
    .string()
    .regex(HASH, 'must be a hash: 0x and 64 hex digits')
    .transform((value) => value.toLowerCase() as Hex)
    .optional(),
});

interface Asked {
  partner?: Address | undefined;
  partnerBps?: number | undefined;
  appData?: Hex | undefined;
}

/** Problems with the fields together, by field. */
export function partnerProblems({ partner, partnerBps }: Asked): [field: string, message: string][] {
  if (partner !== undefined && partnerBps === undefined) return [['partnerBps', 'required with partner']];
  if (partner === undefined && partnerBps !== undefined) return [['partner', 'required with partnerBps']];
  return [];
}

/** The terms that a request asks for; the zero hash is none, as on the chain. */
export const termsOf = ({ partner = undefined, partnerBps = 0, appData = undefined }: Asked): PartnerTerms => ({
  partner: partner ?? null,
  partnerBps,
  appData: appData === undefined || appData === NO_HASH ? null : appData,
});

/** Throws 400 for terms that the settler of this deployment does not know, as one that is older than they are. */
export async function refuseUnpayable({ marketData }: Pick<SwapDeps, 'marketData'>, asked: Asked): Promise<void> {
  if (hasTerms(termsOf(asked)) && !(await marketData.canPayPartners()))
    throw badRequest("partner, appData: this deployment's settler fills no orders with them");
}

/** Throws 400 for a part above the operator's limit. */
export function checkPartnerBps(
  { partnerMaxBps = 0 }: Pick<SwapDeps, 'partnerMaxBps'>,
  { partnerBps = 0 }: Asked,
): void {
  if (partnerBps <= partnerMaxBps) return;
  throw badRequest(
    partnerMaxBps === 0
      ? 'partnerBps: this service pays no partners'
      : `partnerBps: must be 0 to ${partnerMaxBps}, the most that this service pays a partner`,
  );
}

/** What a quote says of its partner and hash, each only where there is one: what the partner gets by the route, or of a limit order at its limit. */
export function partnerAnswer(quote: SwapQuote, parts: readonly Part[]) {
  const { partner, partnerBps: bps, appData, isLimit, minBuyUnits, buyToken: token } = quote;
  const gross = isLimit ? grossUnits(minBuyUnits, quote) : parts.reduce((sum, { outUnits }) => sum + outUnits, 0n);
  const amount = partnerUnits(gross, quote).toString();
  return {
    ...(partner === null ? {} : { partnerFee: { partner, bps, amount, token } }),
    ...(appData === null ? {} : { appData }),
  };
}

/** What an order says of them; `paidUnits` is what the partner got. */
export const partnerOf = ({ partner, partnerBps, appData }: PartnerTerms, paidUnits: bigint | null) => ({
  ...(partner === null ? {} : { partner, partnerBps, partnerFeeAmount: paidUnits?.toString() ?? null }),
  ...(appData === null ? {} : { appData }),
});
