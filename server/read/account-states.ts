import type { Address } from '../../core/types.js';
import { readBalancesAfter } from '../../ledger/chain/ledger-log.js';
import { readGeneration } from '../../ledger/chain/generations.js';
import { readCapitalOrigin } from '../../ledger/chain/operator-capital.js';
import { readTx } from '../../ledger/db/db.js';
import { fillSeqs, lastGeneration, makerBalances } from '../../ledger/views/reads.js';
import type { BalanceRow, Db, Queryable } from '../../ledger/types.js';
import type { AccountState } from './deps.js';

/** Most accounts that are held; the one that was asked for least recently goes first. */
const MAX_ACCOUNTS = 20_000;
/** How often a read is repeated when generations keep coming between its parts; then the account is read by itself. */
const TRIES = 3;

/** What is held: everything is of the same generation. */
interface Held extends Omit<AccountState, 'balances'> {
  accounts: Map<Address, BalanceRow[]>;
}

/**
 * States of accounts after the newest durable generation, from memory. Every row of the ledger comes with a generation, so one look at the
 * newest one says whether what is held is still true; requests that come while a look is in progress share the next one. Of a new
 * generation only the rows that changed are read, and of an account all rows once.
 */
export function createAccountStates(db: Db, maxAccounts = MAX_ACCOUNTS): (account: Address) => Promise<AccountState> {
  let held: Held | null = null;
  let looking: Promise<Held> | null = null;
  let nextLook: Promise<Held> | null = null;
  const readingAccounts = new Map<Address, Promise<AccountState>>();

  /** What is true of the newest generation that was durable when this was called, or of a later one. */
  function newest(): Promise<Held> {
    if (looking === null) {
      looking = look().finally(() => {
        looking = null;
      });
      return looking;
    }
    // The one in progress may have read before a generation that its caller knows of.
    nextLook ??= looking
      .catch(() => undefined)
      .then(() => {
        nextLook = null;
        return newest();
      });
    return nextLook;
  }

  async function look(): Promise<Held> {
    const head = await lastGeneration(db.reads);
    if (held !== null && isSame(held.generation, head)) return held;
    const before = held;
    const after = await readTx(db, async (tx) => ({
      ...(await readCommon(tx)),
      changed: before === null ? [] : await readBalancesAfter(tx, before.generation?.generation ?? 0),
      isKnown: before !== null && before.generation !== null && (await isStored(tx, before.generation)),
    }));
    const { changed, isKnown, ...common } = after;
    // Without the generation that is held this is another database, such as a promoted replica, of which nothing is known yet.
    held = { ...common, accounts: before !== null && isKnown ? before.accounts : new Map<Address, BalanceRow[]>() };
    for (const row of changed) replaceRow(held.accounts, row);
    return held;
  }

  /** Requests for one account that is not held share a read; each compares its generation with the one that it has seen itself. */
  function readAccount(account: Address): Promise<AccountState> {
    const known = readingAccounts.get(account);
    if (known !== undefined) return known;
    const reading = readNow(account).finally(() => readingAccounts.delete(account));
    readingAccounts.set(account, reading);
    return reading;
  }

  async function readNow(account: Address): Promise<AccountState> {
    const state = await readTx(db, async (tx) => ({
      ...(await readCommon(tx)),
      balances: await makerBalances(tx, account),
    }));
    if (held !== null && isSame(held.generation, state.generation)) hold(held.accounts, account, state.balances);
    return state;
  }

  function hold(accounts: Held['accounts'], account: Address, balances: BalanceRow[]): void {
    accounts.delete(account);
    accounts.set(account, balances);
    if (accounts.size > maxAccounts) accounts.delete(accounts.keys().next().value as Address);
  }

  return async (account) => {
    for (let tries = 1; ; tries += 1) {
      const { accounts, ...common } = await newest();
      const balances = accounts.get(account);
      if (balances !== undefined) {
        hold(accounts, account, balances);
        return { ...common, balances: [...balances] };
      }
      const read = await readAccount(account);
      if (isSame(read.generation, common.generation) || tries === TRIES) return read;
    }
  };
}

async function readCommon(tx: Queryable): Promise<Omit<AccountState, 'balances'>> {
  return {
    generation: await lastGeneration(tx),
    fillSeqs: await fillSeqs(tx),
    capitalOrigin: await readCapitalOrigin(tx),
  };
}

type Head = AccountState['generation'];

const isStored = async (tx: Queryable, held: NonNullable<Head>): Promise<boolean> =>
  isSame(await readGeneration(tx, held.generation), held);

/** A number is used once: a reversal, too, is a generation of its own. The hash tells a restored database apart. */
const isSame = (a: Head, b: Head): boolean => a?.generation === b?.generation && a?.blockHash === b?.blockHash;

/** In the place of the row of its token, or where the order by token puts a new one. Of an account that is not held, nothing. */
function replaceRow(accounts: Held['accounts'], row: BalanceRow): void {
  const rows = accounts.get(row.account as Address);
  if (rows === undefined) return;
  const others = rows.filter(({ token }) => token !== row.token);
  const next = [...others, row].sort((a, b) => (a.token < b.token ? -1 : 1));
  accounts.set(row.account as Address, next);
}
