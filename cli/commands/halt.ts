import { appendOperatorRow } from '../../ledger/operator-log.js';
import { readHalt } from '../../ledger/halts.js';
import { COMMON_OPTIONS, commandConfig, print, withDatabase, type Command } from './command.js';

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

/** Puts an end to halts. */
export const resumeCommand: Command = {
  summary: 'puts an end to halts',
  help: `curvebook resume [options]

Puts an end to every halt that stands now, the operator's own and those that the watcher found. A watcher that finds the same
again halts again; after a reorganisation of the chain it is \`curvebook reconcile\` that is needed.

${COMMON_OPTIONS}`,
  maxArguments: 0,
  async run(line, io) {
    return withDatabase(commandConfig(line), async (db) => {
      const before = await readHalt(db.knex);
      const row = await appendOperatorRow(db, { timeMs: Date.now(), kind: 'resume', maker: null, note: '' });
      print(io, line, { ...row, ended: before }, [
        before === null ? 'resumed' : `resumed; ended ${before.code}: ${before.message}`,
      ]);
      return 0;
    });
  },
};
