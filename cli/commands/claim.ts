import { parseUnits } from '../../core/amounts.js';
import type { Token } from '../../core/types.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import type { Db } from '../../ledger/types.js';
import { UsageError } from '../config.js';
import { COMMON_OPTIONS, commandConfig, print, readAddress, withDatabase, type Command } from './command.js';

/** Lowers a settled claim. */
export const claimCommand: Command = {
  summary: 'lowers a settled claim, or cancels it',
  help: `curvebook claim lower <maker> <token> <amount> [options]

Asks the settler to lower a settled claim to an amount in token units, 0 to cancel it. Of use while its delay has not passed: an
executed claim can't be lowered. What is taken off stays in the maker's balance.

${COMMON_OPTIONS}`,
  maxArguments: 4,
  async run(line, io) {
    const [verb, maker, symbol, amount] = line.positionals;
    if (verb !== 'lower') throw new UsageError(`unknown command: claim ${verb ?? ''}`);
    return withDatabase(commandConfig(line), async (db) => {
      const token = await readToken(db, symbol);
      const address = readAddress(maker);
      const amountUnits = readAmount(amount, token);
      const claim = await readClaim(db.knex, { maker: address, token: token.address });
      if (amountUnits >= claim.claimUnits)
        throw new UsageError(`the claim is ${claim.claimUnits} units; ${amountUnits} does not lower it`);
      const row = await appendOperatorRow(db, {
        timeMs: Date.now(),
        kind: 'lowerClaim',
        maker: address,
        note: '',
        lower: { token: token.address, amountUnits },
      });
      print(io, line, row, [
        `asked the settler, as act ${row.operatorSeq}, to lower the claim of ${address} to ${amount} ${token.symbol}`,
      ]);
      return 0;
    });
  },
};

async function readToken(db: Db, symbol: string | undefined): Promise<Token> {
  const tokens = (await readMarkets(db.knex)).flatMap(({ base, quote }) => [base, quote]);
  const found = tokens.find((token) => token.symbol === symbol || token.address === symbol?.toLowerCase());
  if (found === undefined) throw new UsageError(`no listed pair trades ${symbol ?? '(no token given)'}`);
  return found;
}

function readAmount(text: string | undefined, token: Token): bigint {
  try {
    return parseUnits(text ?? '', token.decimals);
  } catch {
    throw new UsageError(`not an amount of ${token.symbol}: ${text ?? '(none given)'}`);
  }
}
