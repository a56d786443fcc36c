import type { Address } from '../../core/types.js';
import type { Verification } from './verify.js';

/** Generation in which each token was first traded by a listed pair. */
export async function servedFrom({ q, markets }: Pick<Verification, 'q' | 'markets'>): Promise<Map<Address, number>> {
  const rows = await q('markets').select<{ market: number; generation: number }[]>('market', 'generation');
  const served = new Map<Address, number>();
  for (const { market, generation } of rows) {
    const { base, quote } = markets[market]!;
    for (const { address } of [base, quote]) {
      served.set(address, Math.min(served.get(address) ?? generation, generation));
    }
  }
  return served;
}
