/** What mined transactions cost, one row per nonce of a signer, and the same by day and market. Written by the writer of the log that sent them. */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { GAS_DAYS, periodOf } from '../accounts/tables.js';
import { addTo, createSums, storeSums, type Sums } from '../accounts/sums.js';
import { highest, lowest } from '../db/aggregates.js';
import { chunks, fromColumn, insertAll, toColumn } from '../db/columns.js';
import { isSqlite, placeholders, sendChange, sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';
import { readUnmined } from './outbox.js';

/** Who sends transactions, and the table of what they cost. */
export const COST_TABLES = { poster: 'post_costs', settler: 'settlement_costs', executor: 'order_costs' } as const;
export type CostRole = keyof typeof COST_TABLES;
export const COST_ROLES = ['poster', 'settler', 'executor'] as const satisfies readonly CostRole[];

/** Market number of costs that belong to no market. */
export const NO_MARKET = -1;

export interface TransactionCost {
  signer: Address;
  nonce: number;
  hash: Hex;
  txKey: string;
  blockNumber: number;
  gasUsed: number;
  /** With the data fee of a rollup. */
  feeWei: bigint;
  /** False for a transaction that reverted, or a nonce that another transaction took. */
  succeeded: boolean;
  seenMs: number;
  /** The contract's error, as one endpoint said when it ran the call again: for people to read, nothing rests on it. Absent where nobody knows. */
  revertReason?: string;
}

type StoredRow = Stored<'post_costs'>;

/** Stored as the hash when no endpoint had a receipt of any transaction of the nonce. */
export const UNKNOWN_HASH: Hex = '0x';

/** Appends costs; a nonce that is there already violates the primary key. */
export async function insertCosts(
  tx: Knex.Transaction,
  role: CostRole,
  costs: readonly TransactionCost[],
): Promise<void> {
  if (costs.length === 0) return;
  await lockGas(tx, 'row exclusive');
  const marketsOf = await marketsByKey(
    tx,
    role,
    costs.map(({ txKey }) => txKey),
  );
  const rows = costs.map((cost): StoredRow => ({
    signer: cost.signer,
    nonce: cost.nonce,
    hash: cost.hash,
    tx_key: cost.txKey,
    block_number: cost.blockNumber,
    gas_used: cost.gasUsed,
    fee_wei: toColumn(cost.feeWei),
    succeeded: cost.succeeded ? 1 : 0,
    seen_ms: cost.seenMs,
    markets: (marketsOf.get(cost.txKey) ?? []).join(','),
    revert_reason: cost.revertReason ?? null,
  }));
  await insertAll(tx, COST_TABLES[role], rows);
  const sums = createSums(GAS_DAYS);
  for (const row of rows) addGas(sums, role, row);
  await storeSums(tx, sums);
}

/**
 * Writers of costs read sums and add to them, at an isolation level that sees later commits of others. So they must not run while all sums
 * are rebuilt, and a rebuild waits for them; on SQLite there is one write transaction at a time.
 */
async function lockGas(tx: Knex.Transaction, mode: 'row exclusive' | 'share row exclusive'): Promise<void> {
  if (!isSqlite(tx)) await tx.raw(`lock table ${GAS_DAYS.name} in ${mode} mode`);
}

/**
 * Deletes costs of a signer, from a nonce on or of that nonce alone, and subtracts them from the sums. Inside a transaction of the role's
 * writer.
 */
export async function dropCosts(
  tx: Knex.Transaction,
  role: CostRole,
  { signer, from, to = Number.MAX_SAFE_INTEGER }: { signer: Address; from: number; to?: number },
): Promise<TransactionCost[]> {
  await lockGas(tx, 'row exclusive');
  const where = 'signer = ? and nonce >= ? and nonce <= ?';
  const bindings = [signer, from, to];
  const rows = await sendForRows<StoredRow>(
    tx,
    `select * from ${COST_TABLES[role]} where ${where} order by nonce`,
    bindings,
  );
  if (rows.length === 0) return [];
  await sendChange(tx, `delete from ${COST_TABLES[role]} where ${where}`, bindings);
  const sums = createSums(GAS_DAYS);
  for (const row of rows) addGas(sums, role, row, -1n);
  await storeSums(tx, sums);
  return rows.map(fromRow);
}

/** Costs of a signer by nonce: those after `after`, in blocks up to `toBlock`, at most `limit`; of nonces whose transaction is known. */
export async function readCostsAfter(
  q: Queryable,
  role: CostRole,
  { signer, after, toBlock, limit }: { signer: Address; after: number; toBlock: number; limit: number },
): Promise<TransactionCost[]> {
  const sql =
    `select * from ${COST_TABLES[role]} where signer = ? and nonce > ? and block_number <= ? and hash <> ? ` +
    'order by nonce limit ?';
  return (await sendForRows<StoredRow>(q, sql, [signer, after, toBlock, UNKNOWN_HASH, limit])).map(fromRow);
}

/**
 * Signers with transactions that the chain has dropped although their costs are stored, with the lowest such nonce; their keeper sends it
 * again.
 */
export async function readReopened(q: Queryable, role: CostRole): Promise<{ signer: Address; nonce: number }[]> {
  const found: { signer: Address; nonce: number }[] = [];
  for (const { signer, count } of await readUnmined(q)) {
    if (count === 0) continue;
    const first = await lowest(q('outbox').where({ signer, finished: 0 }), 'nonce');
    if (first === null) continue;
    const cost: unknown = await q(COST_TABLES[role]).where({ signer }).where('nonce', '>=', first).first('nonce');
    if (cost !== undefined) found.push({ signer, nonce: first });
  }
  return found;
}

/** Every signer with stored costs of a role, with the highest nonce. */
export async function readCostedSigners(
  q: Queryable,
  role: CostRole,
): Promise<{ signer: Address; lastNonce: number }[]> {
  const found: { signer: Address; lastNonce: number }[] = [];
  for (const { signer } of await readUnmined(q)) {
    const last = await highest(q(COST_TABLES[role]).where({ signer }), 'nonce');
    if (last !== null) found.push({ signer, lastNonce: last });
  }
  return found;
}

/** Nonces of which no receipt was ever found, by signer and nonce, those after `after`, at most `limit`. */
export async function readUnknownCosts(
  q: Queryable,
  role: CostRole,
  after: { signer: string; nonce: number },
  limit: number,
): Promise<TransactionCost[]> {
  const sql =
    `select * from ${COST_TABLES[role]} where hash = '${UNKNOWN_HASH}' and (signer > ? or (signer = ? and nonce > ?)) ` +
    'order by signer, nonce limit ?';
  return (await sendForRows<StoredRow>(q, sql, [after.signer, after.signer, after.nonce, limit])).map(fromRow);
}

/** Costs of a signer seen after `sinceMs`, oldest first. */
export async function readCosts(
  q: Queryable,
  role: CostRole,
  { signer, sinceMs }: { signer: Address; sinceMs: number },
): Promise<TransactionCost[]> {
  const sql = `select * from ${COST_TABLES[role]} where signer = ? and seen_ms > ? order by nonce`;
  return (await sendForRows<StoredRow>(q, sql, [signer, sinceMs])).map(fromRow);
}

const fromRow = (row: StoredRow): TransactionCost => ({
  signer: row.signer,
  nonce: row.nonce,
  hash: row.hash,
  txKey: row.tx_key,
  blockNumber: row.block_number,
  gasUsed: row.gas_used,
  feeWei: fromColumn(row.fee_wei),
  succeeded: row.succeeded === 1,
  seenMs: row.seen_ms,
  ...(row.revert_reason === null ? {} : { revertReason: row.revert_reason }),
});

/** Transactions at nonces, up to `lastNonce` if given, that the chain has used and whose cost is unknown, lowest nonce first, at most `limit`. */
export async function readUncosted(
  q: Queryable,
  role: CostRole,
  { signer, limit, lastNonce = Number.MAX_SAFE_INTEGER }: { signer: Address; limit: number; lastNonce?: number },
): Promise<{ nonce: number; hash: Hex; txKey: string; sentMs: number }[]> {
  const known = q(COST_TABLES[role]).where({ signer }).max('nonce');
  const rows = await q('outbox')
    .where({ signer, finished: 1 })
    .where('nonce', '>', q.raw('coalesce((?), -1)', [known]))
    .where('nonce', '<=', lastNonce)
    .orderBy([{ column: 'nonce' }, { column: 'sent_ms' }])
    .limit(limit)
    .select('nonce', 'hash', 'tx_key', 'sent_ms');
  return rows.map((row) => ({ nonce: row.nonce, hash: row.hash, txKey: row.tx_key, sentMs: row.sent_ms }));
}

/**
 * Adds what a transaction cost to its day and its markets. A batch of posts is shared out evenly over its markets, and the first of them has what is
 * left over.
 */
function addGas(sums: Sums<typeof GAS_DAYS>, role: CostRole, row: StoredRow, sign: 1n | -1n = 1n): void {
  const markets = row.markets === '' ? [NO_MARKET] : row.markets.split(',').map(toSafeInt);
  const dayMs = periodOf(GAS_DAYS, row.seen_ms);
  const share = (whole: bigint, i: number): bigint => {
    const each = whole / BigInt(markets.length);
    return i === 0 ? whole - each * BigInt(markets.length - 1) : each;
  };
  for (const [i, market] of markets.entries()) {
    const gas = share(BigInt(row.gas_used), i);
    addTo(sums, [role, market, dayMs], { gas, fee_wei: share(fromColumn(row.fee_wei), i) }, sign);
  }
}

/**
 * Markets of transactions, by their keys, as they are when a cost is stored: those of its posts, or the one where both tokens of its order
 * are traded if our curve is a part of its route. They are stored with the cost, because a pair may be listed later, and a publication may
 * be replaced by a restore.
 */
const MARKETS_SQL: Readonly<Record<CostRole, string | null>> = {
  poster: 'select tx_key, market from publications where tx_key in',
  settler: null,
  executor:
    'select attempt.tx_key, listed.market from swap_attempts as attempt ' +
    'join swap_orders as swap on swap.id = attempt.order_id join swap_quotes as quote on quote.id = swap.quote_id ' +
    'join markets as listed on (listed.base_address = quote.sell_token and listed.quote_address = quote.buy_token) ' +
    'or (listed.base_address = quote.buy_token and listed.quote_address = quote.sell_token) ' +
    'where attempt.on_curve = 1 and attempt.tx_key in',
};

async function marketsByKey(q: Queryable, role: CostRole, keys: readonly string[]): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>();
  const sql = MARKETS_SQL[role];
  if (sql === null) return found;
  for (const part of chunks([...new Set(keys)])) {
    const rows = await sendForRows<{ tx_key: string; market: number }>(
      q,
      `${sql} (${placeholders(part.length)}) order by 1, 2`,
      part,
    );
    for (const { tx_key: key, market } of rows) {
      const own = found.get(key) ?? [];
      found.set(key, own);
      if (!own.includes(market)) own.push(market);
    }
  }
  return found;
}

const PAGE = 500;

/** What all transactions of a role cost, by day and market, derived from their rows. */
export async function deriveGas(q: Queryable, role: CostRole): Promise<Sums<typeof GAS_DAYS>> {
  const sums = createSums(GAS_DAYS);
  const sql =
    `select * from ${COST_TABLES[role]} where signer > ? or (signer = ? and nonce > ?) ` +
    'order by signer, nonce limit ?';
  for (let last = { signer: '', nonce: -1 }; ;) {
    const rows = await sendForRows<StoredRow>(q, sql, [last.signer, last.signer, last.nonce, PAGE]);
    if (rows.length === 0) return sums;
    for (const row of rows) addGas(sums, role, row);
    last = rows.at(-1)!;
  }
}

/** Replaces all sums of gas by sums over the rows of transactions, inside a transaction. */
export async function rebuildGas(tx: Knex.Transaction): Promise<void> {
  await lockGas(tx, 'share row exclusive');
  await sendChange(tx, `delete from ${GAS_DAYS.name}`, []);
  for (const role of COST_ROLES) await storeSums(tx, await deriveGas(tx, role));
}
