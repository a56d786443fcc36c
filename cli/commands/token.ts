import { servedTokens } from '../../core/operator-row.js';
import type { Address, Token } from '../../core/types.js';
import type { RpcPool } from '../../keepers/chain/pool.js';
import { surveyOf } from '../../keepers/chain/quorum.js';
import { NoMajorityError, majorityOf } from '../../keepers/watcher/scan/majority.js';
import { readSaid } from '../../keepers/watcher/tokens/tokens.js';
import { readMarkets, readTokenListings } from '../../ledger/chain/markets.js';
import { appendOperatorRow, readOperatorState } from '../../ledger/operator/operator-log.js';
import { standingFindings } from '../../ledger/chain/token-findings.js';
import type { Db, Queryable, SaidOfToken } from '../../ledger/types.js';
import { UsageError } from '../errors.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { commandConfig, commandRpc, confirm, print, withDatabase, type Io } from './command.js';

/** One listed token as the watcher has it. */
interface TokenRow {
  token: string;
  address: Address;
  pairs: string[];
  state: 'trusted' | 'doubt' | 'quarantined';
  /** What stands against it, oldest first. */
  findings: { cause: string; state: string; code: string; message: string; blockNumber: number; timeMs: number }[];
  /** Its metadata at the listing, with the block, or as the operator confirmed it; nulls where unknown. */
  said: SaidOfToken | null;
  readBlock: number | null;
}

/** Shows findings about tokens and their metadata, or confirms new metadata. */
export async function runToken(line: CommandLine, io: Io): Promise<number> {
  const [first, name] = line.positionals;
  const verb = readVerb('token', first, ['list', 'reread']);
  if (verb === 'list' && name !== undefined) throw new UsageError(`unexpected argument: ${name}`);
  const config = commandConfig(line);
  return withDatabase(config, async (db) => {
    const rows = await readTokenRows(db.knex);
    if (verb === 'list') {
      print(io, line, rows, rows.flatMap(describe));
      return 0;
    }
    const token = await findToken(db, name);
    const said = await readAgreed(commandRpc(config), token);
    const known = rows.find(({ address }) => address === token.address)?.said ?? null;
    const before = known === null ? 'nothing that is known' : text(known);
    io.errors.write(`${token.symbol} (${token.address}) said ${before}, and says ${text(said)} now\n`);
    if (!(await confirm(io, line, 'Take that for right?'))) {
      print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
      return 1;
    }
    const row = await appendOperatorRow(db, {
      timeMs: Date.now(),
      kind: 'reread',
      maker: null,
      note: '',
      reread: { token: token.address, ...said },
    });
    print(io, line, row, [`${token.symbol} is read again, as act ${row.operatorSeq}: ${text(said)}`]);
    return 0;
  });
}

/** What a majority of all endpoints says: amounts are read by it from then on. Throws NoMajorityError. */
async function readAgreed(rpc: RpcPool, { symbol, address }: Token): Promise<SaidOfToken> {
  const votes = await surveyOf(rpc, (one) => readSaid(one, address), undefined, true);
  const total = rpc.endpoints.length;
  const needed = majorityOf(total);
  const nameOf = ({ symbol: said, decimals }: SaidOfToken): string => JSON.stringify([said, decimals]);
  const same = (one: SaidOfToken): number => votes.filter(({ answer }) => nameOf(answer) === nameOf(one)).length;
  const agreed = votes.find(({ answer }) => same(answer) >= needed);
  if (agreed !== undefined) return agreed.answer;
  const heard = votes.map(({ endpoint, answer }) => `${endpoint.name}: ${text(answer)}`).join(', ');
  throw new NoMajorityError(
    `of ${total} endpoints no ${needed} say the same of ${symbol} (${heard || 'none answers'}); nothing was done`,
  );
}

/** Every listed token, in the order of listing. */
export async function readTokenRows(q: Queryable): Promise<TokenRow[]> {
  const markets = await readMarkets(q);
  const listings = new Map((await readTokenListings(q)).map((one) => [one.token, one]));
  const { reread } = await readOperatorState(q);
  const found = await standingFindings(q);
  return servedTokens(markets).map(({ address, symbol }) => {
    const findings = found.filter(({ token }) => token === address);
    const isHeld = findings.some(({ state }) => state === 'quarantined');
    return {
      token: symbol,
      address,
      pairs: markets
        .filter(({ base, quote }) => base.address === address || quote.address === address)
        .map(({ pair }) => pair),
      state: isHeld ? ('quarantined' as const) : findings.length > 0 ? ('doubt' as const) : ('trusted' as const),
      findings: findings.map(({ cause, state, code, message, blockNumber, timeMs }) => ({
        ...{ cause, state, code, message, blockNumber, timeMs },
      })),
      said: reread.get(address) ?? listings.get(address)?.said ?? null,
      readBlock: listings.get(address)?.readBlock ?? null,
    };
  });
}

/** Lines on what stands against tokens; none while nothing does. */
export function describeFindings(rows: readonly TokenRow[]): string[] {
  return rows.flatMap(({ token, pairs, findings }) =>
    findings.map(
      ({ state, code, message, blockNumber }) =>
        `${token} ${state === 'quarantined' ? `in quarantine, ${pairs.join(', ')} stand still` : 'in doubt'}: ` +
        `${code} since block ${blockNumber}: ${message}`,
    ),
  );
}

function describe(row: TokenRow): string[] {
  const said = row.said === null ? 'nothing that is known' : text(row.said);
  return [`${row.token} ${row.address} ${row.state}, said ${said}`, ...describeFindings([row])];
}

const text = ({ symbol, decimals }: SaidOfToken): string =>
  `${JSON.stringify(symbol.replaceAll(/[^\x20-\x7e]/g, '?'))} with ${decimals ?? 'no'} decimals`;

async function findToken(db: Db, name: string | undefined): Promise<Token> {
  const tokens = servedTokens(await readMarkets(db.knex));
  const found = tokens.find(({ symbol, address }) => symbol === name || address === name?.toLowerCase());
  if (found === undefined) throw new UsageError(`no listed pair trades ${name ?? '(no token given)'}`);
  return found;
}
