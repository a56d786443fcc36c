import type { Agents } from '../../core/book/agents.js';
import type { Address } from '../../core/types.js';

/** Approvals, suspensions and delistings from the operator log. */
export interface OperatorView {
  approved: ReadonlySet<Address>;
  suspended: ReadonlySet<Address>;
  /** Indexes of markets. */
  delisted: ReadonlySet<number>;
}

/** State by which a recovered address is judged. */
interface SignerView {
  operator: Pick<OperatorView, 'approved' | 'suspended'>;
  agents: Pick<Agents, 'byAddress'>;
  hasLedgerRow: (account: Address) => boolean;
  nowMs: number;
}

/**
 * The maker for which a recovered address acts, and whether that maker may act. `sinceMs` is the time of an agent's approval, 0 for a maker
 * itself: a nonce before it is refused.
 */
export type SignerStanding =
  | { kind: 'active'; maker: Address; sinceMs: number }
  | { kind: 'suspended' | 'notApproved'; maker: Address }
  | { kind: 'unknown' };

/** Standing of an account itself: an approved or suspended maker, an address with a row in the ledger, or unknown. */
export function resolveAccount(account: Address, view: Omit<SignerView, 'agents' | 'nowMs'>): SignerStanding {
  const { operator, hasLedgerRow } = view;
  if (operator.suspended.has(account)) return { kind: 'suspended', maker: account };
  if (operator.approved.has(account)) return { kind: 'active', maker: account, sinceMs: 0 };
  return hasLedgerRow(account) ? { kind: 'notApproved', maker: account } : { kind: 'unknown' };
}

/**
 * Resolves a recovered address: a maker always acts for itself, even if another maker named it an agent; else a live agent acts for its
 * master; else the address acts for itself. In another order a rival could name a maker's address as its agent, and the maker's cancels
 * would act for the rival.
 */
export function resolveSigner(signer: Address, view: SignerView): SignerStanding {
  const account = resolveAccount(signer, view);
  if (account.kind === 'active' || account.kind === 'suspended') return account;
  const agent = view.agents.byAddress(signer);
  if (agent === undefined || agent.validUntilMs <= view.nowMs) return account;
  const master = resolveAccount(agent.master, view);
  return master.kind === 'active' ? { ...master, sinceMs: agent.sinceMs } : master;
}
