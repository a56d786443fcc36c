import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { lastHaltNo } from '../../ledger/chain/halts.js';
import { standingCauses } from '../../keepers/watcher/halt-causes.js';
import { readStandingHalt } from '../../keepers/watcher/status.js';
import type { CommandLine } from '../arguments.js';
import { EXIT_CAUSE_STANDS, EXIT_NOT_HALTED } from '../exit-codes.js';
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

/** Puts an end to halts. */
export async function runResume(line: CommandLine, io: Io): Promise<number> {
  const config = commandConfig(line);
  return withDatabase(config, async (db) => {
    const before = await readStandingHalt(db.knex);
    if (before === null) {
      const message = 'nothing is halted';
      print(io, line, { ok: false, code: 'NOT_HALTED', message }, [message]);
      return EXIT_NOT_HALTED;
    }
    const rpc = config.rpcUrls.length === 0 ? null : commandRpc(config);
    const { deploymentBlock, contracts } = config.manifest;
    // What is found while endpoints are asked was not judged.
    const upToHaltNo = await lastHaltNo(db.knex);
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
    const row = await appendOperatorRow(db, act, { upToHaltNo });
    const ended = before.byOperator ? null : { code: before.code, message: before.message };
    print(io, line, { ...row, ended }, [ended === null ? 'resumed' : `resumed; ended ${ended.code}: ${ended.message}`]);
    return 0;
  });
}
