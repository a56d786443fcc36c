import { formatUnits, toSafeInt } from '../../core/amounts.js';
import { stringify } from '../../core/json.js';
import { isLosing } from '../../core/attribution/gains.js';
import { servedTokens, type OperatorStanding } from '../../core/operator-row.js';
import { judgeReadiness, CATCH_UP_BLOCKS, readStandingHalt } from '../../keepers/watcher/status.js';
import { readHead } from '../../keepers/watcher/scan/headers.js';
import { readCapitalOrigin, readOperatorStandings } from '../../ledger/chain/operator-capital.js';
import { countPendingClaims } from '../../ledger/chain/claims.js';
import { readTx } from '../../ledger/db/db.js';
import { loadLedgerHead, readMarkets, readProgress } from '../../ledger/chain/ledger-log.js';
import { readOperatorState } from '../../ledger/operator/operator-log.js';
import { readWorstPairs } from '../../ledger/chain/pair-gains.js';
import { readOrphans } from '../../ledger/chain/orphans.js';
import { listOutbox } from '../../ledger/transactions/outbox.js';
import { landedSeq, lastPublicationSeq } from '../../ledger/publications/publication-log.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import { readReversals } from '../../ledger/chain/reversals.js';
import { readSuspenseFacts, type SuspenseFacts } from '../../ledger/chain/suspense.js';
import { readStorage, type StorageReport } from '../../ledger/db/storage.js';
import type { Db, Queryable } from '../../ledger/types.js';
import { readEnvironment, type CommandConfig } from '../config.js';
import { UsageError } from '../errors.js';
import { unusedNames } from '../roles/unused-names.js';
import { describeFindings, readTokenRows } from './token.js';
import type { CommandLine } from '../arguments.js';
import { commandConfig, commandRpc, print, withDatabase, type Io } from './command.js';
import { describeWaiting, readWaiting } from './waiting.js';
import { watch, type Look } from './watch.js';

/** Pairs of maker and taker that lost the operator most, per quote token. */
const WORST_PAIRS = 5;

const EVERY_SEC = { least: 1, most: 3_600, unsaid: 2 };
/** Sizes of tables are read again after this time, since reading them is slow and they change slowly. */
const STORAGE_MS = 60_000;
/** Patterns of lines of `describe` that need attention. */
const ALARMING = /^(not ready|halted|systematic loss|no look|chain: (?!block))|below its floor|^in suspense/;

/** Shows the platform's status from the database and the chain, without a server; with --watch repeatedly until it is interrupted. */
export async function runStatus(line: CommandLine, io: Io): Promise<number> {
  const config = commandConfig(line);
  if (!line.own.has('watch')) {
    if (line.own.has('every')) throw new UsageError('--every goes with --watch');
    return withDatabase(config, async (db) => {
      const { value, text } = await takeStatus(db, config, await readStorage(db, Date.now()));
      print(io, line, value, text);
      return 0;
    });
  }
  const intervalMs = readEvery(line) * 1_000;
  const interrupt = new AbortController();
  const stop = (): void => interrupt.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, stop);
  try {
    return await withDatabase(config, async (db) => {
      let storage: { atMs: number; report: StorageReport } | null = null;
      await watch({
        output: io.output,
        env: readEnvironment(line.env),
        intervalMs,
        signal: io.signal === undefined ? interrupt.signal : AbortSignal.any([interrupt.signal, io.signal]),
        nowMs: Date.now,
        json: line.json ? (value) => stringify(value) : null,
        isAlarming: (one) => ALARMING.test(one),
        async look() {
          const nowMs = Date.now();
          if (storage === null || Math.abs(nowMs - storage.atMs) >= STORAGE_MS)
            storage = { atMs: nowMs, report: await readStorage(db, nowMs) };
          return takeStatus(db, config, storage.report);
        },
      });
      return 0;
    });
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, stop);
  }
}

/** Seconds between two looks. Throws UsageError. */
function readEvery(line: CommandLine): number {
  const text = line.own.get('every')?.at(-1) ?? String(EVERY_SEC.unsaid);
  const seconds = /^\d{1,4}$/.test(text) ? toSafeInt(BigInt(text)) : 0;
  if (seconds < EVERY_SEC.least || seconds > EVERY_SEC.most)
    throw new UsageError(`--every takes whole seconds from ${EVERY_SEC.least} to ${EVERY_SEC.most}: ${text}`);
  return seconds;
}

async function takeStatus(db: Db, config: CommandConfig, storage: StorageReport): Promise<Look> {
  const durable = await readTx(db, (q) => readStatus(q, config));
  const head = await readChain(config).catch((error: unknown) =>
    error instanceof Error ? error.message : String(error),
  );
  const chain = typeof head === 'string' ? { problem: head } : { head: head.number, timeMs: head.timestampSec * 1_000 };
  return {
    value: { ...durable, storage, chain },
    text: [
      ...describe(durable),
      ...describeStorage(storage, durable.foldedOrderSeq),
      'problem' in chain ? `chain: ${chain.problem}` : `chain: block ${chain.head}`,
    ],
  };
}

/** The newest block. Throws ConfigError without an endpoint, RpcUnavailableError when none answers. */
async function readChain(config: CommandConfig): ReturnType<typeof readHead> {
  if (config.rpcUrls.length === 0) throw new Error('no endpoint is configured (RPC_URL)');
  return readHead(commandRpc(config));
}

async function readStatus(q: Queryable, config: CommandConfig) {
  const head = await loadLedgerHead(q);
  const halt = await readStandingHalt(q);
  const markets = await readMarkets(q);
  const progress = await readProgress(q);
  const { approved, suspended } = await readOperatorState(q);
  const reversal = (await readReversals(q)).at(-1) ?? null;
  const readiness = judgeReadiness(
    {
      inventoryRevision: head?.generation ?? 0,
      durableInventoryRevision: head?.generation ?? 0,
      nextBlock: (head?.toBlock ?? config.manifest.deploymentBlock - 1) + 1,
      scannedBlockHash: head?.blockHash ?? null,
      observedHead: head?.observedHead ?? 0,
      observedHeadTimestampMs: head?.observedHeadTimestampMs ?? 0,
      lastSuccessfulScanMs: head?.lastScanMs ?? 0,
      catchingUp: head !== null && head.observedHead - head.toBlock > CATCH_UP_BLOCKS,
      failedWrite: false,
      halt,
    },
    Date.now(),
  );
  const unmined = await listOutbox(q, { unfinished: true, limit: 10_000 });
  const { operator, OPERATOR_FLOORS: floors } = config;
  return {
    deploymentId: config.manifest.deploymentId,
    ...readiness,
    halt,
    generation: head?.generation ?? 0,
    scannedBlock: head === null ? null : { number: head.toBlock, hash: head.blockHash, scannedMs: head.scannedMs },
    lastScanMs: head?.lastScanMs ?? null,
    capitalFlowStartBlock: (await readCapitalOrigin(q)) ?? config.manifest.deploymentBlock,
    markets: await Promise.all(
      markets.map(async ({ index, pair }) => ({
        pair,
        fillSeq: progress.find(({ market }) => market === index)?.fillSeq ?? 0,
        preparedSeq: await lastPublicationSeq(q, index),
        landedSeq: await landedSeq(q, index),
      })),
    ),
    tokens: await readTokenRows(q),
    operator:
      operator === null
        ? null
        : { address: operator, tokens: await readOperatorStandings(q, { operator, markets, floors }) },
    worstPairs: (await readWorstPairs(q, WORST_PAIRS)).map((pair) => ({
      ...pair,
      token: servedTokens(markets).find(({ address }) => address === pair.token)!,
      isLosing: isLosing(pair),
    })),
    unusedNames: unusedNames(markets, config),
    makers: { approved: approved.size, suspended: suspended.size },
    suspense: await readSuspenseFacts(q),
    pendingWithdrawals: await countPendingClaims(q),
    waitingWithdrawals: await readWaiting(q),
    unminedTransactions: unmined.length,
    foldedOrderSeq: (await readCompactionPosition(q)).orderSeq,
    lastReversal: reversal === null ? null : { ...reversal, orphans: await readOrphans(q, reversal.generation) },
  };
}

function describeStanding({ token, balanceUnits, floorUnits, isBelow }: OperatorStanding): string {
  const [balance, floor] = [formatUnits(balanceUnits, token.decimals), formatUnits(floorUnits, token.decimals)];
  return `operator: ${balance} ${token.symbol}${isBelow ? `, below its floor of ${floor}: deposit ${token.symbol}` : ''}`;
}

function describe(status: Awaited<ReturnType<typeof readStatus>>): string[] {
  const { scannedBlock, halt, lastReversal } = status;
  return [
    status.ready ? 'ready' : `not ready: ${status.reason}`,
    ...(halt === null ? [] : [`halted: ${halt.code}: ${halt.message}`]),
    scannedBlock === null
      ? 'nothing scanned yet'
      : `generation ${status.generation}, block ${scannedBlock.number}, last scan ${new Date(status.lastScanMs ?? 0).toISOString()}`,
    ...status.markets.map(
      (one) => `${one.pair}: fill ${one.fillSeq}, curve ${one.landedSeq} landed, ${one.preparedSeq} prepared`,
    ),
    ...describeFindings(status.tokens),
    ...(status.operator === null
      ? ['operator: OPERATOR_ADDRESS names none']
      : status.operator.tokens.map(describeStanding)),
    ...status.worstPairs.map(
      ({ maker, taker, token, fills, gainUnits, isLosing: losing }) =>
        `${losing ? 'systematic loss' : 'loss'}: ${formatUnits(-gainUnits, token.decimals)} ${token.symbol} over ${fills} fills of ${maker} with ${taker}`,
    ),
    ...describeSuspense(status.suspense),
    ...status.unusedNames,
    `${status.makers.approved} makers approved, ${status.makers.suspended} suspended`,
    `${status.pendingWithdrawals} withdrawals wait, ${status.unminedTransactions} transactions unmined`,
    ...status.waitingWithdrawals.map((one) =>
      describeWaiting(
        one,
        status.tokens.map(({ address, token: symbol }) => ({ address, symbol })),
      ),
    ),
    ...(lastReversal === null
      ? []
      : [
          `last reversal: blocks ${lastReversal.fromBlock} to ${lastReversal.toBlock}, ${lastReversal.orphans.fills.length} fills, ` +
            `${lastReversal.orphans.orders.length} signed orders, and ${lastReversal.orphans.custody.length} deposits and withdrawals lost`,
        ]),
  ];
}

function describeSuspense({ items: { fill, settlement, execution }, units }: SuspenseFacts): string[] {
  if (fill + settlement + execution === 0) return [];
  const amounts = units.map((one) => `${one.units} units of ${one.token}`).join(', ');
  return [
    `in suspense: ${fill} fills, ${settlement} settlements, ${execution} payouts (${amounts}); see \`curvebook suspense list\``,
  ];
}

function describeStorage({ bytes, shares, otherBytes }: StorageReport, foldedOrderSeq: number): string[] {
  const added = shares.map(({ name, lastDay, bytesEach }) => `${lastDay} ${name} (${bytesEach} bytes each)`);
  const perDay = shares.reduce((sum, share) => sum + share.bytesLastDay, 0);
  return [
    `database: ${mebibytes(bytes)}; order rows up to ${foldedOrderSeq} are compacted; ${mebibytes(otherBytes)} are of what hardly grows`,
    `the last 24 hours added ${mebibytes(perDay)}: ${added.join(', ')}`,
  ];
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
