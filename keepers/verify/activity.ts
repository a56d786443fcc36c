import { middlesOf, postName, postPages, readPreparedWords } from '../../ledger/accounts/middles.js';
import { deriveActivity } from '../../ledger/accounts/rebuild.js';
import { readSumsAt, type Sums } from '../../ledger/accounts/sums.js';
import { GAS_DAYS, MAKER_HOURS, MARKET_HOURS, TAKER_DAYS } from '../../ledger/accounts/tables.js';
import { readPairGains, sumPairGains } from '../../ledger/chain/pair-gains.js';
import { isSuspendedCurve } from '../../ledger/chain/suspense.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { countRows, readRows } from '../../ledger/db/rows.js';
import { COST_ROLES, deriveGas } from '../../ledger/transactions/costs.js';
import type { Queryable } from '../../ledger/types.js';
import { same, type Verification } from './verification.js';

const CHECK = 'activity';
const GAINS = 'gains';

/** Middles of posted curves follow from their words, sums of makers, takers and markets from fills, posts and books, and gas by day from transactions. Returns the number of sums. */
export async function verifyActivity({
  q,
  markets,
  onProgress,
}: Pick<Verification, 'q' | 'markets' | 'onProgress'>): Promise<number> {
  const counts = new Map<string, number>();
  for (const market of markets) {
    await compareMiddles({ q, markets }, market.index);
    for await (const { makers, takers, markets: own } of deriveActivity(q, market)) {
      for (const sums of [makers, takers, own]) {
        const found = await compareSums(q, sums);
        counts.set(sums.table.name, (counts.get(sums.table.name) ?? 0) + found);
      }
    }
  }
  for (const role of COST_ROLES) {
    counts.set(GAS_DAYS.name, (counts.get(GAS_DAYS.name) ?? 0) + (await compareSums(q, await deriveGas(q, role))));
  }
  for (const { name } of [MAKER_HOURS, TAKER_DAYS, MARKET_HOURS, GAS_DAYS]) {
    same(CHECK, `the number of rows of ${name}`, await countRows(q, name), counts.get(name) ?? 0);
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  onProgress({ check: CHECK, done: total, total });
  return total;
}

async function compareMiddles({ q, markets }: Pick<Verification, 'q' | 'markets'>, index: number): Promise<void> {
  for await (const rows of postPages(q, index)) {
    const posts = rows.map(postName);
    const derived = middlesOf(await readPreparedWords(q, posts), markets, posts);
    for (const [i, row] of rows.entries()) {
      const stored = row.middle_half_subticks === null ? null : fromColumn(row.middle_half_subticks);
      // A publication for a foreign curve may have been imported after the curve was seen.
      if (stored === null && derived[i] !== null && (await isSuspendedCurve(q, index, row.seq))) continue;
      same(CHECK, `the middle of curve ${row.seq} of ${markets[index]!.pair}`, stored, derived[i]);
    }
  }
}

async function compareSums(q: Queryable, { table, rows }: Sums): Promise<number> {
  const derived = [...rows.values()].filter(({ sums }) => sums.some((sum) => sum !== 0n));
  const stored = await readSumsAt(
    q,
    table,
    derived.map(({ key }) => key),
  );
  for (const { key, sums } of derived) {
    const name = key.join(':');
    same(CHECK, `${table.name} of ${name}`, stored.get(name)?.sums, sums);
  }
  return derived.length;
}

/** What is summed up by maker and taker adds up from the fills, and the losses are sorted as they are. Returns the number of pairs. */
export async function verifyGains({ q, onProgress }: Pick<Verification, 'q' | 'onProgress'>): Promise<number> {
  const derived = await sumPairGains(q);
  const stored = await readPairGains(q);
  for (const [pair, gain] of derived) {
    same(GAINS, `what ${pair} brought the operator`, stored.get(pair), gain);
    stored.delete(pair);
  }
  for (const [pair, gain] of stored) same(GAINS, `what ${pair} brought the operator`, gain, undefined);
  for (const { pair, gain_units: units, loss_key: key } of await readRows(q, 'pair_gains')) {
    same(GAINS, `the loss of ${pair}`, key === '' ? 0n : -BigInt(key), BigInt(units) < 0n ? BigInt(units) : 0n);
  }
  onProgress({ check: GAINS, done: derived.size, total: derived.size });
  return derived.size;
}
