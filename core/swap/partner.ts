/**
 * What an order may give a partner of what it buys, and a hash that is stored with it. Both are signed. The settler sends the partner its part
 * of all that an order brings of the buy token, so the amounts of routes are gross, and those of quotes and orders net: what the receiver gets.
 */
import { BPS } from '../amounts.js';
import type { Address, Hex } from '../types.js';

/** What the settler enforces, whatever is signed. */
export const MOST_PARTNER_BPS = 1_000;

/** On the chain, for none. */
export const NO_HASH: Hex = `0x${'0'.repeat(64)}`;

export interface PartnerTerms {
  /** Null for none. */
  partner: Address | null;
  /** Ten-thousandths of what is bought; zero without a partner. */
  partnerBps: number;
  /** Any 32 bytes; null for none. */
  appData: Hex | null;
}

export const NO_PARTNER: PartnerTerms = { partner: null, partnerBps: 0, appData: null };

/** Whether an order has terms to sign beside the others, which makes it another kind of order for the settler. */
export const hasTerms = ({ partner, appData }: PartnerTerms): boolean => partner !== null || appData !== null;

/** The partner's part of `grossUnits`, rounded down as the settler does. */
export const partnerUnits = (grossUnits: bigint, { partnerBps }: Pick<PartnerTerms, 'partnerBps'>): bigint =>
  (grossUnits * BigInt(partnerBps)) / BPS;

/** What the receiver gets of `grossUnits`. */
export const netUnits = (grossUnits: bigint, terms: Pick<PartnerTerms, 'partnerBps'>): bigint =>
  grossUnits - partnerUnits(grossUnits, terms);

/** The least that has to be bought so that the receiver gets `net`, which is above zero; it then gets just that. */
export const grossUnits = (net: bigint, { partnerBps }: Pick<PartnerTerms, 'partnerBps'>): bigint =>
  ((net - 1n) * BPS) / (BPS - BigInt(partnerBps)) + 1n;
