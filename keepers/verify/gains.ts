import { readPairGains, sumPairGains } from '../../ledger/chain/pair-gains.js';
import { readRows } from '../../ledger/db/rows.js';
import { same, type Verification } from './verification.js';

const CHECK = 'gains';

/** What is summed up by maker and taker adds up from the fills, and the losses are sorted as they are. Returns the number of pairs. */
export async function verifyGains({ q, onProgress }: Pick<Verification, 'q' | 'onProgress'>): Promise<number> {
  const derived = await sumPairGains(q);
  const stored = await readPairGains(q);
  for (const [pair, gain] of derived) {
    same(CHECK, `what ${pair} brought the operator`, stored.get(pair), gain);
    stored.delete(pair);
  }
  for (const [pair, gain] of stored) same(CHECK, `what ${pair} brought the operator`, gain, undefined);
  for (const { pair, gain_units: units, loss_key: key } of await readRows(q, 'pair_gains')) {
    same(CHECK, `the loss of ${pair}`, key === '' ? 0n : -BigInt(key), BigInt(units) < 0n ? BigInt(units) : 0n);
  }
  onProgress({ check: CHECK, done: derived.size, total: derived.size });
  return derived.size;
}
