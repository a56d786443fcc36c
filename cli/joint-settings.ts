/** Settings that are fine each by itself and not together. */
import { formatUnits } from '../core/amounts.js';
import { isAffordable } from '../keepers/chain/fees.js';
import { MAX_LEDGER_AGE_MS } from '../keepers/watcher/status.js';
import type { Settings } from './settings.js';

/** Roles that send transactions. */
const SENDERS = ['poster', 'settler', 'executor'] as const;
/** Least that any post costs: one market, a word per side. */
const LEAST_POST_GAS = 60_000n;
const GWEI_DECIMALS = 9;

type Judged = Pick<
  Settings,
  | 'ROLES'
  | 'DATABASE_URL'
  | 'REQUIRE_SYNC_REPLICA'
  | 'SWAP_ORDER_TTL_SEC'
  | 'SWAP_QUOTE_TTL_SEC'
  | 'TOUCH_BEFORE_SEC'
  | 'CURVE_TTL_SEC'
  | 'CUT_BEFORE_BLOCK_MS'
  | 'POLL_INTERVAL_MS'
  | 'FEE_CEILING_GWEI'
  | 'POST_BUDGET_GWEI_PER_HOUR'
>;

/** One line per problem, with the settings that it is about; those that only other roles use are not judged. */
export function jointProblems(settings: Judged): string[] {
  const { ROLES: roles, FEE_CEILING_GWEI: ceilingWei, POST_BUDGET_GWEI_PER_HOUR: budgetWei } = settings;
  const ttlMs = settings.CURVE_TTL_SEC * 1_000;
  const gwei = (wei: bigint): string => formatUnits(wei, GWEI_DECIMALS);
  const leastPostWei = LEAST_POST_GAS * ceilingWei;
  const sending = SENDERS.filter((role) => roles.includes(role));
  const judgements: [isWrong: boolean, problem: string][] = [
    [
      settings.SWAP_ORDER_TTL_SEC < settings.SWAP_QUOTE_TTL_SEC,
      'SWAP_ORDER_TTL_SEC: must not be less than SWAP_QUOTE_TTL_SEC',
    ],
    [
      settings.REQUIRE_SYNC_REPLICA && settings.DATABASE_URL.startsWith('sqlite:'),
      'REQUIRE_SYNC_REPLICA: DATABASE_URL names SQLite, which has no replicas',
    ],
    [settings.TOUCH_BEFORE_SEC >= settings.CURVE_TTL_SEC, 'TOUCH_BEFORE_SEC: must be less than CURVE_TTL_SEC'],
    [
      settings.CUT_BEFORE_BLOCK_MS >= ttlMs,
      'CUT_BEFORE_BLOCK_MS: must be less than CURVE_TTL_SEC, and should be less than the time between two blocks',
    ],
    [
      roles.includes('watcher') && settings.POLL_INTERVAL_MS >= MAX_LEDGER_AGE_MS,
      `POLL_INTERVAL_MS: must be less than ${MAX_LEDGER_AGE_MS}, the age at which the ledger is stale`,
    ],
    [
      sending.length > 0 && !isAffordable(0n, ceilingWei),
      `FEE_CEILING_GWEI: ${gwei(ceilingWei)} pays for no transaction, and the ${sending.join(', ')} must send some`,
    ],
    [
      roles.includes('poster') && budgetWei > 0n && budgetWei < leastPostWei,
      `POST_BUDGET_GWEI_PER_HOUR: ${gwei(budgetWei)} does not pay for one post of ${LEAST_POST_GAS} gas at FEE_CEILING_GWEI ` +
        `(${gwei(leastPostWei)}); raise it, or lower the ceiling`,
    ],
  ];
  return judgements.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
}
