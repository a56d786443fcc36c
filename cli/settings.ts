/** What the environment may say, setting by setting. */
import { z } from 'zod';
import { DEFAULT_MIN_ORDER_VALUES, OTHER_MIN_ORDER_VALUE } from '../core/min-order.js';
import { address, coin, digitsToInt, httpUrl, integer, privateKey, wholeNumber, wsUrl } from './fields.js';
import { swapSettings } from './swap-settings.js';

/** What one process may do. On SQLite one process plays all of them. */
export const ROLES = ['watcher', 'gateway', 'poster', 'settler', 'executor'] as const;
export type Role = (typeof ROLES)[number];

/** A token as settings name it: its symbol, or its address, which is the same in any case. */
const tokenName = (name: string): string => (/^0x[0-9a-fA-F]{40}$/.test(name) ? name.toLowerCase() : name);

/** An endpoint by what it is asked at, however it is written; what is no URL is complained of already. */
const sameUrl = (url: string): string => (URL.canParse(url) ? new URL(url).href : url);

const flag = (byDefault: 'true' | 'false') =>
  z
    .enum(['true', 'false'])
    .default(byDefault)
    .transform((value) => value === 'true');

/** Every setting, read from the environment. Absent means the default; present but invalid stops the start. */
export const settingsSchema = z.object({
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
      'WebSocket endpoints, comma-separated, whose new heads have the watcher look at once; what they tell is not believed; none: it looks when a block is due; default: none, in a sandbox its chain',
    ),
  WAKE: flag('true').describe(
    'look when a block is due or told of, and on PostgreSQL when another process commits; false: only after each pause',
  ),
  ROLES: z
    .string()
    .default(ROLES.join(','))
    .transform((list) => list.split(',').map((role) => role.trim()))
    .pipe(z.array(z.enum(ROLES)).min(1))
    .refine((roles) => new Set(roles).size === roles.length, 'names one twice')
    .describe('comma-separated roles of this process'),
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
  STOP_BELOW_FLOOR: flag('true').describe(
    "take the curves off pairs with a token of which the operator's row is below its floor, or below zero where none is set, by more than 0.01 tokens and 1000000 smallest units (never more than 100 tokens)",
  ),
  POSTER_PRIVATE_KEY: privateKey.optional().describe("signs posts; default: the manifest's poster account"),
  SETTLER_PRIVATE_KEY: privateKey.optional().describe("signs settlements; default: the manifest's settler account"),
  SETTLE_INTERVAL_MS: integer(20, 60_000, 1_000).describe('pause between two rounds of settling withdrawals'),
  SETTLE_BATCH_MAX: integer(1, 200, 50).describe('most settlements in one transaction'),
  EMPTY_SETTLEMENTS_PER_HOUR: integer(0, 100_000, 60).describe('most settlements per hour that raise no claim'),
  CLAIM_INTERVAL_SEC: integer(0, 86_400, 300).describe(
    'time from one settlement of a claim to its next, for requests that are made meanwhile',
  ),
  SMALL_CLAIM_INTERVAL_SEC: integer(0, 86_400, 3_600).describe(
    'the same for requests that raise the claim by a small part of the balance or by nothing; not below CLAIM_INTERVAL_SEC',
  ),
  SMALL_CLAIM_BPS: integer(0, 10_000, 100).describe(
    'share of the balance below which a raise of a claim is small, unless it takes the rest of the balance',
  ),
  RETENTION_HOURS: integer(1, 87_600, 72).describe(
    'age from which rows of the order log are compacted, once no curve that may still be executed was cut from them',
  ),
  REQUIRE_SYNC_REPLICA: z
    .enum(['true', 'false'])
    .default('false')
    .transform((value) => value === 'true')
    .describe('PostgreSQL: promise nothing while no synchronous replica is attached to the database'),
  ARCHIVE_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'folder to which publications with their books, and settlements, are written before they are sent, for the day the database is lost; absent: nowhere',
    ),
  ARCHIVE_REQUIRED: flag('true').describe('post and settle nothing while ARCHIVE_DIR can not be written'),
  CHECKPOINT_INTERVAL_SEC: integer(1, 3_600, 60).describe('time from one checkpoint to the next'),
  POLL_INTERVAL_MS: integer(20, 10_000, 500).describe('pause between two scans of the chain'),
  SCAN_MAX_BLOCKS: integer(1, 2_000, 200).describe('most blocks in one scan'),
  PROVE_BLOCKS: z
    .enum(['events', 'all'])
    .default('events')
    .describe(
      'blocks proven from their receipts: those with events of ours or in doubt, or all whose filter does not exclude our contracts',
    ),
  HALT_ON_SUSPENSE: flag('true').describe(
    'halt when something on-chain is explained by nothing stored; without it quotes and posts go on, and only the claims that it may concern wait',
  ),
  CURVE_TTL_SEC: integer(2, 60, 12).describe('time from the head block to the deadline of a post'),
  TOUCH_BEFORE_SEC: integer(1, 59, 6).describe('an unchanged curve is touched when less than this remains'),
  MAX_KNOTS: z
    .preprocess(digitsToInt, z.union([z.literal(7), z.literal(15), z.literal(31)]))
    .default(31)
    .describe('most knots per side of a posted curve'),
  CURVE_ERROR_MILLI_BPS: integer(0, 1_000_000, 1_600).describe(
    'a side of a curve gets no more knots once its worst error is at most this, in 1/1000 bps',
  ),
  WORD_GAIN_MILLI_BPS: integer(0, 1_000_000, 10).describe(
    'what a further word of a side must take off its mean error, in 1/1000 bps',
  ),
  MAX_CURVE_ERROR_MILLI_BPS: integer(1_000, 1_000_000, 5_000).describe(
    'a side of a curve leaves out its farthest depth while its worst error is above this, in 1/1000 bps',
  ),
  SMALL_CHANGE_ORDERS: integer(0, 1_000_000, 10).describe(
    'a change of a book is small when less than this many least orders of its market came and less went; 0: none is',
  ),
  SMALL_CHANGE_INTERVAL_MS: integer(0, 60_000, 6_000).describe(
    'how long after the newest cut of a curve small changes of its book wait at most',
  ),
  CUT_BEFORE_BLOCK_MS: integer(0, 60_000, 500).describe(
    'how long before the next block is expected a post is out; it is cut earlier by as long as posting took lately',
  ),
  POST_BUDGET_GWEI_PER_HOUR: coin(9, '500000000').describe(
    'most that posting may cost in an hour, in gwei; beyond it nothing is posted; 0 for no limit',
  ),
  ORDER_SOURCES: z
    .string()
    .default('a,b')
    .transform((list) => list.split(',').map((source) => source.trim()))
    .pipe(z.array(z.enum(['a', 'b'])).min(1))
    .describe('accepted source letters of signed actions'),
  METRICS_PORT: wholeNumber(0, 65_535)
    .optional()
    .describe('port of /metrics, and of /live, /ready and /active for machines; absent: not served'),
  READ_REQUESTS_PER_MINUTE: integer(1, 1_000_000, 6_000).describe('requests to /v0 per client address and minute'),
  TRUST_PROXY: flag('false').describe(
    'take the client address from the end of X-Forwarded-For; only behind a proxy, which sets it or adds to it',
  ),
  PUBLIC_URL: httpUrl.optional().describe('base URL as clients see it, for /openapi.json'),
  PUBLIC_RPC_URL: httpUrl
    .optional()
    .describe(
      'JSON-RPC endpoint for clients, served to everybody by /v0/deployment; default: none, in a sandbox its own',
    ),
  EXPLORER_URL: httpUrl.optional().describe('block explorer of the chain, for /v0/deployment'),
  ORDER_FAILURES_PER_MINUTE: integer(1, 1_000_000, 120).describe(
    'signatures per minute and IP address that may name no maker before such ones are refused there; a request counts once more for each 8 KiB',
  ),
  QUERIES_PER_MINUTE: integer(1, 10_000_000, 6_000).describe(
    'queries of the order interface, and WebSocket messages without an action, per minute and IP address; an answer counts once more for each 8 KiB',
  ),
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
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('least level that is logged'),
});

export type Settings = z.output<typeof settingsSchema>;
