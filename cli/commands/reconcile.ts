import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { toSafeInt } from '../../core/amounts.js';
import { ReconcileError, planReconcile, type ReconcilePlan } from '../../keepers/watcher/reconcile.js';
import { planRepair, type RepairPlan } from '../../keepers/watcher/repair.js';
import { verifyActivity } from '../../keepers/verify/activity.js';
import { verifyMarketData } from '../../keepers/verify/market-data.js';
import { VerifyError, type VerifyProgress } from '../../keepers/verify/verification.js';
import { readStandingHalt } from '../../keepers/watcher/status.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readTx } from '../../ledger/db/db.js';
import { firstRow, readRows } from '../../ledger/db/rows.js';
import { lastCarriedOut, readReconcileRequest, requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import type { Db, Queryable } from '../../ledger/types.js';
import type { CommandLine } from '../arguments.js';
import { type CommandConfig } from '../config.js';
import { UsageError } from '../errors.js';
import { EXIT_PENDING } from '../exit-codes.js';
import { CommandError } from './command-error.js';
import { commandConfig, commandRpc, confirm, print, withDatabase, type Io } from './command.js';
import { RECONCILE_WAIT_MS } from './limits.js';

const POLL_MS = 200;

/** What is to be done: the chain is another one, or it is the same and the ledger differs from it. */
type Plan = { kind: 'reorganisation'; plan: ReconcilePlan } | { kind: 'repair'; plan: RepairPlan };

/** Reverses what the chain no longer has, and reads again what is booked differently from the chain. */
export async function runReconcile(line: CommandLine, io: Io): Promise<number> {
  const config = commandConfig(line);
  const from = readBlockNumber(line.from);
  return withDatabase(config, async (db) => {
    try {
      const plan = await makePlan(config, line, io, db, from);
      return await carryOut(io, line, db, plan, await derivedDifference(db, line, io));
    } catch (error) {
      if (!(error instanceof ReconcileError)) throw error;
      print(io, line, { ok: false, code: error.code, message: error.message }, [`${error.code}: ${error.message}`]);
      return 1;
    }
  });
}

async function makePlan(
  config: CommandConfig,
  line: CommandLine,
  io: Io,
  db: Db,
  from: number | undefined,
): Promise<Plan | null> {
  const rpc = commandRpc(config);
  const { deploymentBlock, contracts } = config.manifest;
  const lost = await planReconcile(db, rpc, { deploymentBlock, deep: line.deep });
  if (lost !== null) return { kind: 'reorganisation', plan: lost };
  // A request for the counters alone needs no comparison of everything.
  if (line.capitalOrigin && from === undefined) return null;
  const plan = await planRepair(db, rpc, { deploymentBlock, contracts, from, onProgress: progressOn(io, line) });
  return plan === null ? null : { kind: 'repair', plan };
}

/** A line now and then: a long chain takes minutes. */
function progressOn({ errors }: Io, line: CommandLine, what = 'blocks'): (done: number, total: number) => void {
  let saidMs = Date.now();
  return (done, total) => {
    if (line.json || Date.now() - saidMs < 1_000) return;
    saidMs = Date.now();
    errors.write(`compared ${done} of ${total} ${what}\n`);
  };
}

function readBlockNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`not a block number: ${text}`);
  return toSafeInt(BigInt(text));
}

/** The first difference of candles, positions or sums of accounts from those derived from the fills; null where they agree. */
async function derivedDifference(db: Db, line: CommandLine, io: Io): Promise<string | null> {
  try {
    await readTx(db, async (q) => {
      const of = { q, markets: await readMarkets(q), onProgress: progressOn(io, line, 'fills') };
      const onProgress = ({ done, total }: VerifyProgress): void => of.onProgress(done, total);
      await verifyMarketData({ ...of, onProgress });
      await verifyActivity({ ...of, onProgress });
    });
    return null;
  } catch (error) {
    if (error instanceof VerifyError) return error.message;
    throw error;
  }
}

async function carryOut(
  io: Io,
  line: CommandLine,
  db: Db,
  found: Plan | null,
  derived: string | null,
): Promise<number> {
  const plan = found?.plan ?? null;
  if (found === null && derived === null && !line.capitalOrigin) {
    const halt = await readStandingHalt(db.knex);
    const hint = halt === null ? '' : `; it is halted by ${halt.code}, which \`curvebook resume\` puts an end to`;
    print(io, line, { ok: true, plan: null, derived, halt }, [
      `the ledger and the chain agree on every block and booking${hint}`,
    ]);
    return 0;
  }
  const request = {
    reversal: plan?.reversal ?? null,
    capitalOrigin: line.capitalOrigin,
    marketData: derived !== null,
  };
  const replaced = await readPending(db.knex);
  if (!line.json) {
    const lines = describe(found, line.capitalOrigin, derived);
    if (replaced !== null) lines.push(describePending(replaced, request));
    io.output.write(`${lines.join('\n')}\n`);
  }
  if (!(await confirm(io, line, 'Reconcile?'))) {
    print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
    return 1;
  }
  const newest = await readPending(db.knex);
  if (newest !== null && newest.operatorSeq !== replaced?.operatorSeq) {
    throw new CommandError(
      'REQUESTED_MEANWHILE',
      `somebody asked for another reconciliation meanwhile, as act ${newest.operatorSeq}; nothing was asked for. ` +
        'Let the watcher carry that out, then curvebook reconcile again',
    );
  }
  const operatorSeq = await requestReconcile(db, request, Date.now());
  const { done, supersededBy } = await waitFor(db, operatorSeq);
  const head = await lastGeneration(db.knex);
  const halt = await readStandingHalt(db.knex);
  const said = { ok: done, operatorSeq, supersededBy, replaces: replaced?.operatorSeq ?? null };
  print(io, line, { ...said, plan, derived, generation: head?.generation ?? 0, halt }, [
    done
      ? `done; the ledger is at generation ${head?.generation}, block ${head?.toBlock}${halt === null ? '' : `, halted by ${halt.code}`}`
      : supersededBy !== null
        ? `act ${operatorSeq} is superseded by act ${supersededBy}, and nothing of it was done: curvebook reconcile once more when that one is done`
        : `asked for as act ${operatorSeq}; the watcher does it when it runs, unless the ledger or the chain has moved on by then`,
  ]);
  return done ? 0 : EXIT_PENDING;
}

type Request = Parameters<typeof requestReconcile>[1];
type Pending = NonNullable<Awaited<ReturnType<typeof readReconcileRequest>>> & { timeMs: number };

/** The request that a new one makes void, with the time at which it was made. */
async function readPending(q: Queryable): Promise<Pending | null> {
  const request = await readReconcileRequest(q);
  if (request === null) return null;
  const row = await firstRow(q, 'operator_log', { where: { operator_seq: request.operatorSeq } });
  return { ...request, timeMs: row!.time_ms };
}

function describePending({ operatorSeq, timeMs, ...pending }: Pending, request: Request): string {
  const { reversal, capitalOrigin, marketData } = pending;
  const parts = [
    ...(reversal === null ? [] : [`reading the chain anew after block ${reversal.block.number}`]),
    ...(marketData ? ['what is derived from the fills'] : []),
    ...(capitalOrigin ? ['new net_capital counters'] : []),
  ];
  const what = isDeepStrictEqual(pending, request) ? 'the same' : parts.join(', and ');
  return `this replaces act ${operatorSeq} of ${new Date(timeMs).toISOString()}, which the watcher has not carried out: ${what}`;
}

/**
 * Waits for the watcher. A newer request makes this one void, so that only what was carried out for exactly this act counts as done; while the
 * newer one waits, the watcher may still be at this one.
 */
async function waitFor(db: Db, operatorSeq: number): Promise<{ done: boolean; supersededBy: number | null }> {
  let supersededBy: number | null = null;
  for (const deadlineMs = Date.now() + RECONCILE_WAIT_MS; Date.now() < deadlineMs; await delay(POLL_MS)) {
    const last = await lastCarriedOut(db.knex);
    if (last === operatorSeq || (last > operatorSeq && (await isCarriedOut(db.knex, operatorSeq))))
      return { done: true, supersededBy: null };
    supersededBy ??= await newerRequest(db.knex, operatorSeq);
    if (last > operatorSeq) break;
  }
  return { done: false, supersededBy };
}

/** Whether rows of this very act exist. One that only rebuilt what is derived from the fills leaves none once a newer act did so, too. */
async function isCarriedOut(q: Queryable, operatorSeq: number): Promise<boolean> {
  const where = { operator_seq: operatorSeq };
  return (
    ((await firstRow(q, 'reversals', { where })) ?? (await firstRow(q, 'capital_origins', { where }))) !== undefined
  );
}

async function newerRequest(q: Queryable, operatorSeq: number): Promise<number | null> {
  const newer = await readRows(q, 'operator_log', {
    where: { kind: 'reconcile' },
    above: ['operator_seq', operatorSeq],
    orderBy: ['operator_seq'],
  });
  return newer.at(-1)?.operator_seq ?? null;
}

function describe(found: Plan | null, capitalOrigin: boolean, derived: string | null): string[] {
  const lines = found === null ? [] : found.kind === 'repair' ? describeRepair(found.plan) : describePlan(found.plan);
  if (derived !== null)
    lines.push(
      `candles, positions and sums of accounts are made anew from the fills, which they differ from: ${derived}`,
    );
  return capitalOrigin ? [...lines, 'the net_capital counters start again at the next block'] : lines;
}

function describeRepair({ fromBlock, generations, missing, excess, differences, balances }: RepairPlan): string[] {
  const bookings = (of: RepairPlan['missing']): string[] =>
    of.map((one) => `  block ${one.blockNumber} ${one.kind} ${one.what} in ${one.txHash}`);
  return [
    `${generations} scans would be taken back, and the chain read anew from block ${fromBlock} on`,
    `${missing.length} bookings are missing:`,
    ...bookings(missing),
    `${excess.length} bookings are too much:`,
    ...bookings(excess),
    ...differences.map(({ token, units }) => `the vault has ${units} units of ${token} beyond what all rows say`),
    'balances change by, before the chain is read anew:',
    ...balances.map((one) => `  ${one.account} ${one.deltaUnits} units of ${one.token}`),
  ];
}

function describePlan({ orphanedBlocks, reversal, generations, orphans, balances }: ReconcilePlan): string[] {
  return [
    `the chain has lost blocks ${orphanedBlocks.from} to ${orphanedBlocks.to} (${reversal.depth} blocks)`,
    `${generations} scans would be taken back, to block ${reversal.block.number} (${reversal.block.hash})`,
    `${orphans.custody.length} deposits and withdrawals are lost:`,
    ...orphans.custody.map(
      (one) => `  ${one.kind} ${one.maker} ${one.amountUnits} units of ${one.token} in ${one.txHash}`,
    ),
    `${orphans.fills.length} fills are lost, with what makers were told of them:`,
    ...orphans.fills.flatMap((fill) => [
      `  fill ${fill.fillSeq} of market ${fill.market}, ${fill.baseUnits} base units, in ${fill.txHash}`,
      ...fill.notifications.map(
        (one) => `    ${one.maker} order ${one.oid} tid ${one.tid} ${one.baseUnits} base units`,
      ),
    ]),
    `${orphans.orders.length} signed orders are lost, which their owners may have seen filled:`,
    ...orphans.orders.map(
      (one) =>
        `  order ${one.orderId ?? '(of another API)'} of ${one.owner}, ${one.amountInUnits} units of ${one.tokenIn} for ` +
        `${one.amountOutUnits} units of ${one.tokenOut}, in ${one.txHash}`,
    ),
    'balances change by, before the chain is read anew:',
    ...balances.map((one) => `  ${one.account} ${one.deltaUnits} units of ${one.token}`),
  ];
}
