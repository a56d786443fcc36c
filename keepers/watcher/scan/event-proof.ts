import type { Logger } from 'pino';
import type { Address } from '../../../core/types.js';
import { blocksBetween } from '../../../ledger/chain/blocks.js';
import { readRows } from '../../../ledger/db/rows.js';
import type { Db, Queryable } from '../../../ledger/types.js';
import type { RpcPool } from '../../chain/pool.js';
import { RpcContradictionError, type Rpc } from '../../chain/rpc.js';
import { logKey } from '../derive/custody.js';
import { NoMajorityError } from './majority.js';
import { proveRange } from './prove-range.js';
import type { Scan, SeenEvent } from './scan.js';

/** The ledger lacks an event of a block that it has scanned: no later look at holdings can make up for that. */
export class MissingEventError extends Error {
  override readonly name = 'MissingEventError';
}

/**
 * Proves that blocks `from..to` hold no event that moves money and that neither the ledger nor the scan under way has. Throws MissingEventError
 * when the ledger lacks one, RpcContradictionError of the scan's endpoint when the scan does, and whatever else when nothing could be proven:
 * NoMajorityError where the chain has other blocks by now, whose events say nothing about those that were scanned.
 */
export type ProveEvents = (range: { from: number; to: number }, scan: Scan, scanned: Rpc) => Promise<void>;

const MOVES: readonly string[] = ['deposited', 'requested', 'settled', 'executed', 'swap', 'orderFilled'];

export function createEventProof(deps: {
  db: Db;
  rpc: RpcPool;
  addresses: readonly Address[];
  nowMs(): number;
  logger: Logger;
}): ProveEvents {
  const { db, rpc, addresses, nowMs, logger } = deps;
  return async ({ from, to }, scan, scanned) => {
    const proven = await proveRange(rpc, { from, to, addresses }, { nowMs, logger });
    const moves = proven.events.filter(({ event }) => MOVES.includes(event.type));
    const firstOfScan = scan.blocks[0]?.number ?? to + 1;
    const ours = [...(await blocksBetween(db.knex, from, Math.min(to, firstOfScan - 1))), ...scan.blocks];
    const hashes = new Map(ours.map(({ number, hash }) => [number, hash]));
    const other = proven.blocks.find(({ number, hash }) => (hashes.get(number) ?? hash) !== hash);
    if (other !== undefined) throw new NoMajorityError(`the chain has another block ${other.number} than was scanned`);
    const seen = new Set(scan.events.map(({ log }) => logKey(log)));
    const omitted = moves.find(({ log }) => log.blockNumber >= firstOfScan && !seen.has(logKey(log)));
    if (omitted !== undefined)
      throw new RpcContradictionError(`${scanned.name} left out ${describe(omitted)}`, scanned);
    const stored = await storedKeys(db.knex, from, Math.min(to, firstOfScan - 1));
    const missing = moves.find(({ log }) => log.blockNumber < firstOfScan && !stored.has(logKey(log)));
    if (missing !== undefined) throw new MissingEventError(`the ledger lacks ${describe(missing)}`);
  };
}

const describe = ({ log, event }: SeenEvent): string =>
  `the event ${event.type} of transaction ${log.txHash} in block ${log.blockNumber}`;

/** Keys of all stored events that move money. */
async function storedKeys(q: Queryable, from: number, to: number): Promise<Set<string>> {
  const keys = new Set<string>();
  if (to < from) return keys;
  for (const table of ['custody_events', 'fills', 'settled_orders'] as const) {
    const rows = await readRows(q, table, { between: ['block_number', from, to] });
    for (const row of rows) keys.add(logKey({ txHash: row.tx_hash, logIndex: row.log_index }));
  }
  return keys;
}
