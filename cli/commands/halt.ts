import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { lastHaltNo } from '../../ledger/chain/halts.js';
import { readTx } from '../../ledger/db/db.js';
import type { OperatorRow, Transaction } from '../../ledger/types.js';
import { standingCauses } from '../../keepers/watcher/halt-causes.js';
import { readStandingHalt } from '../../keepers/watcher/status.js';
import type { CommandLine } from '../arguments.js';
import { EXIT_CAUSE_STANDS, EXIT_NOT_HALTED } from '../exit-codes.js';
import { actsAfter, actsMeanwhile } from './acts.js';
import { CommandError } from './command-error.js';
import { commandConfig, commandRpc, print, withDatabase, type Io } from './command.js';

/** Stops readiness, publication and settlement on purpose. */
export async function runHalt(line: CommandLine, io: Io): Promise<number> {
  const note = line.positionals.join(' ') || 'halted by the operator';
  return withDatabase(commandConfig(line), async (db) => {
    const row = await appendOperatorRow(db, { timeMs: Date.now(), kind: 'halt', maker: null, note });
    print(io, line, row, [`halted: ${note}`]);
    return 0;
  });
}

/**
 * Puts an end to halts: those that stand when it begins. Throws CommandError `HALTED_MEANWHILE` when somebody has placed another one by the
 * time it would write.
 */
export async function runResume(line: CommandLine, io: Io): Promise<number> {
  const config = commandConfig(line);
  return withDatabase(config, async (db) => {
    // What is found or placed while endpoints are asked was not judged.
    const { before, upToHaltNo, acts } = await readTx(db, async (q) => ({
      before: await readStandingHalt(q),
      upToHaltNo: await lastHaltNo(q),
      acts: await actsAfter(q, 0),
    }));
    if (before === null) {
      const message = 'nothing is halted';
      print(io, line, { ok: false, code: 'NOT_HALTED', message }, [message]);
      return EXIT_NOT_HALTED;
    }
    const rpc = config.rpcUrls.length === 0 ? null : commandRpc(config);
    const { deploymentBlock, contracts } = config.manifest;
    const causes = await standingCauses({
      ...{ db, rpc, deploymentBlock, contracts, operator: config.operator, nowMs: Date.now() },
    });
    if (causes.length > 0) {
      const text = causes.map((one) => `still halted by ${one.halt.code}: ${one.message}; run: ${one.remedy}`);
      const said = causes.map(({ halt, message, remedy }) => ({ code: halt.code, message, remedy }));
      print(io, line, { ok: false, code: 'CAUSE_STANDS', message: text.join('; '), causes: said }, text);
      return EXIT_CAUSE_STANDS;
    }
    const act = { timeMs: Date.now(), kind: 'resume', maker: null, note: '' } as const;
    const also = async (tx: Transaction): Promise<void> => {
      const newer = standingHalts(await actsMeanwhile(tx, acts.at(-1)?.operatorSeq ?? 0)).at(-1);
      if (newer === undefined) return;
      throw new CommandError(
        'HALTED_MEANWHILE',
        `somebody halted meanwhile, as act ${newer.operatorSeq}: ${newer.note}; nothing was resumed. Once that halt may end, too: curvebook resume again`,
      );
    };
    const row = await appendOperatorRow(db, act, { upToHaltNo, also });
    const ended = before.byOperator ? null : { code: before.code, message: before.message };
    const endedByOperator = standingHalts(acts).map(({ operatorSeq, note }) => ({ operatorSeq, note }));
    print(io, line, { ...row, ended, endedByOperator }, [
      ended === null ? 'resumed' : `resumed; ended ${ended.code}: ${ended.message}`,
      ...endedByOperator.map(({ operatorSeq, note }) => `ended the halt of act ${operatorSeq}: ${note}`),
    ]);
    return 0;
  });
}

/** Halts of operators that no resume among these acts has ended, oldest first. */
function standingHalts(acts: readonly OperatorRow[]): OperatorRow[] {
  const resumed = acts.findLastIndex(({ kind }) => kind === 'resume');
  return acts.slice(resumed + 1).filter(({ kind }) => kind === 'halt');
}
