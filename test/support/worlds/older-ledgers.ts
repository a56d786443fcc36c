/** Copies of databases that earlier versions of the project made, unchanged. test/fixtures/ledgers/README.md says how they are made. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import type { Address } from '../../../core/types.js';
import { openDb, pgConnectionOf, schemaOf } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';
import type { VerifyReport } from '../../../keepers/verify/verify.js';
import { locationOf, type OpenTestDb } from '../db.js';

const FOLDER = fileURLToPath(new URL('../../fixtures/ledgers/', import.meta.url));
/** The schema that each dump of PostgreSQL names. */
const SCHEMA = /\bledger_fixture\b/g;

/** What is known of such a database from when it was made. */
export interface OlderLedger {
  name: string;
  kind: Db['kind'];
  /** Of the newest migration that had run. */
  migration: string;
  deploymentId: string;
  deploymentBlock: number;
  operator: Address;
  contracts: { custodian: Address; curveBook: Address; entrypoint: Address; orderSettler: Address };
  /** An approved maker with balances; of some ledgers, with open orders. */
  maker: { address: Address; openOrders: number };
  /** What `verify` counted then. */
  holds: Partial<VerifyReport>;
  /** Account, token and units of every balance. */
  balances: readonly string[];
  /** The legs of one fill: maker, price in ticks, base and quote units, and the base units of each order. */
  fill: { market: number; fillSeq: number; legs: readonly string[] };
}

/** All of one kind of database. */
export function olderLedgers(kind: Db['kind']): OlderLedger[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({
      ...(JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Omit<OlderLedger, 'name'>),
      name: file.replace(/\.json$/, ''),
    }))
    .filter((ledger) => ledger.kind === kind);
}

/** A copy that nothing has migrated yet. It is removed with the database that `open` makes; `closeOlderLedger` must be called before. */
export async function openOlderLedger(ledger: OlderLedger, open: OpenTestDb): Promise<Db> {
  const empty = await open();
  const bytes = gunzipSync(readFileSync(join(FOLDER, `${ledger.name}.gz`)));
  if (empty.kind === 'pg') {
    // A dump changes settings of its connection.
    const client = new pg.Client(pgConnectionOf(empty));
    await client.connect();
    await client.query(bytes.toString('utf8').replace(SCHEMA, schemaOf(empty)));
    await client.end();
    return empty;
  }
  const file = join(dirname(locationOf(empty).url.slice('sqlite:'.length)), `${ledger.name}.sqlite`);
  writeFileSync(file, bytes);
  return openDb(`sqlite:${file}`);
}

/** Closes a copy that `open` does not know of. */
export async function closeOlderLedger(db: Db): Promise<void> {
  if (db.kind === 'sqlite') await db.close();
}
