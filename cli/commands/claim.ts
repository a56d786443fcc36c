import { parseUnits } from '../../core/amounts.js';
import type { Token } from '../../core/types.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import type { Db } from '../../ledger/types.js';
import { UsageError } from '../errors.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { commandConfig, print, readAddress, withDatabase, type Io } from './command.js';

/** Lowers a settled claim. */
export async function runClaim(line: CommandLine, io: Io): Promise<number> {
  const [verb, maker, symbol, amount] = line.positionals;
  readVerb('claim', verb, ['lower']);
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
}

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
