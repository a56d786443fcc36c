import { formatUnits } from '../../core/amounts.js';
import { maySettle } from '../../core/claim-state.js';
import type { Address, Token } from '../../core/types.js';
import { assignmentEntries } from '../../keepers/watcher/derive/postings.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { accountKey } from '../../ledger/chain/invariants.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readTx } from '../../ledger/db/db.js';
import { waitForWriter } from '../../ledger/db/writers.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { readExposure } from '../../ledger/publications/executable.js';
import { withdrawableUnits } from '../../ledger/settlements/settlement-log.js';
import { readDecided, readSuspense, takenUnits, type SuspenseRow } from '../../ledger/chain/suspense.js';
import type { Db, LedgerEntry, Queryable, Transaction } from '../../ledger/types.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { NO_OPERATOR, type CommandConfig } from '../config.js';
import { ConfigError, UsageError } from '../errors.js';
import { commandConfig, confirm, print, readAddress, withDatabase, type Io } from './command.js';

/** Shows and assigns what no stored book or settlement explains. */
export async function runSuspense(line: CommandLine, io: Io): Promise<number> {
  const [first, ...rest] = line.positionals;
  const verb = readVerb('suspense', first, ['list', 'assign']);
  const config = commandConfig(line);
  if (verb === 'list' && rest.length > 0) throw new UsageError(`unexpected argument: ${rest[0]!}`);
  return withDatabase(config, (db) => (verb === 'list' ? list(db, line, io) : assign(db, config, line, io, rest)));
}

async function list(db: Db, line: CommandLine, io: Io): Promise<number> {
  const rows = await readSuspense(db.knex, { open: !line.all });
  const tokens = await readTokens(db);
  print(io, line, rows, rows.length === 0 ? ['nothing is in suspense'] : rows.map((row) => describe(row, tokens)));
  return 0;
}

async function assign(
  db: Db,
  config: CommandConfig,
  line: CommandLine,
  io: Io,
  [name, to, ...words]: readonly string[],
): Promise<number> {
  const reason = words.join(' ').trim();
  if (name === undefined || reason === '') throw new UsageError('name an item, an account, and a reason');
  const account = to === 'operator' ? config.operator : readAddress(to);
  if (account === null) throw new ConfigError([NO_OPERATOR]);
  const open = await readSuspense(db.knex, { open: true });
  const rows = name === 'all' ? open : open.filter(({ item }) => item === name);
  if (rows.length === 0) throw new UsageError(name === 'all' ? 'nothing is in suspense' : `no open item is ${name}`);
  const tokens = await readTokens(db);
  const markets = await readMarkets(db.knex);
  const books = { markets, snapshots: createSnapshotStore(markets) };
  const check = async (q: Queryable): Promise<void> => {
    if (account !== config.operator) await requireBacked(q, account, rows, books);
  };
  await readTx(db, check);
  if (!line.json) io.output.write(rows.map((row) => `${describe(row, tokens)}\n`).join(''));
  if (!(await confirm(io, line, `Assign to ${account}?`))) {
    print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
    return 1;
  }
  const checkLast = async (tx: Transaction): Promise<void> => {
    // A curve that is being prepared is seen, or its poster sees the act.
    await waitForWriter(tx, 'publication');
    await check(tx);
  };
  const acts = [];
  for (const { item } of rows) {
    const act = { timeMs: Date.now(), kind: 'assign' as const, maker: account, note: reason, item };
    // Once more while the operator log is held: another command may have assigned something meanwhile.
    acts.push(await appendOperatorRow(db, act, { also: checkLast }));
  }
  print(io, line, acts, [`${acts.length} assigned to ${account}; the next scan books it`]);
  return 0;
}

/**
 * Throws UsageError when the assignment would leave the account with less than it may withdraw and executable curves can still make it pay,
 * because neither could be stopped in time. What is assigned to it and not booked yet counts where it takes from the account; where it adds
 * it may still be decided otherwise.
 */
async function requireBacked(
  q: Queryable,
  account: Address,
  rows: readonly SuspenseRow[],
  books: Parameters<typeof readExposure>[1],
): Promise<void> {
  const named = new Set(rows.map(({ item }) => item));
  // All before the balances: what is booked or filled meanwhile then counts twice, and not never.
  const waiting = (await readDecided(q)).filter(({ row, act }) => act.maker === account && !named.has(row.item));
  const changes = changesOf(
    rows.flatMap((row) => assignmentEntries(row, account)),
    account,
  );
  const taken = takenUnits(waiting);
  const claims = await withdrawableUnits(q, account);
  const head = await lastGeneration(q);
  const exposures = head === null ? undefined : (await readExposure(q, books, head, new Set([account]))).get(account);
  const balances = new Map((await readBalances(q, { account })).map((row) => [row.token, row.balanceUnits]));
  for (const [token, changeUnits] of changes) {
    if (changeUnits >= 0n) continue;
    const takenBefore = taken.get(accountKey({ account, token })) ?? 0n;
    const less = takenBefore === 0n ? '' : ', less what is assigned to it and not booked yet';
    const leftUnits = (balances.get(token) ?? 0n) - takenBefore + changeUnits;
    const claimUnits = claims.get(token) ?? 0n;
    if (leftUnits < claimUnits && claimUnits > 0n) {
      throw new UsageError(
        `${account} may withdraw ${claimUnits} units of ${token} and would have ${leftUnits}${less}: lower the claim first (curvebook claim lower)`,
      );
    }
    const { worstUnits, untilSec } = exposures?.get(token) ?? { worstUnits: 0n, untilSec: 0 };
    if (maySettle(claimUnits, leftUnits, worstUnits)) continue;
    throw new UsageError(
      `executable curves may still take ${worstUnits} units of ${token} from ${account} until ${new Date(untilSec * 1_000).toISOString()}, it may withdraw ${claimUnits}, and it would have ${leftUnits}${less}: try again when they have expired or newer ones without these orders have landed; where posts go on, stop them until then (curvebook halt)`,
    );
  }
}

/** What postings add to an account, by token. */
function changesOf(entries: readonly LedgerEntry[], account: Address): ReadonlyMap<Address, bigint> {
  const changes = new Map<Address, bigint>();
  for (const one of entries) {
    if (one.account === account) changes.set(one.token, (changes.get(one.token) ?? 0n) + one.amountUnits);
  }
  return changes;
}

async function readTokens(db: Db): Promise<ReadonlyMap<Address, Token>> {
  const tokens = (await readMarkets(db.knex)).flatMap(({ base, quote }) => [base, quote]);
  return new Map(tokens.map((token) => [token.address, token]));
}

function describe(row: SuspenseRow, tokens: ReadonlyMap<Address, Token>): string {
  const sides = [
    [row.token, row.units],
    [row.otherToken, row.otherUnits],
  ] as const;
  const amounts = sides.flatMap(([address, units]) => {
    if (address === null || units === 0n) return [];
    const token = tokens.get(address);
    return [
      token === undefined ? `${units} units of ${address}` : `${formatUnits(units, token.decimals)} ${token.symbol}`,
    ];
  });
  const done =
    row.assignment === null ? '' : `, assigned to ${row.assignment.account} by act ${row.assignment.operatorSeq}`;
  const held = amounts.length === 0 ? '' : ` (${amounts.join(', ')})`;
  return `${row.item} block ${row.blockNumber} ${row.kind}: ${row.message}${held}${done}`;
}
