import type { ArchivedVerdict } from '../../keepers/verify/checkpoints.js';
import { verifyLedger, type VerifyReport } from '../../keepers/verify/verify.js';
import { VerifyError, type VerifyProgress } from '../../keepers/verify/verification.js';
import type { Address } from '../../core/types.js';
import type { Db } from '../../ledger/types.js';
import { NO_OPERATOR, type CommandConfig } from '../config.js';
import { ConfigError } from '../errors.js';
import type { CommandLine } from '../arguments.js';
import { EXIT_DIFFERENCE } from '../exit-codes.js';
import { commandConfig, commandRpc, print, withDatabase, type Io } from './command.js';

const LINE_INTERVAL_MS = 1_000;

/** Derives everything again and compares. */
export async function runVerify(line: CommandLine, io: Io): Promise<number> {
  const config = commandConfig(line);
  operatorOf(config);
  const { code, say } = await withDatabase(config, (db) => verifyDatabase(db, { config, line, io }));
  say();
  return code;
}

/** The operator's account, without which nothing can be derived again. Throws ConfigError. */
export function operatorOf({ operator }: CommandConfig): Address {
  if (operator === null) throw new ConfigError([NO_OPERATOR]);
  return operator;
}

interface Verdict {
  /** The exit code. */
  code: number;
  /** Prints what was found. Only one result may be printed, so whoever may still fail does so first. */
  say(): void;
}

/** Verifies one database. Throws the signal's reason soon after it has aborted. */
export async function verifyDatabase(
  db: Db,
  { config, line, io, signal }: { config: CommandConfig; line: CommandLine; io: Io; signal?: AbortSignal },
): Promise<Verdict> {
  const operator = operatorOf(config);
  const { custodian, curveBook, entrypoint, orderSettler } = config.manifest.contracts;
  const tell = line.json ? () => undefined : createProgressBar(io);
  try {
    const report = await verifyLedger({
      db,
      deploymentId: config.manifest.deploymentId,
      deploymentBlock: config.manifest.deploymentBlock,
      operator,
      contracts: { custodian, curveBook, entrypoint, orderSettler },
      rpc: line.overrides.RPC_URL === undefined ? null : commandRpc(config),
      onProgress: (progress) => {
        signal?.throwIfAborted();
        tell(progress);
      },
    });
    const lines = [
      ...report.warnings.map((warning) => `warning: ${warning}`),
      `verified up to generation ${report.generation}, block ${report.blockNumber}: ${report.blocks} blocks, ` +
        `${report.curves} curves, ${report.foldedCurves} of them compacted, ${report.fills} fills, ${report.postings} postings, ${report.balances} balances, ` +
        `${report.candles} candles, ${report.activity} sums of accounts, ${report.claims} withdrawals, ${report.checkpoints} checkpoints${published(report)}, ${report.reversals} reversals, ` +
        `${report.suspense} items in suspense, ${report.openSuspense} of them open` +
        (report.chainEvents === null ? '; the chain was not asked' : `, ${report.chainEvents} events of the chain`),
    ];
    return { code: 0, say: () => print(io, line, { ok: true, ...report }, lines) };
  } catch (error) {
    if (!(error instanceof VerifyError)) throw error;
    const { check, message } = error;
    const say = (): void => print(io, line, { ok: false, check, message }, [`${check}: ${message}`]);
    return { code: EXIT_DIFFERENCE, say };
  }
}

/** A progress bar on a terminal, and a line from time to time elsewhere. */
function createProgressBar({ errors }: Io): (progress: VerifyProgress) => void {
  let saidMs = Number.NEGATIVE_INFINITY;
  return ({ check, done, total }) => {
    const share = total === 0 ? 1 : done / total;
    const nowMs = Date.now();
    const ended = done >= total;
    if (!ended && nowMs - saidMs < (errors.isTTY === true ? 100 : LINE_INTERVAL_MS)) return;
    saidMs = nowMs;
    const bar = '#'.repeat(Math.round(share * 30)).padEnd(30, '.');
    const text = `${check.padEnd(12)} [${bar}] ${done} of ${total}`;
    errors.write(errors.isTTY === true ? `\r${text}${ended ? '\n' : ''}` : `${text}\n`);
  };
}

const PUBLISHED: Record<ArchivedVerdict, string> = {
  agrees: 'agrees',
  differs: 'DIFFERS',
  not_compared: 'was not compared',
};

/** What became of the newest checkpoint that was published before a loss; nothing where there was none. */
const published = ({ archivedCheckpoint }: Pick<VerifyReport, 'archivedCheckpoint'>): string =>
  archivedCheckpoint === null ? '' : ` (the one published before the loss ${PUBLISHED[archivedCheckpoint]})`;
