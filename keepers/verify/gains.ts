import { readPairGains, sumPairGains } from '../../ledger/chain/pair-gains.js';
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
  const rows = await q('pair_gains').select<{ pair: string; gain_units: string; loss_key: string }[]>(
    'pair',
    'gain_units',
    'loss_key',
  );
  for (const { pair, gain_units: units, loss_key: key } of rows) {
    same(CHECK, `the loss of ${pair}`, key === '' ? 0n : -BigInt(key), BigInt(units) < 0n ? BigInt(units) : 0n);
  }
  onProgress({ check: CHECK, done: derived.size, total: derived.size });
  return derived.size;
}
