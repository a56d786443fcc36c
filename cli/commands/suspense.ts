import { ZeroAddress } from 'ethers';
import { formatUnits } from '../../core/amounts.js';
import { maySettle } from '../../core/claim-state.js';
import type { Address, Market, Token } from '../../core/types.js';
import { assignmentEntries } from '../../keepers/watcher/derive/postings.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { accountKey } from '../../ledger/chain/invariants.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readTx } from '../../ledger/db/db.js';
import { extremes } from '../../ledger/db/rows.js';
import { waitForWriter } from '../../ledger/db/writers.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { readExposure } from '../../ledger/publications/executable.js';
import { withdrawableUnits } from '../../ledger/settlements/settlement-log.js';
import { readDecided, readSuspense, takenUnits, type SuspenseRow } from '../../ledger/chain/suspense.js';
import type { Db, LedgerEntry, OperatorRow, Queryable, Transaction } from '../../ledger/types.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { NO_OPERATOR, type CommandConfig } from '../config.js';
import { ConfigError, UsageError } from '../errors.js';
import { actsMeanwhile } from './acts.js';
import { CommandError } from './command-error.js';
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
  const { rows, decisions } = await readTx(db, async (q) => ({
    rows: await readSuspense(q, { open: !line.all }),
    decisions: await readDecisions(q),
  }));
  const tokens = await readTokens(db);
  const said = rows.map((row) => ({ ...row, decision: decisions.get(row.item) ?? null }));
  const lines = said.map((row) => describe(row, tokens, row.decision));
  print(io, line, said, rows.length === 0 ? ['nothing is in suspense'] : lines);
  return 0;
}

/** What an operator decided about an open item; the next scan books it, unless it is decided otherwise before. */
interface Decision {
  account: Address;
  operatorSeq: number;
  note: string;
}

/** Decisions that are not booked yet, by item. */
async function readDecisions(q: Queryable): Promise<ReadonlyMap<string, Decision>> {
  const decided = await readDecided(q);
  return new Map(
    decided.map(({ row, act: { maker: account, operatorSeq, note } }) => [row.item, { account, operatorSeq, note }]),
  );
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
  const markets = await readMarkets(db.knex);
  if (account !== config.operator) requireAccount(account, config, markets);
  // In one transaction: whatever is decided after `lastSeq` was not shown to whoever is asked.
  const { open, decisions, lastSeq } = await readTx(db, async (q) => ({
    open: await readSuspense(q, { open: true }),
    decisions: await readDecisions(q),
    lastSeq: (await extremes(q, 'operator_log', 'operator_seq'))?.most ?? 0,
  }));
  const rows = name === 'all' ? open : open.filter(({ item }) => item === name);
  if (rows.length === 0) throw new UsageError(name === 'all' ? 'nothing is in suspense' : `no open item is ${name}`);
  const otherwise = rows.flatMap(({ item }) => {
    const decision = decisions.get(item);
    return decision === undefined || decision.account === account ? [] : [{ item, ...decision }];
  });
  if (name === 'all' && otherwise.length > 0) throw alreadyDecided(otherwise);
  const tokens = await readTokens(db);
  const books = { markets, snapshots: createSnapshotStore(markets) };
  const check = async (q: Queryable, those: readonly SuspenseRow[]): Promise<void> => {
    if (account !== config.operator) await requireBacked(q, account, those, books);
  };
  await readTx(db, (q) => check(q, rows));
  if (!line.json)
    io.output.write(rows.map((row) => `${describe(row, tokens, decisions.get(row.item) ?? null)}\n`).join(''));
  const against = otherwise.map((one) => `, and not to ${one.account} as act ${one.operatorSeq} says (${one.note})`);
  if (!(await confirm(io, line, `Assign to ${account}${against.join('')}?`))) {
    print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
    return 1;
  }
  const acts: OperatorRow[] = [];
  const checkLast = async (tx: Transaction, item: string): Promise<void> => {
    // A curve that is being prepared is seen, or its poster sees the act.
    await waitForWriter(tx, 'publication');
    const stillOpen = new Set((await readSuspense(tx, { open: true })).map((row) => row.item));
    const before = acts.length === 0 ? 'nothing was assigned' : `${acts.length} of ${rows.length} were assigned before`;
    if (!stillOpen.has(item)) {
      throw new CommandError(
        'ITEM_CLOSED',
        `${item} is not open any more: it was booked or explained meanwhile (curvebook suspense list --all); ${before}`,
      );
    }
    const newest = (await actsMeanwhile(tx, lastSeq)).findLast((act) => act.kind === 'assign' && act.item === item);
    if (newest !== undefined && newest.maker !== account) {
      throw new CommandError(
        'DECIDED_MEANWHILE',
        `somebody decided meanwhile, by act ${newest.operatorSeq}, that ${item} goes to ${newest.maker} (${newest.note}); ${before}`,
      );
    }
    // What is booked by now is in the balances, and must not count twice.
    await check(
      tx,
      rows.filter((row) => stillOpen.has(row.item)),
    );
  };
  for (const { item } of rows) {
    const act = { timeMs: Date.now(), kind: 'assign' as const, maker: account, note: reason, item };
    // Once more while the operator log is held: another command may have assigned something meanwhile.
    acts.push(await appendOperatorRow(db, act, { also: (tx) => checkLast(tx, item) }));
  }
  print(io, line, acts, [`${acts.length} assigned to ${account}; the next scan books it`]);
  return 0;
}

function alreadyDecided(decided: readonly (Decision & { item: string })[]): CommandError {
  const told = decided.map(
    ({ item, account, operatorSeq, note }) => `${item} is to be booked to ${account} by act ${operatorSeq} (${note})`,
  );
  return new CommandError(
    'ALREADY_DECIDED',
    `${told.join('; ')}; name ${told.length === 1 ? 'it' : 'each'} alone to decide otherwise, or wait until the next scan has booked it`,
  );
}

/** Throws CommandError `BAD_ACCOUNT` for an address that nobody withdraws from: what is booked to it would be lost. */
function requireAccount(account: Address, { manifest }: CommandConfig, markets: readonly Market[]): void {
  const strange = new Map<string, string>([[ZeroAddress, 'the zero address']]);
  const tokens = [...manifest.tokens, ...markets.flatMap(({ base, quote }) => [base, quote])];
  for (const { address, symbol } of tokens) strange.set(address.toLowerCase(), `the token ${symbol}`);
  for (const [name, address] of Object.entries(manifest.contracts)) {
    if (typeof address === 'string' && !strange.has(address.toLowerCase()))
      strange.set(address.toLowerCase(), `the contract ${name}`);
  }
  const what = strange.get(account);
  if (what === undefined) return;
  throw new CommandError(
    'BAD_ACCOUNT',
    `${account} is ${what}, which nothing can be booked to: name the address of a maker, or operator`,
  );
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

function describe(row: SuspenseRow, tokens: ReadonlyMap<Address, Token>, decision: Decision | null): string {
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
  const waits =
    decision === null ? '' : `, to be booked to ${decision.account} by act ${decision.operatorSeq}: ${decision.note}`;
  const held = amounts.length === 0 ? '' : ` (${amounts.join(', ')})`;
  return `${row.item} block ${row.blockNumber} ${row.kind}: ${row.message}${held}${done}${waits}`;
}
