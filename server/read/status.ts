import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import { unitsToSize } from '../../core/market.js';
import type { Market, Token } from '../../core/types.js';
import type { CurveFacts, PlatformFacts } from '../../ledger/views/platform.js';
import { ROLE_NAMES } from '../../ledger/roles.js';
import { COST_ROLES } from '../../ledger/transactions/costs.js';
import type { LogName, TokenFinding } from '../../ledger/types.js';
import type { ReadDeps } from './deps.js';
import { lostSchema, lostBody } from './lost.js';
import { sendText } from '../rendered.js';
import { servedTokens, watcherBody, watcherSchema } from './limits.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema, signedDecimalSchema } from './schemas.js';

/** How long the durable facts of one answer are shared, so that requests for this page can't keep the database busy. */
export const STATUS_MAX_AGE_MS = 1_000;

const timeSchema = integerSchema.nullable();

/** The newest curve of a market. */
export const curveRowSchema = z.strictObject({
  pair: pairSchema,
  /** `live`: a taker can execute it; `expired`: its deadline has passed, quotes are zero; `none`: nothing was ever posted. */
  state: z.enum(['live', 'expired', 'none']),
  /** The newest curve that a scanned block has, and when it stops being executable, in chain time. */
  curve_seq: integerSchema.nullable(),
  deadline_sec: integerSchema.nullable(),
  block_number: integerSchema.nullable(),
  /** Base that was consumed of each side as of the scanned block: what swaps took since its snapshot, and what its post raised. Null before the first curve. */
  consumed_ask: decimalSchema.nullable(),
  consumed_bid: decimalSchema.nullable(),
  /** Highest number that was prepared; above curve_seq while a post is under way. */
  prepared_seq: integerSchema,
  fill_seq: integerSchema,
});

const keeperSchema = z.strictObject({
  role: z.enum(ROLE_NAMES),
  /** A process holds the log that this role writes. Null from a reader, whose database does not know. */
  running: z.boolean().nullable(),
  /** When it last made something durable: an order, a scan that found a block, a curve, a checkpoint, an attempt or the end of a signed order. Null if never. */
  last_act_ms: timeSchema,
  /** Withdrawals that wait for the settler, gasless orders that wait for the executor; zero for the others. */
  waiting: integerSchema,
  /** Of a role that sends transactions. */
  gas: z
    .strictObject({
      /** The key that it was started with last; null before the first start. */
      signer: addressSchema.nullable(),
      /** What transactions cost whose receipts came within the last hour, and the most that posts may cost in one, null for no limit; in the chain's native token. */
      spent_last_hour: decimalSchema,
      budget_per_hour: decimalSchema.nullable(),
    })
    .nullable(),
});

const revertRowSchema = z.strictObject({
  hash: hashSchema,
  block_number: integerSchema,
  time_ms: integerSchema,
  /** The contract's error, as an endpoint said when it ran the call again at the end of that block; null where it said none. */
  reason: z.string().nullable(),
});

export const statusSchema = z
  .strictObject({
    version: z.string(),
    chain_id: integerSchema,
    deployment_id: z.string(),
    /** When the facts below were read; they are at most a second old. Readiness and the halt are those of now. */
    time_ms: integerSchema,
    ready: z.boolean(),
    reason: z.string().nullable(),
    halt: z.strictObject({ code: z.string(), message: z.string(), by_operator: z.boolean() }).nullable(),
    ledger: z.strictObject({
      generation: integerSchema,
      block_number: integerSchema.nullable(),
      block_hash: hashSchema.nullable(),
      /** Since the newest successful scan, also one that found no new block. Null before the first, like the head's. */
      scan_age_ms: timeSchema,
      head_age_ms: timeSchema,
      /** How far the database that a reader reads may be behind its primary; null in any other process, and while it is unknown. */
      replica_lag_ms: timeSchema,
      /** The vault's balance of each token as of the scanned block, the part that belongs to no account, and the part in suspense. */
      holdings: z.array(
        z.strictObject({
          token: z.string(),
          held: decimalSchema,
          unattributed: signedDecimalSchema,
          suspense: signedDecimalSchema,
        }),
      ),
      /** Fills, settlements and payouts that nothing stored explains, and that wait for the operator. */
      suspense: z.strictObject({ fills: integerSchema, settlements: integerSchema, executions: integerSchema }),
    }),
    watcher: watcherSchema,
    /** Findings about tokens: `quarantined` stops the token's markets, `doubt` stops nothing. */
    tokens: z.array(
      z.strictObject({
        token: z.string(),
        address: addressSchema,
        state: z.enum(['doubt', 'quarantined']),
        code: z.string(),
        message: z.string(),
        since_ms: integerSchema,
        block_number: integerSchema,
        pairs: z.array(pairSchema),
      }),
    ),
    curves: z.array(curveRowSchema),
    keepers: z.array(keeperSchema),
    /** Per signer, what is signed and not mined as far as its keeper knows, and what mined transactions cost. */
    transactions: z.array(
      z.strictObject({
        signer: addressSchema,
        /** Whose transactions it signs; null before one was mined. */
        role: z.enum(COST_ROLES).nullable(),
        unmined: integerSchema,
        oldest_sent_ms: integerSchema.nullable(),
        /** In the chain's native token: with the signer's balance it tells for how many hours that lasts. */
        spent_last_hour: decimalSchema,
        /** Its newest transaction that was mined and reverted; null for none. */
        last_revert: revertRowSchema.nullable(),
      }),
    ),
    checkpoint: z
      .strictObject({ seq: integerSchema, generation: integerSchema, timestamp_ms: integerSchema })
      .nullable(),
    /** What the newest reorganisation of the chain removed, with the fills of which makers had been notified; null when there was none. */
    last_reversal: lostSchema.nullable(),
  })
  .meta({ id: 'Status' });

export type StatusBody = z.infer<typeof statusSchema>;
type Lost = StatusBody['last_reversal'];
type Read = { timeMs: number; facts: PlatformFacts; running: (log: LogName) => boolean | null; lost: Lost };

/**
 * GET /v0/status: state of ledger, curves and keepers, whether or not the platform is ready. What a reversal took back may be thousands of
 * notifications, so that its text is shared by all answers of one read.
 */
export function statusHandler(read: () => Promise<StatusBody>): RouterMiddleware {
  let written: { lost: Lost; text: string } = { lost: null, text: 'null' };
  return async (ctx) => {
    const { last_reversal: lost, ...rest } = await read();
    if (written.lost !== lost) written = { lost, text: JSON.stringify(lost) };
    sendText(ctx, `${JSON.stringify(rest).slice(0, -1)},"last_reversal":${written.text}}`);
  };
}

/** Reads the status; its durable part is read at most once per second and shared. */
export function statusReader(deps: ReadDeps): () => Promise<StatusBody> {
  const read = sharedFor(STATUS_MAX_AGE_MS, deps.nowMs, async (): Promise<Read> => {
    const timeMs = deps.nowMs();
    const { facts, held } = await deps.store.platform(timeMs);
    const logs = deps.replicaLagMs === null ? (held ?? deps.ownLogs()) : null;
    const lost = facts.reversal === null ? null : lostBody(facts.reversal, marketsOf(facts));
    return { timeMs, facts, running: (log) => logs?.has(log) ?? null, lost };
  });
  return async () => {
    const { timeMs, facts, running, lost } = await read();
    const { ready, reason } = deps.readiness();
    const halt = deps.halt();
    return {
      version: deps.version,
      chain_id: deps.chainId,
      deployment_id: deps.deploymentId,
      time_ms: timeMs,
      ready,
      reason,
      halt: halt === null ? null : { code: halt.code, message: halt.message, by_operator: halt.byOperator },
      ledger: {
        ...ledgerBody(facts, deps.watcher().lastScanMs, deps.nowMs()),
        replica_lag_ms: deps.replicaLagMs?.() ?? null,
      },
      watcher: watcherBody(deps.watcher()),
      tokens: tokensBody(deps.findings(), deps.markets()),
      curves: facts.curves.map((curve) => curveBody(curve, facts)),
      keepers: keepersBody(deps.roles, facts, running),
      transactions: transactionsBody(facts),
      checkpoint: checkpointBody(facts),
      last_reversal: lost,
    };
  };
}

/** A result of `read` that is at most `maxAgeMs` old; a read in progress is shared, and a failed one is not kept. */
export function sharedFor<T>(maxAgeMs: number, nowMs: () => number, read: () => Promise<T>): () => Promise<T> {
  let shared: { startedMs: number; value: Promise<T> } | null = null;
  return () => {
    const startedMs = nowMs();
    // Compares both ways, so that a clock that is set back does not keep an answer too long.
    if (shared !== null && Math.abs(startedMs - shared.startedMs) < maxAgeMs) return shared.value;
    const mine = { startedMs, value: read() };
    shared = mine;
    mine.value.catch(() => {
      if (shared === mine) shared = null;
    });
    return mine.value;
  };
}

const marketsOf = (facts: PlatformFacts): Market[] => facts.curves.map(({ market }) => market);

function ledgerBody(
  { generation, curves, holdings, suspense }: PlatformFacts,
  lastScanMs: number | null,
  nowMs: number,
): Omit<StatusBody['ledger'], 'replica_lag_ms'> {
  const age = (ms: number | undefined): number | null => (ms === undefined ? null : Math.max(nowMs - ms, 0));
  const tokens = new Map<string, Token>(
    servedTokens(curves.map(({ market }) => market)).map((one) => [one.address, one]),
  );
  return {
    generation: generation?.generation ?? 0,
    block_number: generation?.toBlock ?? null,
    block_hash: generation?.blockHash ?? null,
    scan_age_ms: age(lastScanMs ?? undefined),
    head_age_ms: age(generation?.observedHeadTimestampMs),
    holdings: holdings.flatMap(({ token: address, heldUnits, unattributedUnits, suspenseUnits }) => {
      const token = tokens.get(address);
      if (token === undefined) return [];
      const units = (amount: bigint): string => formatUnits(amount, token.decimals);
      const held = { token: token.symbol, held: units(heldUnits), unattributed: units(unattributedUnits) };
      return [{ ...held, suspense: units(suspenseUnits) }];
    }),
    suspense: {
      fills: suspense.items.fill,
      settlements: suspense.items.settlement,
      executions: suspense.items.execution,
    },
  };
}

function tokensBody(findings: readonly TokenFinding[], markets: readonly Market[]): StatusBody['tokens'] {
  const names = new Map(servedTokens(markets).map(({ address, symbol }) => [address, symbol]));
  return findings.flatMap(({ token, state, code, message, timeMs, blockNumber }) => {
    if (state === 'clear') return [];
    const pairs = markets.filter(({ base, quote }) => base.address === token || quote.address === token);
    return [
      {
        token: names.get(token) ?? token,
        address: token,
        state,
        code,
        message,
        since_ms: timeMs,
        block_number: blockNumber,
        pairs: pairs.map(({ pair }) => pair),
      },
    ];
  });
}

function curveBody({ market, landed, consumed, preparedSeq, fillSeq }: CurveFacts, { generation }: PlatformFacts) {
  const headSec = (generation?.blockTimestampMs ?? 0) / 1_000;
  const alive = landed !== null && landed.deadlineSec > headSec;
  return {
    pair: market.pair,
    state: landed === null ? ('none' as const) : alive ? ('live' as const) : ('expired' as const),
    curve_seq: landed?.seq ?? null,
    deadline_sec: landed?.deadlineSec ?? null,
    block_number: landed?.blockNumber ?? null,
    consumed_ask: consumed === null ? null : unitsToSize(market, consumed.ask),
    consumed_bid: consumed === null ? null : unitsToSize(market, consumed.bid),
    prepared_seq: preparedSeq,
    fill_seq: fillSeq,
  };
}

const keepersBody = (roles: ReadDeps['roles'], facts: PlatformFacts, running: Read['running']): StatusBody['keepers'] =>
  roles.map(({ role, log, status }) => {
    const { lastActMs, waiting = 0 } = status(facts);
    return { role, running: running(log), last_act_ms: lastActMs, waiting, gas: gasBody(role, facts) };
  });

const NATIVE_DECIMALS = 18;

function gasBody(role: string, { senders, keepers }: PlatformFacts): StatusBody['keepers'][number]['gas'] {
  if (!COST_ROLES.some((one) => one === role)) return null;
  const spentWei = senders.filter((one) => one.role === role).reduce((sum, one) => sum + one.spentLastHourWei, 0n);
  const { signer = null, budgetWei = null } = keepers.get(role) ?? {};
  return {
    signer,
    spent_last_hour: formatUnits(spentWei, NATIVE_DECIMALS),
    budget_per_hour: budgetWei === null ? null : formatUnits(budgetWei, NATIVE_DECIMALS),
  };
}

function transactionsBody({ unmined, senders }: PlatformFacts): StatusBody['transactions'] {
  return unmined.map(({ signer, count, oldestSentMs }) => {
    const sender = senders.find((one) => one.signer === signer);
    const revert = sender?.lastRevert ?? null;
    return {
      signer,
      role: sender?.role ?? null,
      unmined: count,
      oldest_sent_ms: oldestSentMs,
      spent_last_hour: formatUnits(sender?.spentLastHourWei ?? 0n, NATIVE_DECIMALS),
      last_revert:
        revert === null
          ? null
          : { hash: revert.hash, block_number: revert.blockNumber, time_ms: revert.seenMs, reason: revert.reason },
    };
  });
}

function checkpointBody({ checkpoint }: PlatformFacts): StatusBody['checkpoint'] {
  if (checkpoint === null) return null;
  const { checkpointSeq, generation, timestampMs } = checkpoint;
  return { seq: checkpointSeq, generation, timestamp_ms: timestampMs };
}
