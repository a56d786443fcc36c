import { appendOperatorRow, readOperatorState } from '../../ledger/operator/operator-log.js';
import { UsageError } from '../errors.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { commandConfig, print, readAddress, withDatabase, type Io } from './command.js';

/** Approves, suspends or lists makers. */
export async function runMaker(line: CommandLine, io: Io): Promise<number> {
  const [first, address] = line.positionals;
  const verb = readVerb('maker', first, ['approve', 'suspend', 'list']);
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
}
