/** What fills brought the operator by maker and taker, as migrations derive it: a copy of its own, so that what they make never changes. */
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';

interface Sum {
  maker: Address;
  taker: Address | typeof ALL;
  token: Address;
  fills: number;
  legs: number;
  quoteUnits: bigint;
  gainUnits: bigint;
}

interface SummedFillRow {
  fill_seq: number;
  taker: Address;
  tx_hash: string;
  log_index: number;
  operator_gain_units: string;
}

interface LegRow {
  fill_seq: number;
  maker: Address;
  base_units: string;
  quote_units: string;
}

interface OrderRow {
  owner: Address;
  tx_hash: string;
  log_index: number;
}

const PAGE = 200;
const ALL = 'all';
const LOSS_DIGITS = 78;

/** Fills an empty `pair_gains`. `byOwner`: the taker of a signed order is its owner; otherwise whoever sent the swap. */
export async function derivePairGains(db: Knex, byOwner: boolean): Promise<void> {
  const newest = (await db('fills').max({ generation: 'generation' }).first()) as { generation: number | null };
  const sums = new Map<string, Sum>();
  const markets = await db('markets').select<{ market: number; quote_address: Address }[]>('market', 'quote_address');
  for (const { market, quote_address: token } of markets) {
    for (let after = 0; ;) {
      const fills = await db('fills')
        .where({ market })
        .where('fill_seq', '>', after)
        .orderBy('fill_seq')
        .limit(PAGE)
        .select<SummedFillRow[]>('fill_seq', 'taker', 'tx_hash', 'log_index', 'operator_gain_units');
      const last = fills.at(-1)?.fill_seq;
      if (last === undefined) break;
      const legs = await db('fill_legs')
        .where({ market })
        .whereBetween('fill_seq', [after + 1, last])
        .orderBy(['fill_seq', 'leg_no'])
        .select<LegRow[]>('fill_seq', 'maker', 'base_units', 'quote_units');
      const hashes = [...new Set(fills.map(({ tx_hash }) => tx_hash))];
      const orders = byOwner
        ? await db('settled_orders')
            .whereIn('tx_hash', hashes)
            .orderBy('log_index')
            .select<OrderRow[]>('owner', 'tx_hash', 'log_index')
        : [];
      for (const fill of fills) {
        const order = orders.find((one) => one.tx_hash === fill.tx_hash && one.log_index > fill.log_index);
        addFill(
          sums,
          { token, taker: order?.owner ?? fill.taker, gainUnits: BigInt(fill.operator_gain_units) },
          legs.filter((leg) => leg.fill_seq === fill.fill_seq),
        );
      }
      after = last;
    }
  }
  const rows = [...sums].map(([pair, { maker, taker, token, fills, legs, quoteUnits, gainUnits }]) => ({
    pair,
    maker,
    taker,
    token,
    fills,
    legs,
    quote_units: quoteUnits.toString(),
    gain_units: gainUnits.toString(),
    loss_key: gainUnits < 0n ? (-gainUnits).toString().padStart(LOSS_DIGITS, '0') : '',
    generation: newest.generation ?? 0,
  }));
  for (let i = 0; i < rows.length; i += PAGE) await db('pair_gains').insert(rows.slice(i, i + PAGE));
}

function addFill(
  sums: Map<string, Sum>,
  { token, taker, gainUnits }: { token: Address; taker: Address; gainUnits: bigint },
  legs: readonly LegRow[],
): void {
  const makers = new Map<Address, { legs: number; quoteUnits: bigint; baseUnits: bigint }>();
  for (const { maker, quote_units, base_units } of legs) {
    const sum = makers.get(maker) ?? { legs: 0, quoteUnits: 0n, baseUnits: 0n };
    makers.set(maker, {
      legs: sum.legs + 1,
      quoteUnits: sum.quoteUnits + BigInt(quote_units),
      baseUnits: sum.baseUnits + BigInt(base_units),
    });
  }
  const sorted = [...makers].sort(([a], [b]) => (a < b ? -1 : 1));
  const hasQuote = sorted.some(([, { quoteUnits }]) => quoteUnits > 0n);
  const weights = sorted.map(([, sum]) => (hasQuote ? sum.quoteUnits : sum.baseUnits));
  const total = weights.reduce((sum, units) => sum + units, 0n);
  if (total === 0n) return;
  const sign = gainUnits < 0n ? -1n : 1n;
  const shares = shareOut(sign * gainUnits, weights, total);
  for (const [i, [maker, sum]] of sorted.entries()) {
    for (const of of [taker, ALL] as const) {
      const key = `${maker}:${of}:${token}`;
      const before = sums.get(key) ?? { maker, taker: of, token, fills: 0, legs: 0, quoteUnits: 0n, gainUnits: 0n };
      sums.set(key, {
        ...before,
        fills: before.fills + 1,
        legs: before.legs + sum.legs,
        quoteUnits: before.quoteUnits + sum.quoteUnits,
        gainUnits: before.gainUnits + sign * shares[i]!,
      });
    }
  }
}

/** Whole units in proportion to weights; the rest goes to the largest remainders, of equal ones to the first. */
function shareOut(units: bigint, weights: readonly bigint[], total: bigint): bigint[] {
  const parts = weights.map((weight, i) => ({
    i,
    share: (units * weight) / total,
    remainder: (units * weight) % total,
  }));
  let rest = units - parts.reduce((sum, { share }) => sum + share, 0n);
  const byRemainder = [...parts].sort((a, b) =>
    a.remainder === b.remainder ? a.i - b.i : a.remainder < b.remainder ? 1 : -1,
  );
  for (const part of byRemainder) {
    if (rest === 0n) break;
    part.share += 1n;
    rest -= 1n;
  }
  return parts.map(({ share }) => share);
}
