import type { Answer } from '../../../sdk/src/index.js';
import type { Loadable } from '../loadable.js';
import { AGENT_NAME } from './agent.js';

export type Account = Answer<'/v0/makers/{maker}/account'>;
export type Limits = Answer<'/v0/makers/{maker}/limits'>;
export type Withdrawals = Answer<'/v0/makers/{maker}/withdrawals'>;

export interface MakerFacts {
  account: Loadable<Account>;
  limits: Loadable<Limits>;
  withdrawals: Loadable<Withdrawals>;
  /** Base units that the custodian may take, by the address of the token. */
  allowances: Loadable<ReadonlyMap<string, bigint>>;
}

/** A step of becoming a maker. `isDone` is null while it is not known. */
interface Step {
  name: 'Approved' | 'Allowance' | 'Deposited' | 'Credited' | 'Agent' | 'Scheduled cancel';
  isDone: boolean | null;
  /** What to do, or what it is good for. */
  text: string;
}

/**
 * The steps to a first quote, each done when its condition holds. An allowance that a deposit used up counts as one that was given; an agent is that of
 * this tab (`isAgent`), since no other one's key is here.
 */
export function stepsOf(
  { account, limits, withdrawals, allowances }: { [K in keyof MakerFacts]: Pick<MakerFacts[K], 'data'> },
  isOwnSigner: boolean,
  isAgent: boolean | null,
): Step[] {
  const deposited = withdrawals.data?.events.some(({ event }) => event === 'deposited') ?? null;
  const allowed = allowances.data === null ? null : [...allowances.data.values()].some((units) => units > 0n);
  const credited = limits.data?.ledger.balances.some(
    ({ balance }) => /[1-9]/.test(balance) && !balance.startsWith('-'),
  );
  const approval = account.data?.approval ?? null;
  const isTaken = isAgent === false && (account.data?.agents.some(({ name }) => name === AGENT_NAME) ?? false);
  return [
    {
      name: 'Approved',
      isDone: approval === null ? null : approval === 'approved',
      text:
        approval === 'suspended'
          ? 'The operator has suspended this maker: cancels and withdrawals work, new orders do not.'
          : 'The operator lets this address quote.',
    },
    {
      name: 'Allowance',
      isDone: deposited === true ? true : allowed,
      text: 'The custodian may take exactly what is deposited: it is asked for with the deposit.',
    },
    { name: 'Deposited', isDone: deposited, text: 'Tokens are in the custodian.' },
    { name: 'Credited', isDone: credited ?? null, text: 'The ledger has seen the deposit: orders can lean on it.' },
    {
      name: 'Agent',
      isDone: isAgent,
      text: [
        isOwnSigner
          ? 'Another key that may sign orders for this maker, and never withdraws. Optional here.'
          : 'Browser wallets do not sign orders: a key of this page does, which never withdraws.',
        ...(isTaken ? ['The one of another tab, or of one that was closed, is not here: a new one replaces it.'] : []),
      ].join(' '),
    },
    {
      name: 'Scheduled cancel',
      isDone: account.data === null ? null : account.data.scheduled_cancel_ms !== null,
      text: 'All orders close at a time unless it is moved on: for quotes that nobody watches any more.',
    },
  ];
}
