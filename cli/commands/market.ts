import { readMarkets } from '../../ledger/chain/markets.js';
import { appendOperatorRow, readOperatorState } from '../../ledger/operator/operator-log.js';
import { UsageError } from '../errors.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { commandConfig, print, withDatabase, type Io } from './command.js';

/** Delists markets and takes that back. */
export async function runMarket(line: CommandLine, io: Io): Promise<number> {
  const [first, pair] = line.positionals;
  const verb = readVerb('market', first, ['delist', 'relist', 'list']);
  if (verb === 'list' && pair !== undefined) throw new UsageError(`unexpected argument: ${pair}`);
  return withDatabase(commandConfig(line), async (db) => {
    const markets = await readMarkets(db.knex);
    if (verb === 'list') {
      const { delisted } = await readOperatorState(db.knex);
      const rows = markets.map((one) => ({
        pair: one.pair,
        status: delisted.has(one.index) ? 'delisted' : 'listed',
      }));
      print(
        io,
        line,
        rows,
        rows.map((row) => `${row.pair} ${row.status}`),
      );
      return 0;
    }
    const market = markets.find((one) => one.pair === pair);
    if (market === undefined) throw new UsageError(`no such market: ${pair ?? '(none given)'}`);
    const row = await appendOperatorRow(db, {
      timeMs: Date.now(),
      kind: verb,
      maker: null,
      note: '',
      market: market.index,
    });
    print(io, line, row, [`${market.pair} is ${verb}ed`]);
    return 0;
  });
}
