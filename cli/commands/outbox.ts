import { Transaction } from 'ethers';
import { listOutbox } from '../../ledger/transactions/outbox.js';
import type { CommandLine } from '../arguments.js';
import { commandConfig, print, readAddress, withDatabase, type Io } from './command.js';
import { OUTBOX_ROWS } from './limits.js';

/** Lists stored transactions. */
export async function runOutbox(line: CommandLine, io: Io): Promise<number> {
  const signer = line.positionals[0];
  return withDatabase(commandConfig(line), async (db) => {
    const rows = await listOutbox(db.knex, {
      ...(signer === undefined ? {} : { signer: readAddress(signer) }),
      unfinished: !line.all,
      limit: OUTBOX_ROWS,
    });
    const shown = rows.map(({ raw, ...row }) => {
      const { maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw);
      return { ...row, maxFeeWei: maxFeePerGas ?? 0n, priorityWei: maxPriorityFeePerGas ?? 0n };
    });
    const text = shown.map(
      (row) =>
        `${row.signer} nonce ${row.nonce} ${stateOf(row)} ${row.txKey} ${row.hash} ` +
        `${new Date(row.sentMs).toISOString()} max fee ${row.maxFeeWei} wei`,
    );
    print(io, line, shown, text.length === 0 ? ['no transactions'] : text);
    return 0;
  });
}

function stateOf({ finished, givenUp }: { finished: boolean; givenUp: boolean }): string {
  if (givenUp) return 'given up';
  return finished ? 'used' : 'unmined';
}
