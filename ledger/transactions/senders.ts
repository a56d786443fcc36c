/** What each signer of a keeper has spent and how its newest transaction failed, and what a keeper may spend: for the status page. */
import type { Knex } from 'knex';
import { z } from 'zod';
import { fromColumn } from '../db/columns.js';
import { highest } from '../db/aggregates.js';
import { sendForRows } from '../db/dialects.js';
import type { Address, Hex } from '../../core/types.js';
import type { Queryable } from '../types.js';
import { COST_ROLES, COST_TABLES, UNKNOWN_HASH, type CostRole } from './costs.js';
import { readUnmined } from './outbox.js';

const HOUR_MS = 3_600_000;

interface Revert {
  hash: Hex;
  blockNumber: number;
  seenMs: number;
  /** Null where no endpoint said it. */
  reason: string | null;
}

export interface SenderFacts {
  signer: Address;
  role: CostRole;
  /** Fees of the transactions whose receipts were seen within the last hour. */
  spentLastHourWei: bigint;
  lastRevert: Revert | null;
}

/** Every signer with a mined transaction, by role. It reads the rows of one hour, and single rows of an index. */
export async function readSenders(q: Queryable, nowMs: number): Promise<SenderFacts[]> {
  const found: SenderFacts[] = [];
  for (const role of COST_ROLES) {
    for (const { signer } of await readUnmined(q)) {
      const last = await highest(q(COST_TABLES[role]).where({ signer }), 'nonce');
      if (last === null) continue;
      const spentLastHourWei = await spentSince(q, role, { signer, last, sinceMs: nowMs - HOUR_MS });
      found.push({ signer, role, spentLastHourWei, lastRevert: await readLastRevert(q, role, signer) });
    }
  }
  return found;
}

/** More nonces than blocks of an hour have. */
const MOST_AN_HOUR = 4_000;

async function spentSince(
  q: Queryable,
  role: CostRole,
  { signer, last, sinceMs }: { signer: Address; last: number; sinceMs: number },
): Promise<bigint> {
  const rows = await sendForRows<{ fee_wei: string }>(
    q,
    `select fee_wei from ${COST_TABLES[role]} where signer = ? and nonce > ? and seen_ms > ?`,
    [signer, last - MOST_AN_HOUR, sinceMs],
  );
  return rows.reduce((sum, row) => sum + fromColumn(row.fee_wei), 0n);
}

async function readLastRevert(q: Queryable, role: CostRole, signer: Address): Promise<Revert | null> {
  const [row] = await sendForRows<{ hash: Hex; block_number: number; seen_ms: number; revert_reason: string | null }>(
    q,
    `select hash, block_number, seen_ms, revert_reason from ${COST_TABLES[role]}
      where signer = ? and succeeded = 0 and hash <> '${UNKNOWN_HASH}' order by nonce desc limit 1`,
    [signer],
  );
  if (row === undefined) return null;
  return { hash: row.hash, blockNumber: row.block_number, seenMs: row.seen_ms, reason: row.revert_reason };
}

/** By which key a role signs, and what it may spend in an hour; null for no limit. */
export interface Keeper {
  signer: Address;
  budgetWei: bigint | null;
}

const keeperSchema = z.strictObject({
  signer: z.templateLiteral(['0x', z.string().regex(/^[0-9a-f]{40}$/)]),
  budgetWei: z.string().nullable(),
});

const keeperKey = (role: CostRole): string => `keeper_${role}`;

/** Notes how a role was started, for processes that know neither its key nor its settings. In a transaction of its writer. */
export async function storeKeeper(tx: Knex.Transaction, role: CostRole, keeper: Keeper): Promise<void> {
  const value = JSON.stringify({ ...keeper, budgetWei: keeper.budgetWei?.toString() ?? null });
  await tx('meta')
    .insert({ key: keeperKey(role), value })
    .onConflict('key')
    .merge();
}

/** The newest process of each role; without those that no process played yet. */
export async function readKeepers(q: Queryable): Promise<Map<CostRole, Keeper>> {
  const found = new Map<CostRole, Keeper>();
  for (const role of COST_ROLES) {
    const row = await q('meta')
      .where({ key: keeperKey(role) })
      .first('value');
    if (row === undefined) continue;
    const { signer, budgetWei } = keeperSchema.parse(JSON.parse(row.value));
    found.set(role, { signer, budgetWei: budgetWei === null ? null : fromColumn(budgetWei) });
  }
  return found;
}
