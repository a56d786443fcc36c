/**
 * The operator's gain on fills, summed up by maker and taker: a projection to which each generation adds its fills, and from which a
 * reversal subtracts them. No decision depends on it; it shows to whom the operator loses money.
 */
import type { Knex } from 'knex';
import { gainByMaker, type PairTotals } from '../../core/attribution/gains.js';
import type { Address, ChainFill, Hex, Leg, Market } from '../../core/types.js';
import { lowest } from '../db/aggregates.js';
import { chunks, fromColumn, toColumn, upsertAll } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import { readAttributedFills } from './fills.js';
import type { GenerationWrite, Queryable, SettledOrder } from '../types.js';
import type { Stored } from '../db/tables.js';

/** The taker of the rows that sum up all takers of a maker, since a taker may have as many addresses as it likes. */
export const ALL_TAKERS = 'all';

/** Totals of a maker and a taker in markets of one quote token. */
interface PairGain extends PairTotals {
  maker: Address;
  taker: Address | typeof ALL_TAKERS;
  token: Address;
}

const LOSS_DIGITS = 78;
const PAGE = 500;

type PairGains = Map<string, PairGain>;

const keyOf = ({ maker, taker, token }: Pick<PairGain, 'maker' | 'taker' | 'token'>): string =>
  `${maker}:${taker}:${token}`;

function add(sums: PairGains, one: PairGain, sign: 1 | -1): void {
  const sum = sums.get(keyOf(one)) ?? { ...one, fills: 0, legs: 0, quoteUnits: 0n, gainUnits: 0n };
  const times = BigInt(sign);
  sums.set(keyOf(one), {
    ...sum,
    fills: sum.fills + sign * one.fills,
    legs: sum.legs + sign * one.legs,
    quoteUnits: sum.quoteUnits + times * one.quoteUnits,
    gainUnits: sum.gainUnits + times * one.gainUnits,
  });
}

/** The parts of a fill that decide its gains. */
interface GainingFill {
  taker: Address;
  token: Address;
  legs: readonly Pick<Leg, 'maker' | 'baseUnits' | 'quoteUnits'>[];
  operatorGainUnits: bigint;
}

function addFill(sums: PairGains, { taker, token, legs, operatorGainUnits }: GainingFill): void {
  for (const gain of gainByMaker({ legs, operatorGainUnits })) {
    for (const of of [taker, ALL_TAKERS] as const) add(sums, { ...gain, taker: of, token, fills: 1 }, 1);
  }
}

/**
 * The taker of a swap: the owner of the signed order that the settler filled by it, which is the first such event after the swap in its
 * transaction; without one, the sender of the swap.
 */
export function ownerOf(
  fill: Pick<ChainFill, 'taker' | 'txHash' | 'logIndex'>,
  orders: readonly Pick<SettledOrder, 'owner' | 'txHash' | 'logIndex'>[],
): Address {
  const order = orders
    .filter(({ txHash, logIndex }) => txHash === fill.txHash && logIndex > fill.logIndex)
    .reduce<(typeof orders)[number] | null>(
      (first, one) => (first === null || one.logIndex < first.logIndex ? one : first),
      null,
    );
  return order?.owner ?? fill.taker;
}

/**
 * The totals with the fills of a generation added, of the pairs that these have. Its cost depends on the number of legs only, not on the
 * length of the history.
 */
export async function pairGainsAfter(
  q: Queryable,
  { fills, settledOrders = [] }: Pick<GenerationWrite, 'fills' | 'settledOrders'>,
  markets: readonly Market[],
): Promise<PairGain[]> {
  const sums: PairGains = new Map();
  for (const { fill, decomposition } of fills) {
    addFill(sums, {
      ...decomposition,
      taker: ownerOf(fill, settledOrders),
      token: markets[fill.market]!.quote.address,
    });
  }
  return changed(q, sums, 1);
}

/** Subtracts the fills of reversed generations; call it before their rows are moved to the orphans. */
export async function reversePairGains(tx: Knex.Transaction, reversal: number, keptGeneration: number): Promise<void> {
  await storePairGains(tx, reversal, await changed(tx, await sumPairGains(tx, keptGeneration), -1));
}

async function changed(q: Queryable, by: PairGains, sign: 1 | -1): Promise<PairGain[]> {
  const after: PairGains = new Map();
  for (const part of chunks([...by.keys()])) {
    const sql = `select * from pair_gains where pair in (${placeholders(part.length)})`;
    for (const row of await sendForRows<Stored<'pair_gains'>>(q, sql, part)) after.set(row.pair, fromRow(row));
  }
  for (const one of by.values()) add(after, one, sign);
  return [...after.values()];
}

/** Writes rows as they are after a generation. A pair without a fill keeps a row of zeros. */
export async function storePairGains(
  tx: Knex.Transaction,
  generation: number,
  gains: readonly PairGain[],
): Promise<void> {
  const rows = gains.map((one): Stored<'pair_gains'> => ({
    pair: keyOf(one),
    maker: one.maker,
    taker: one.taker,
    token: one.token,
    fills: one.fills,
    legs: one.legs,
    quote_units: toColumn(one.quoteUnits),
    gain_units: toColumn(one.gainUnits),
    loss_key: one.gainUnits < 0n ? (-one.gainUnits).toString().padStart(LOSS_DIGITS, '0') : '',
    generation,
  }));
  await upsertAll(tx, 'pair_gains', ['pair'], rows);
}

type OrderRow = Pick<Stored<'settled_orders'>, 'owner' | 'tx_hash' | 'log_index'>;

/** The sums, derived from the stored fills of the generations after one. */
export async function sumPairGains(q: Queryable, afterGeneration = 0): Promise<PairGains> {
  const sums: PairGains = new Map();
  const markets = await q('markets').select<{ market: number; quote_address: Address }[]>('market', 'quote_address');
  for (const { market, quote_address: token } of markets) {
    for (let after = await firstFillAfter(q, market, afterGeneration); after !== null;) {
      const fills = await q('fills')
        .where({ market })
        .where('fill_seq', '>', after)
        .orderBy('fill_seq')
        .limit(PAGE)
        .select();
      const last = fills.at(-1)?.fill_seq;
      if (last === undefined) break;
      const orders = await ordersIn(
        q,
        fills.map(({ tx_hash }) => tx_hash),
      );
      for (const { fill, decomposition } of await readAttributedFills(q, market, fills)) {
        const { operatorGainUnits, legs } = decomposition;
        addFill(sums, { taker: ownerOf(fill, orders), token, operatorGainUnits, legs });
      }
      after = last;
    }
  }
  return sums;
}

/** The signed orders that these transactions filled, as far as `ownerOf` asks. */
export async function ordersIn(
  q: Queryable,
  hashes: readonly Hex[],
): Promise<Pick<SettledOrder, 'owner' | 'txHash' | 'logIndex'>[]> {
  const rows = await q('settled_orders')
    .whereIn('tx_hash', [...new Set(hashes)])
    .select<OrderRow[]>('owner', 'tx_hash', 'log_index');
  return rows.map((row) => ({ owner: row.owner, txHash: row.tx_hash, logIndex: row.log_index }));
}

/** The number before the first fill of a market in a generation after this one; null when there is none. Fills rise with generations. */
async function firstFillAfter(q: Queryable, market: number, generation: number): Promise<number | null> {
  if (generation === 0) return 0;
  const first = await lowest(q('fills').where({ market }).where('generation', '>', generation), 'fill_seq');
  return first === null ? null : first - 1;
}

/** All rows with a fill, by pair. */
export async function readPairGains(q: Queryable): Promise<PairGains> {
  const rows = await q('pair_gains').where('fills', '>', 0).select();
  return new Map(rows.map((row) => [row.pair, fromRow(row)]));
}

/** The pairs that lost the operator most in each quote token, worst first; at most `limit` per token. */
export async function readWorstPairs(q: Queryable, limit: number): Promise<PairGain[]> {
  const tokens = await q('markets').distinct<{ token: Address }[]>('quote_address as token');
  const worst: PairGain[] = [];
  for (const { token } of tokens.sort((a, b) => (a.token < b.token ? -1 : 1))) {
    const rows = await q('pair_gains')
      .where({ token })
      .where('loss_key', '>', '')
      .orderBy([{ column: 'loss_key', order: 'desc' }, { column: 'pair' }])
      .limit(limit)
      .select();
    worst.push(...rows.map(fromRow));
  }
  return worst;
}

function fromRow(row: Stored<'pair_gains'>): PairGain {
  return {
    maker: row.maker,
    taker: row.taker,
    token: row.token,
    fills: row.fills,
    legs: row.legs,
    quoteUnits: fromColumn(row.quote_units),
    gainUnits: fromColumn(row.gain_units),
  };
}
