import { Transaction } from 'ethers';
import { listOutbox } from '../../ledger/transactions/outbox.js';
import { COMMON_OPTIONS, commandConfig, print, readAddress, withDatabase, type Command } from './command.js';

const LIMIT = 200;

/** Lists stored transactions. */
export const outboxCommand: Command = {
  summary: 'what keepers have signed and the chain has not used yet',
  help: `curvebook outbox [<signer>] [--all] [options]

Lists the transactions that keepers have signed and that the chain has not used yet, newest nonce first; with --all the newest ${LIMIT}
in any state: unmined, used, or given up, when its key is not in use any more and nothing can come of it.

${COMMON_OPTIONS}`,
  maxArguments: 1,
  async run(line, io) {
    const signer = line.positionals[0];
    return withDatabase(commandConfig(line), async (db) => {
      const rows = await listOutbox(db.knex, {
        ...(signer === undefined ? {} : { signer: readAddress(signer) }),
        unfinished: !line.all,
        limit: LIMIT,
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
  },
};

function stateOf({ finished, givenUp }: { finished: boolean; givenUp: boolean }): string {
  if (givenUp) return 'given up';
  return finished ? 'used' : 'unmined';
}
