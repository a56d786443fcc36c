import { readTx } from '../../ledger/db/db.js';
import { lastCheckpoint, readCheckpointState } from '../../ledger/settlements/checkpoint-log.js';
import type { CommandLine } from '../arguments.js';
import { commandConfig, print, withDatabase, type Io } from './command.js';

/** Shows the latest checkpoint. */
export async function runCheckpoint(line: CommandLine, io: Io): Promise<number> {
  return withDatabase(commandConfig(line), async (db) => {
    const shown = await readTx(db, async (q) => {
      const head = await lastCheckpoint(q);
      return head === null ? null : { ...head, rows: await readCheckpointState(q, head) };
    });
    if (shown === null) {
      print(io, line, null, ['no checkpoint yet']);
      return 0;
    }
    print(io, line, shown, [
      `checkpoint ${shown.checkpointSeq} of ${new Date(shown.timestampMs).toISOString()}, generation ${shown.generation}, ` +
        `block ${shown.blockNumber} (${shown.blockHash})`,
      `root ${shown.root}, ${shown.leafCount} leaves`,
      ...shown.rows.map(
        (row) => `${row.account} ${row.token} ${row.balanceUnits}, ${row.reservedUnits} of it reserved`,
      ),
    ]);
    return 0;
  });
}
