import type { Address } from '../../core/types.js';

/** Approvals and suspensions as the operator log tells them. */
export interface OperatorView {
  approved: ReadonlySet<Address>;
  suspended: ReadonlySet<Address>;
}

/** Whom a recovered address acts for, and whether that maker may act. */
export type SignerStanding =
  { kind: 'active'; maker: Address } | { kind: 'suspended' | 'notApproved'; maker: Address } | { kind: 'unknown' };

/**
 * Resolves a recovered address: an approved or suspended maker acts for itself, an address with a row in the ledger is known but
 * not approved, any other is nobody.
 */
export function resolveSigner(
  signer: Address,
  operator: OperatorView,
  hasLedgerRow: (account: Address) => boolean,
): SignerStanding {
  if (operator.suspended.has(signer)) return { kind: 'suspended', maker: signer };
  if (operator.approved.has(signer)) return { kind: 'active', maker: signer };
  return hasLedgerRow(signer) ? { kind: 'notApproved', maker: signer } : { kind: 'unknown' };
}
