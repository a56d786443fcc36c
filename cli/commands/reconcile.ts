import { setTimeout as delay } from 'node:timers/promises';
import { ReconcileError, planReconcile, type ReconcilePlan } from '../../keepers/watcher/reconcile.js';
import { readStandingHalt } from '../../keepers/watcher/standing-halt.js';
import { lastGeneration } from '../../ledger/generations.js';
import { lastCarriedOut, requestReconcile } from '../../ledger/reconcile-requests.js';
import type { Db } from '../../ledger/types.js';
import type { CommandLine } from '../arguments.js';
import {
  COMMON_OPTIONS,
  commandConfig,
  commandRpc,
  confirm,
  print,
  withDatabase,
  type Command,
  type Io,
} from './command.js';

/** Asked for and not carried out yet: no watcher is running, or it found the request out of date. */
const EXIT_PENDING = 3;
const WAIT_MS = 20_000;
const POLL_MS = 200;

/** Takes back what the chain no longer has. */
export const reconcileCommand: Command = {
  summary: 'takes back what the chain no longer has',
  help: `curvebook reconcile [--yes] [--capital-origin] [--rpc <url>] [options]

Compares the ledger with the chain, shows what would be taken back (deposits, fills, and whom they were told to), asks, and has
the watcher roll the ledger back to the last common scan by reversing entries and read the chain anew. Puts an end to the
integrity halt. Refuses more than 64 blocks. Exits with ${EXIT_PENDING} when the watcher has not done it within ${WAIT_MS / 1_000} s; it will when it runs.

  --yes               do not ask
  --capital-origin    let the net_capital counters start again at the next block
  --rpc <url>         JSON-RPC endpoints, comma-separated (RPC_URL)
${COMMON_OPTIONS}`,
  maxArguments: 0,
  async run(line, io) {
    const config = commandConfig(line);
    return withDatabase(config, async (db) => {
      try {
        const plan = await planReconcile(db, commandRpc(config), config.manifest);
        return await carryOut(io, line, db, plan);
      } catch (error) {
        if (!(error instanceof ReconcileError)) throw error;
        print(io, line, { ok: false, code: error.code, message: error.message }, [`${error.code}: ${error.message}`]);
        return 1;
      }
    });
  },
};

async function carryOut(io: Io, line: CommandLine, db: Db, plan: ReconcilePlan | null): Promise<number> {
  if (plan === null && !line.capitalOrigin) {
    const halt = await readStandingHalt(db.knex);
    const hint = halt === null ? '' : `; it is halted by ${halt.code}, which \`curvebook resume\` puts an end to`;
    print(io, line, { ok: true, plan: null, halt }, [`the chain has every block of the ledger${hint}`]);
    return 0;
  }
  if (!line.json) io.output.write(`${describe(plan, line.capitalOrigin).join('\n')}\n`);
  if (!(await confirm(io, line, 'Reconcile?'))) {
    print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
    return 1;
  }
  const request = { reversal: plan?.reversal ?? null, capitalOrigin: line.capitalOrigin };
  const operatorSeq = await requestReconcile(db, request, Date.now());
  const done = await waitFor(db, operatorSeq);
  const head = await lastGeneration(db.knex);
  const halt = await readStandingHalt(db.knex);
  print(io, line, { ok: done, operatorSeq, plan, generation: head?.generation ?? 0, halt }, [
    done
      ? `done; the ledger is at generation ${head?.generation}, block ${head?.toBlock}${halt === null ? '' : `, halted by ${halt.code}`}`
      : `asked for as act ${operatorSeq}; the watcher does it when it runs, unless the ledger has moved on by then`,
  ]);
  return done ? 0 : EXIT_PENDING;
}

async function waitFor(db: Db, operatorSeq: number): Promise<boolean> {
  for (const deadlineMs = Date.now() + WAIT_MS; Date.now() < deadlineMs; await delay(POLL_MS)) {
    if ((await lastCarriedOut(db.knex)) >= operatorSeq) return true;
  }
  return false;
}

function describe(plan: ReconcilePlan | null, capitalOrigin: boolean): string[] {
  const lines = plan === null ? [] : describePlan(plan);
  return capitalOrigin ? [...lines, 'the net_capital counters start again at the next block'] : lines;
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
