/** A process of the role gateway, as far as it serves: its roles are not started. */
import type { Config } from '../../../cli/config.js';
import type { RoleContext } from '../../../cli/roles/context.js';
import { NO_HINTS } from '../../../ledger/db/hints.js';
import type { Db } from '../../../ledger/types.js';
import type { Door } from '../../../server/door.js';

const contract = `0x${'1'.repeat(40)}`;

/** What serving reads asks of a process; its roles are not started here. */
export function processOf(
  db: Db,
  door: Door,
  seen: { url: string | null; warned?: string[] },
  settings: Partial<Config> = {},
): RoleContext<Config> {
  const manifest = {
    chainId: 8453,
    deploymentId: '00aa',
    deploymentBlock: 1,
    accounts: [],
    contracts: { custodian: contract, curveBook: contract, entrypoint: contract, orderSettler: null },
  };
  const config = {
    ORDER_SOURCES: ['a', 'b'],
    ORDER_FAILURES_PER_MINUTE: 50,
    READ_REQUESTS_PER_MINUTE: 1_000,
    POLL_INTERVAL_MS: 50,
    REFERENCE_PRICES: {},
    swap: null,
    TRUST_PROXY: false,
    signatureChainIds: null,
    rpcUrls: ['http://127.0.0.1:9'],
    manifest,
    ...settings,
  } as unknown as Config;
  const logger = {
    info: (fields: { url?: string }) => (seen.url = fields.url ?? seen.url),
    isLevelEnabled: () => false,
    debug: () => undefined,
    warn: (_: object, message: string) => void seen.warned?.push(message),
    error: () => undefined,
  } as unknown as RoleContext['logger'];
  const context = {
    config,
    doors: { http: door, ops: door },
    db,
    logger,
    markets: [],
    writers: new Map(),
    hints: NO_HINTS,
    minOrderUnits: () => 0n,
    monotonicMs: () => performance.now(),
    nowMs: () => Date.now(),
  };
  return { ...context, keepers: { signers: [], poster: null } } as unknown as RoleContext<Config>;
}
