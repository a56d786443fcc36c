import { appendOperatorRow, readOperatorState } from '../../ledger/operator/operator-log.js';
import { UsageError } from '../config.js';
import { COMMON_OPTIONS, commandConfig, print, readAddress, withDatabase, type Command } from './command.js';

/** Approves, suspends or lists makers. */
export const makerCommand: Command = {
  summary: 'who may quote: approve, suspend, list',
  help: `curvebook maker <approve|suspend> <address> [options]
curvebook maker list [options]

Approval lets an address quote; suspension closes its orders and keeps its funds withdrawable.

${COMMON_OPTIONS}`,
  maxArguments: 2,
  async run(line, io) {
    const [verb, address] = line.positionals;
    if (verb !== 'list' && verb !== 'approve' && verb !== 'suspend') {
      throw new UsageError(`unknown command: maker ${verb ?? ''}`.trim());
    }
    const maker = verb === 'list' ? null : readAddress(address);
    if (maker === null && address !== undefined) throw new UsageError(`unexpected argument: ${address}`);
    return withDatabase(commandConfig(line), async (db) => {
      if (maker === null || verb === 'list') {
        const { approved, suspended } = await readOperatorState(db.knex);
        const rows = [
          ...[...approved].map((one) => ({ maker: one, status: 'approved' })),
          ...[...suspended].map((one) => ({ maker: one, status: 'suspended' })),
        ].sort((a, b) => (a.maker < b.maker ? -1 : 1));
        print(
          io,
          line,
          rows,
          rows.map((row) => `${row.maker} ${row.status}`),
        );
        return 0;
      }
      const row = await appendOperatorRow(db, { timeMs: Date.now(), kind: verb, maker, note: '' });
      print(io, line, row, [`${maker} is ${verb === 'approve' ? 'approved' : 'suspended'}`]);
      return 0;
    });
  },
};
