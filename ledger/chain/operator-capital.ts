/** The block at which the net_capital counters begin. */
import type { Knex } from 'knex';
import { loadBalances, storeRows, readBalances } from './balances.js';
import { insertAll, toColumn } from '../db/columns.js';
import { lastGeneration } from './generations.js';
import type { Queryable } from '../types.js';
import {
  operatorStandings,
  servedTokens,
  type OperatorFloors,
  type OperatorStanding,
} from '../../core/operator-row.js';
import type { Address, Market } from '../../core/types.js';

/** First block whose deposits and withdrawals the counters include, null when they include all since the deployment. */
export async function readCapitalOrigin(q: Queryable): Promise<number | null> {
  const row = await q('capital_origins').orderBy('generation', 'desc').first();
  return row?.block_number ?? null;
}

/**
 * Restarts the counters at the next block, inside a transaction of the ledger log's writer, by an empty generation after which all of them
 * are zero. Returns that block.
 */
export async function restartCapital(
  tx: Knex.Transaction,
  by: { operatorSeq: number; timeMs: number },
): Promise<{ generation: number; blockNumber: number }> {
  const head = await lastGeneration(tx);
  if (head === null) throw new RangeError('nothing is scanned yet, so the counters begin with the deployment');
  const generation = head.generation + 1;
  const blockNumber = head.toBlock + 1;
  const counted = [...(await loadBalances(tx)).values()].filter((row) => row.netCapitalUnits !== 0n);
  await tx('generations').insert({
    generation,
    from_block: blockNumber,
    to_block: head.toBlock,
    block_hash: head.blockHash,
    block_timestamp_ms: head.blockTimestampMs,
    // Nothing was read of the chain.
    scanned_ms: head.scannedMs,
    observed_head: head.observedHead,
    observed_head_timestamp_ms: head.observedHeadTimestampMs,
  });
  await tx('capital_origins').insert({
    operator_seq: by.operatorSeq,
    generation,
    block_number: blockNumber,
    time_ms: by.timeMs,
  });
  const changes = counted.map((row) => ({
    generation,
    account: row.account,
    token: row.token,
    reserved_delta_units: '0',
    net_capital_delta_units: toColumn(-row.netCapitalUnits),
  }));
  await insertAll(tx, 'balance_changes', changes);
  const restarted = counted.map((row) => ({ ...row, netCapitalUnits: 0n }));
  await storeRows(tx, restarted, generation);
  return { generation, blockNumber };
}

/** The operator's row in every token that a listed pair trades, against its floors. */
export async function readOperatorStandings(
  q: Queryable,
  of: { operator: Address; markets: readonly Market[]; floors: OperatorFloors },
): Promise<OperatorStanding[]> {
  const rows = await readBalances(q, { account: of.operator });
  const balances = new Map(rows.map((row) => [row.token, row.balanceUnits]));
  return operatorStandings(servedTokens(of.markets), of.floors, (token) => balances.get(token) ?? 0n);
}
