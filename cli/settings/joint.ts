/** Common settings that are fine each by itself and not together. Each role judges its own. */
import { formatUnits } from '../../core/amounts.js';
import { isAffordable } from '../../keepers/chain/fees.js';
import { READER, type CommonSettings } from './common.js';
import { EDGE, edgeProblems, type EdgeSettings } from './edge.js';

const GWEI_DECIMALS = 9;

type Judged = Pick<
  CommonSettings,
  | 'DATABASE_URL'
  | 'REQUIRE_SYNC_REPLICA'
  | 'SWAP_ORDER_TTL_SEC'
  | 'SWAP_QUOTE_TTL_SEC'
  | 'FEE_CEILING_GWEI'
  | 'CLAIM_INTERVAL_SEC'
  | 'SMALL_CLAIM_INTERVAL_SEC'
  | 'ROLES'
  | 'PORT'
  | 'METRICS_PORT'
  | keyof EdgeSettings
>;

/** One line per problem, with the settings that it is about. `senders` are the roles of this process that send transactions. */
export function jointProblems(settings: Judged, senders: readonly string[]): string[] {
  const { FEE_CEILING_GWEI: ceilingWei } = settings;
  const judgements: [isWrong: boolean, problem: string][] = [
    [
      settings.SWAP_ORDER_TTL_SEC < settings.SWAP_QUOTE_TTL_SEC,
      'SWAP_ORDER_TTL_SEC: must not be less than SWAP_QUOTE_TTL_SEC',
    ],
    [
      settings.REQUIRE_SYNC_REPLICA && settings.DATABASE_URL.startsWith('sqlite:'),
      'REQUIRE_SYNC_REPLICA: DATABASE_URL names SQLite, which has no replicas',
    ],
    [
      settings.SMALL_CLAIM_INTERVAL_SEC < settings.CLAIM_INTERVAL_SEC,
      'SMALL_CLAIM_INTERVAL_SEC: must not be less than CLAIM_INTERVAL_SEC, or small requests would be settled sooner than large ones',
    ],
    [
      // 0 takes a free port.
      settings.ROLES.some((role) => ['gateway', READER, EDGE].includes(role)) &&
        settings.PORT !== 0 &&
        settings.PORT === settings.METRICS_PORT,
      'METRICS_PORT: must not be PORT, which the gateway, reader or edge listens on',
    ],
    ...edgeProblems(settings),
    [
      senders.length > 0 && !isAffordable(0n, ceilingWei),
      `FEE_CEILING_GWEI: ${formatUnits(ceilingWei, GWEI_DECIMALS)} pays for no transaction, and the ${senders.join(', ')} must send some`,
    ],
  ];
  return judgements.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
}
