import type { Address } from '../../core/types.js';
import type { AccountFacts } from '../read/deps.js';
import type { Gateway } from './engine.js';

/** The gateway's present facts about an account. */
export function accountFacts(
  gateway: Pick<Gateway, 'resolve' | 'agentsOf' | 'book'>,
  clock: () => number,
): (account: Address) => AccountFacts {
  return (account) => {
    const standing = gateway.resolve(account);
    const isSelf = standing.kind === 'unknown' || standing.maker === account;
    const book = gateway.book();
    return {
      approval: !isSelf ? 'none' : APPROVALS[standing.kind],
      actsFor: isSelf ? null : standing.maker,
      agents: gateway.agentsOf(account).map(({ address, name, validUntilMs }) => ({ address, name, validUntilMs })),
      scheduledCancelMs: book.armed().get(account) ?? null,
      scheduledCancelsToday: book.triggers(account, clock()),
      openOrders: book.openCount(account),
    };
  };
}

const APPROVALS = { active: 'approved', suspended: 'suspended', notApproved: 'none', unknown: 'none' } as const;
