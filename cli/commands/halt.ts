import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { standingCauses } from '../../keepers/watcher/halt-causes.js';
import { readStandingHalt } from '../../keepers/watcher/status.js';
import { COMMON_OPTIONS, commandConfig, commandRpc, print, withDatabase, type Command } from './command.js';

/** Stops readiness, publication and settlement on purpose. */
export const haltCommand: Command = {
  summary: 'stops readiness, publication and settlement on purpose',
  help: `curvebook halt [<note>] [options]

Stops readiness, publication and settlement until \`curvebook resume\`. The ledger goes on following the chain; cancels work.

${COMMON_OPTIONS}`,
  maxArguments: Number.POSITIVE_INFINITY,
  async run(line, io) {
    const note = line.positionals.join(' ') || 'halted by the operator';
    return withDatabase(commandConfig(line), async (db) => {
      const row = await appendOperatorRow(db, { timeMs: Date.now(), kind: 'halt', maker: null, note });
      print(io, line, row, [`halted: ${note}`]);
      return 0;
    });
  },
};

/** There was no halt to put an end to. */
const EXIT_NOT_HALTED = 4;
/** What a halt found is still so. */
const EXIT_CAUSE_STANDS = 5;

/** Puts an end to halts. */
export const resumeCommand: Command = {
  summary: 'puts an end to halts whose cause is gone',
  help: `curvebook resume [--rpc <url>] [options]

Puts an end to every halt that stands now, the operator's own and those that the watcher found, once what they found is no longer so: what
differs from the chain is put right with \`curvebook reconcile\`, what nothing explains with \`curvebook suspense\`. Exits with ${EXIT_CAUSE_STANDS} while the
cause of one stands, with what to run, and with ${EXIT_NOT_HALTED} when nothing is halted.

  --rpc <url>         JSON-RPC endpoints, comma-separated (RPC_URL)
${COMMON_OPTIONS}`,
  maxArguments: 0,
  async run(line, io) {
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
      const causes = await standingCauses({
        ...{ db, rpc, deploymentBlock, contracts, operator: config.operator, nowMs: Date.now() },
      });
      if (causes.length > 0) {
        const text = causes.map((one) => `still halted by ${one.halt.code}: ${one.message}; run: ${one.remedy}`);
        const said = causes.map(({ halt, message, remedy }) => ({ code: halt.code, message, remedy }));
        print(io, line, { ok: false, code: 'CAUSE_STANDS', message: text.join('; '), causes: said }, text);
        return EXIT_CAUSE_STANDS;
      }
      const row = await appendOperatorRow(db, { timeMs: Date.now(), kind: 'resume', maker: null, note: '' });
      const ended = before.byOperator ? null : { code: before.code, message: before.message };
      print(io, line, { ...row, ended }, [
        ended === null ? 'resumed' : `resumed; ended ${ended.code}: ${ended.message}`,
      ]);
      return 0;
    });
  },
};
