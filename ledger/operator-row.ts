import { operatorStandings, servedTokens, type OperatorFloors, type OperatorStanding } from '../core/operator-row.js';
import type { Address, Market } from '../core/types.js';
import { readBalances } from './balances.js';
import type { Queryable } from './types.js';

/** The operator's row in every token that a listed pair trades, against its floors. */
export async function readOperatorStandings(
  q: Queryable,
  of: { operator: Address; markets: readonly Market[]; floors: OperatorFloors },
): Promise<OperatorStanding[]> {
  const rows = await readBalances(q, { account: of.operator });
  const balances = new Map(rows.map((row) => [row.token, row.balanceUnits]));
  return operatorStandings(servedTokens(of.markets), of.floors, (token) => balances.get(token) ?? 0n);
}
