/** Settings that belong to no role alone. Those of one role stand in its folder, and `cli/config.ts` puts all together. */
import { z } from 'zod';
import type { SettlePace } from '../../core/claim-state.js';
import { DEFAULT_MIN_ORDER_VALUES, OTHER_MIN_ORDER_VALUE } from '../../core/min-order.js';
import { ROLE_NAMES } from '../../ledger/roles.js';
import { address, coin, flag, httpUrl, integer, wholeNumber, wsUrl } from './fields.js';
import { EDGE, edgeSettings } from './edge.js';
import { keystoreSettings } from './keystore.js';
import { swapSettings } from './swap.js';

/** A token as settings name it: its symbol, or its address, which is the same in any case. */
const tokenName = (name: string): string => (/^0x[0-9a-fA-F]{40}$/.test(name) ? name.toLowerCase() : name);

/** An endpoint by what it is asked at, however it is written; what is no URL is complained of already. */
const sameUrl = (url: string): string => (URL.canParse(url) ? new URL(url).href : url);

/** In place of roles: a process that only reads. */
export const READER = 'reader';

export const commonSettings = {
  PORT: integer(0, 65_535, 8080).describe('HTTP port of the server; 0 takes a free one'),
  HOST: z.string().min(1).default('127.0.0.1').describe('address the server listens on'),
  DATABASE_URL: z
    .string()
    .regex(/^(sqlite:|postgres(ql)?:\/\/)/, 'must begin with sqlite: or postgres://')
    .default('sqlite:.curvebook/curvebook.sqlite')
    .describe('sqlite:<path> or postgres://…'),
  MANIFEST: z.string().min(1).default('.curvebook/sandbox.json').describe('deployment manifest, a JSON file'),
  RPC_URL: z
    .string()
    .transform((list) => list.split(',').map((url) => url.trim()))
    .pipe(z.array(httpUrl).min(1))
    // One that is named twice would be a majority by itself.
    .refine((urls) => new Set(urls.map(sameUrl)).size === urls.length, 'names one twice')
    .optional()
    .describe('JSON-RPC endpoints, comma-separated, the preferred one first; default: rpcUrl of the manifest'),
  HEADS_URL: z
    .string()
    .transform((list) => (list === 'none' ? [] : list.split(',').map((url) => url.trim())))
    .pipe(z.array(wsUrl))
    .optional()
    .describe(
      'WebSocket endpoints, comma-separated, whose new heads make the watcher scan at once; heads are hints and not trusted; none: it scans when a block is due; default: none, in a sandbox its chain',
    ),
  WAKE: flag('true').describe(
    'scan when a block is due or announced, and on PostgreSQL read when another process commits; false: only poll',
  ),
  ROLES: z
    .string()
    .default(ROLE_NAMES.join(','))
    .transform((list) => list.split(',').map((role) => role.trim()))
    .pipe(z.array(z.enum([...ROLE_NAMES, READER, EDGE])).min(1))
    .refine((roles) => new Set(roles).size === roles.length, 'names one twice')
    .refine((roles) => !roles.includes(READER) || roles.length === 1, 'reader stands alone: it writes nothing')
    .refine((roles) => !roles.includes(EDGE) || roles.length === 1, 'edge stands alone: it writes nothing')
    .describe(
      'comma-separated roles of this process; or reader, which serves reads from a database that it never writes; or edge, which also hands actions over to the gateway',
    ),
  READER_MAX_LAG_MS: integer(1_000, 3_600_000, 10_000).describe(
    'reader, edge: how far its replica may be behind the primary before it refuses everything',
  ),
  OPERATOR_ADDRESS: address.optional().describe("ledger row of the operator's residual; default: the manifest's owner"),
  OPERATOR_FLOORS: z
    .string()
    .default('')
    .transform((list) => list.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])))
    .pipe(z.array(z.string().regex(/^[^=\s]+=-?\d{1,60}(\.\d{1,36})?$/, 'must be <TOKEN>=<amount>')))
    .transform((items) => items.map((item) => item.split('=') as [string, string]))
    .transform((floors) => floors.map(([name, floor]) => [tokenName(name), floor] as const))
    .refine((floors) => new Set(floors.map(([name]) => name)).size === floors.length, 'names one twice')
    .transform((floors) => Object.fromEntries(floors))
    .describe(
      "least that the operator's row should have, as <SYMBOL or address>=<amount>,…; an amount may be negative; others may owe 1000 of their smallest units, the dust of rounding",
    ),
  CLAIM_INTERVAL_SEC: integer(0, 86_400, 300).describe(
    'time from one settlement of a claim to its next, for requests that are made meanwhile',
  ),
  SMALL_CLAIM_INTERVAL_SEC: integer(0, 86_400, 3_600).describe(
    'the same for requests that raise the claim by a small part of the balance or by nothing; not below CLAIM_INTERVAL_SEC',
  ),
  SMALL_CLAIM_BPS: integer(0, 10_000, 100).describe(
    'share of the balance below which a raise of a claim is small, unless it takes the rest of the balance',
  ),
  REQUIRE_SYNC_REPLICA: flag('false').describe(
    'PostgreSQL: not ready while no synchronous replica is attached to the database',
  ),
  ARCHIVE_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'folder to which publications with their books, and settlements, are written before they are sent, so that a lost database can be restored; absent: nowhere',
    ),
  ARCHIVE_REQUIRED: flag('true').describe('post and settle nothing while ARCHIVE_DIR can not be written'),
  POLL_INTERVAL_MS: integer(20, 10_000, 500).describe('pause between two scans of the chain'),
  METRICS_PORT: wholeNumber(0, 65_535)
    .optional()
    .describe('port of /metrics, and of /live, /ready and /active for machines; absent: not served'),
  TRUST_PROXY: flag('false').describe(
    'take the client address from the end of X-Forwarded-For; only behind a proxy, which sets it or adds to it',
  ),
  PUBLIC_RPC_URL: httpUrl
    .optional()
    .describe(
      'JSON-RPC endpoint for clients, served to everybody by /v0/deployment; default: none, in a sandbox its own',
    ),
  EXPLORER_URL: httpUrl.optional().describe('block explorer of the chain, for /v0/deployment'),
  SIGNATURE_CHAIN_IDS: z
    .string()
    .transform((list) => list.split(',').map((id) => id.trim()))
    .pipe(z.array(z.string().regex(/^\d{1,18}$/, 'must be decimal chain ids')).min(1))
    .transform((ids) => ids.map((id) => BigInt(id)))
    .optional()
    .describe(
      'chains that an agent approval may be signed for; default: any in a sandbox, else those of published clients',
    ),
  REFERENCE_PRICES: z
    .string()
    .default('')
    .transform((list) => list.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])))
    .pipe(z.array(z.string().regex(/^[^=]+-[^=]+=\d+(\.\d{1,8})?$/, 'must be <BASE>-<QUOTE>=<price>')))
    .transform((items) => items.map((item) => item.split('=') as [string, string]))
    .refine((prices) => new Set(prices.map(([pair]) => pair)).size === prices.length, 'names one twice')
    .refine((prices) => prices.every(([, price]) => /[1-9]/.test(price)), 'a price must be above zero')
    .transform((prices) => Object.fromEntries(prices))
    .describe('mark prices of markets without a book and without a trade, as <BASE>-<QUOTE>=<price>,…'),
  MIN_ORDER_VALUES: z
    .string()
    .default('')
    .transform((list) => list.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])))
    .pipe(
      z.array(
        z.string().regex(/^[^=\s]+=\d{1,60}(\.\d{1,36})?$/, 'must be <BASE>-<QUOTE>=<amount> or <TOKEN>=<amount>'),
      ),
    )
    .transform((items) => items.map((item) => item.split('=') as [string, string]))
    .transform((values) => values.map(([name, value]) => [tokenName(name), value] as const))
    .refine((values) => new Set(values.map(([name]) => name)).size === values.length, 'names one twice')
    .transform((values) => Object.fromEntries(values))
    .describe(
      `least that an order must be worth, in its quote token, as <BASE>-<QUOTE>=<amount>,… or by quote token as <SYMBOL or address>=<amount>,…; 0 for none; others: ${Object.entries(
        DEFAULT_MIN_ORDER_VALUES,
      )
        .map(([token, value]) => `${value} ${token}`)
        .join(', ')}, ${OTHER_MIN_ORDER_VALUE} of any other token`,
    ),
  FEE_CEILING_GWEI: coin(9, '50').describe('most that a keeper pays per gas, in gwei'),
  LOW_BALANCE_ETHER: coin(18, '0.01').describe('a signer below this balance is reported'),
  ...swapSettings,
  ...edgeSettings,
  ...keystoreSettings,
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('least level that is logged'),
};

export type CommonSettings = z.output<z.ZodObject<typeof commonSettings>>;

/** How soon a claim is settled again. */
export const settlePace = (
  config: Pick<CommonSettings, 'CLAIM_INTERVAL_SEC' | 'SMALL_CLAIM_INTERVAL_SEC' | 'SMALL_CLAIM_BPS'>,
): SettlePace => ({
  intervalMs: config.CLAIM_INTERVAL_SEC * 1_000,
  smallIntervalMs: config.SMALL_CLAIM_INTERVAL_SEC * 1_000,
  smallBps: config.SMALL_CLAIM_BPS,
});
