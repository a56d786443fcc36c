/** What the watcher found wrong with tokens, and when it ended: rows of the ledger log, one per change. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import { highest } from '../db/aggregates.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { Queryable, TokenFinding } from '../types.js';
import type { Stored } from '../db/tables.js';

const NEWEST = `select * from token_findings where finding_no in (
  select max(finding_no) from token_findings group by token, cause) order by finding_no`;

/** The newest finding of each token and cause, including ended ones, oldest first. */
export async function readTokenFindings(q: Queryable): Promise<TokenFinding[]> {
  return (await sendForRows<Stored<'token_findings'>>(q, NEWEST)).map(fromRow);
}

/** Findings that have not ended: doubts and quarantines. */
export async function standingFindings(q: Queryable): Promise<TokenFinding[]> {
  return (await readTokenFindings(q)).filter(({ state }) => state !== 'clear');
}

/** Tokens in quarantine. */
export async function readQuarantined(q: Queryable): Promise<Set<Address>> {
  return quarantinedTokens(await readTokenFindings(q));
}

/** Tokens that any of these findings keeps in quarantine. */
export function quarantinedTokens(findings: readonly Pick<TokenFinding, 'token' | 'state'>[]): Set<Address> {
  return new Set(findings.filter(({ state }) => state === 'quarantined').map(({ token }) => token));
}

/** Appends findings, inside the transaction that commits their generation. */
export async function insertTokenFindings(
  tx: Knex.Transaction,
  generation: number,
  findings: readonly TokenFinding[],
): Promise<void> {
  if (findings.length === 0) return;
  const first = ((await highest(tx('token_findings'), 'finding_no')) ?? 0) + 1;
  const rows = findings.map((one, i): Stored<'token_findings'> => ({
    finding_no: first + i,
    generation,
    token: one.token,
    cause: one.cause,
    state: one.state,
    code: one.code,
    message: one.message,
    block_number: one.blockNumber,
    agreed_block: one.agreed?.blockNumber ?? null,
    agreed_units: one.agreed === null ? null : toColumn(one.agreed.units),
    difference_units: one.differenceUnits === null ? null : toColumn(one.differenceUnits),
    time_ms: one.timeMs,
  }));
  await insertAll(tx, 'token_findings', rows);
}

function fromRow(row: Stored<'token_findings'>): TokenFinding {
  const agreed =
    row.agreed_block === null || row.agreed_units === null
      ? null
      : { blockNumber: row.agreed_block, units: fromColumn(row.agreed_units) };
  return {
    token: row.token,
    cause: row.cause,
    state: row.state,
    code: row.code,
    message: row.message,
    blockNumber: row.block_number,
    agreed,
    differenceUnits: row.difference_units === null ? null : fromColumn(row.difference_units),
    timeMs: row.time_ms,
  };
}
