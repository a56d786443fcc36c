import { verifyLedger } from '../../keepers/verify/verify.js';
import { VerifyError, type VerifyProgress } from '../../keepers/verify/verification.js';
import { ConfigError, NO_OPERATOR } from '../config.js';
import { COMMON_OPTIONS, commandConfig, commandRpc, print, withDatabase, type Command, type Io } from './command.js';

/** Exit code when something that is stored is not what it should be. */
const EXIT_DIFFERENCE = 2;
const LINE_INTERVAL_MS = 1_000;

/** Derives everything again and compares. */
export const verifyCommand: Command = {
  summary: 'derives everything again and compares, with the chain, too',
  help: `curvebook verify [--rpc <url>] [options]

Derives every decomposition, posting, balance, withdrawal and checkpoint again from the rows that it was derived from; with --rpc also compares
blocks, events, holdings, claims and live curves with the chain. Reads only; the server may run. Exits with ${EXIT_DIFFERENCE} at the first difference. A token
that changed since it was listed, or that the watcher has in quarantine, is a warning.

  --rpc <url>         compare with this node, too
${COMMON_OPTIONS}`,
  maxArguments: 0,
  async run(line, io) {
    const config = commandConfig(line);
    const { operator } = config;
    if (operator === null) throw new ConfigError([NO_OPERATOR]);
    const { custodian, curveBook, entrypoint, orderSettler } = config.manifest.contracts;
    return withDatabase(config, async (db) => {
      try {
        const report = await verifyLedger({
          db,
          deploymentId: config.manifest.deploymentId,
          deploymentBlock: config.manifest.deploymentBlock,
          operator,
          contracts: { custodian, curveBook, entrypoint, orderSettler },
          rpc: line.overrides.RPC_URL === undefined ? null : commandRpc(config),
          onProgress: line.json ? () => undefined : createProgressBar(io),
        });
        print(io, line, { ok: true, ...report }, [
          ...report.warnings.map((warning) => `warning: ${warning}`),
          `verified up to generation ${report.generation}, block ${report.blockNumber}: ${report.blocks} blocks, ` +
            `${report.curves} curves, ${report.foldedCurves} of them folded, ${report.fills} fills, ${report.postings} postings, ${report.balances} balances, ` +
            `${report.claims} withdrawals, ${report.checkpoints} checkpoints, ${report.reversals} reversals, ` +
            `${report.suspense} items in suspense, ${report.openSuspense} of them open` +
            (report.chainEvents === null ? '; the chain was not asked' : `, ${report.chainEvents} events of the chain`),
        ]);
        return 0;
      } catch (error) {
        if (!(error instanceof VerifyError)) throw error;
        print(io, line, { ok: false, check: error.check, message: error.message }, [
          `${error.check}: ${error.message}`,
        ]);
        return EXIT_DIFFERENCE;
      }
    });
  },
};

/** A bar that is drawn over on a terminal, and a line now and then elsewhere. */
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
