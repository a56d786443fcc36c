/** Rows of fills, legs and order fills. */
import type { Knex } from 'knex';
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, ChainFill, Leg, Market } from '../../core/types.js';
import type { StartBalances } from './balances.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { allOrFirstError, placeholders, sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import { LedgerInvariantError } from '../errors.js';
import { fillRef } from './invariants.js';
import type { PartDetails } from '../market-data/projection.js';
import type { AttributedFill, AttributedPart, GenerationWrite, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** Data about the parts of fills that the fills do not contain. */
interface KnownOfParts {
  /** Base balances before each part. */
  starts: StartBalances;
  details: ReadonlyMap<AttributedPart, PartDetails>;
  /** Refs of the fills that are stored without their legs and postings, which are booked for this operator. */
  compact: ReadonlySet<string>;
  operator: Address;
}

/** Stores the fills of a generation with their parts, and with the legs of those that are not compact. */
export async function insertFills(
  tx: Knex.Transaction,
  { generation, fills }: Pick<GenerationWrite, 'generation' | 'fills'>,
  markets: readonly Market[],
  known: KnownOfParts,
): Promise<void> {
  const named = fills.map((one) => ({ one, ref: fillRef(markets[one.fill.market]!, one.fill.fillSeq) }));
  const isCompact = ({ ref }: { ref: string }): boolean => known.compact.has(ref);
  const rows = named.map((of) => toFillRow(of.one, generation, isCompact(of) ? known.operator : null));
  const legs = named.filter((of) => !isCompact(of)).flatMap(({ one }) => toLegRows(one));
  const parts = named.flatMap(({ one, ref }) => toPartRows(one, generation, ref, known));
  await allOrFirstError([
    insertAll(tx, 'fills', rows),
    insertAll(tx, 'fill_legs', legs),
    insertAll(tx, 'order_fills', parts),
  ]);
}

function toFillRow(
  { fill, decomposition }: AttributedFill,
  generation: number,
  bookedBy: Address | null,
): Stored<'fills'> {
  return {
    market: fill.market,
    fill_seq: fill.fillSeq,
    curve_seq: fill.curveSeq,
    side: fill.side,
    base_units: toColumn(fill.baseUnits),
    quote_units: toColumn(fill.quoteUnits),
    fee_units: toColumn(fill.feeUnits),
    input_fee_units: toColumn(fill.inputFeeUnits),
    consumed_before_units: toColumn(fill.consumedBeforeUnits),
    taker: fill.taker,
    recipient: fill.recipient,
    block_number: fill.blockNumber,
    block_hash: fill.blockHash,
    tx_hash: fill.txHash,
    log_index: fill.logIndex,
    timestamp_ms: fill.timestampMs,
    residual_units: toColumn(decomposition.residualUnits),
    rounding_units: toColumn(decomposition.roundingUnits),
    compression_residual_units: toColumn(decomposition.compressionResidualUnits),
    operator_gain_units: toColumn(decomposition.operatorGainUnits),
    missing_base_units: toColumn(decomposition.missingBaseUnits),
    booked_by: bookedBy,
    generation,
  };
}

function toLegRows({ fill, decomposition }: AttributedFill): object[] {
  return decomposition.legs.map((leg, legNo) => ({
    market: fill.market,
    fill_seq: fill.fillSeq,
    leg_no: legNo,
    maker: leg.maker,
    price_ticks: toColumn(leg.priceTicks),
    base_units: toColumn(leg.baseUnits),
    quote_units: toColumn(leg.quoteUnits),
  }));
}

function toPartRows(
  { fill, decomposition, orderFills }: AttributedFill,
  generation: number,
  ref: string,
  { starts, details }: KnownOfParts,
): object[] {
  const legNoOf = new Map(
    decomposition.legs.flatMap((leg, legNo) => leg.orders.map(({ oid }) => [oid, legNo] as const)),
  );
  return orderFills.map((part, partNo) => ({
    market: fill.market,
    fill_seq: fill.fillSeq,
    oid: part.oid,
    part_no: partNo,
    leg_no: legNoOf.get(part.oid)!,
    tid: part.tid,
    cloid: part.cloid,
    generation,
    maker: part.maker,
    side: part.side,
    price_ticks: toColumn(part.priceTicks),
    base_units: toColumn(part.baseUnits),
    start_base_units: toColumn(starts.get(`${ref}:${part.oid}`)!),
    quote_units: toColumn(details.get(part)!.quoteUnits),
    closed_units: toColumn(details.get(part)!.closedUnits),
    timestamp_ms: fill.timestampMs,
  }));
}

/** A fill as the chain reported it. */
export function toChainFill(row: Stored<'fills'>): ChainFill {
  return {
    market: row.market,
    fillSeq: row.fill_seq,
    curveSeq: row.curve_seq,
    side: row.side,
    baseUnits: fromColumn(row.base_units),
    quoteUnits: fromColumn(row.quote_units),
    feeUnits: fromColumn(row.fee_units),
    inputFeeUnits: fromColumn(row.input_fee_units),
    consumedBeforeUnits: fromColumn(row.consumed_before_units),
    taker: row.taker,
    recipient: row.recipient,
    blockNumber: row.block_number,
    blockHash: row.block_hash,
    txHash: row.tx_hash,
    logIndex: row.log_index,
    timestampMs: row.timestamp_ms,
  };
}

/**
 * A stored fill with its decomposition, exactly as it was committed. Throws LedgerInvariantError `fill_parts` when its parts belong to no
 * leg.
 */
export async function readAttributedFill(q: Queryable, row: Stored<'fills'>): Promise<AttributedFill> {
  const [fill] = await readAttributedFills(q, row.market, [row]);
  return fill!;
}

/** Consecutive stored fills of one market, with their decompositions, exactly as they were committed. */
export async function readAttributedFills(
  q: Queryable,
  market: number,
  rows: readonly Stored<'fills'>[],
): Promise<AttributedFill[]> {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return [];
  return attributed(q, market, rows, 'fill_seq >= ? and fill_seq <= ?', [first.fill_seq, last.fill_seq]);
}

/** The same of a page of stored fills of one market, wherever they are. */
export async function readAttributedFillsAt(
  q: Queryable,
  market: number,
  rows: readonly Stored<'fills'>[],
): Promise<AttributedFill[]> {
  const numbers = rows.map((row) => row.fill_seq);
  return attributed(q, market, rows, `fill_seq in (${placeholders(numbers.length)})`, numbers);
}

async function attributed(
  q: Queryable,
  market: number,
  rows: readonly Stored<'fills'>[],
  which: string,
  numbers: readonly number[],
): Promise<AttributedFill[]> {
  const where = `where market = ? and ${which} order by fill_seq`;
  const span = [market, ...numbers];
  const parts = await sendForRows<Stored<'order_fills'>>(q, `select * from order_fills ${where}, part_no`, span);
  const partsOf = groupBy(parts, (part) => part.fill_seq);
  const stored = rows.some((row) => row.booked_by === null)
    ? await sendForRows<Stored<'fill_legs'>>(q, `select * from fill_legs ${where}, leg_no`, span)
    : [];
  const legsOf = groupBy(stored, (leg) => leg.fill_seq);
  const grid = rows.some((row) => row.booked_by !== null) ? await readGrid(q, market) : null;
  return rows.map((row) => {
    const own = partsOf.get(row.fill_seq) ?? [];
    const legs =
      row.booked_by === null || grid === null
        ? (legsOf.get(row.fill_seq) ?? []).map((leg) => toLeg(leg, own))
        : impliedLegs(grid, own);
    return explained(row, legs, own);
  });
}

type Grid = Pick<Market, 'lotUnits' | 'tickLotUnits'>;

/** The grid of a market, as far as legs need it. */
async function readGrid(q: Queryable, market: number): Promise<Grid> {
  const sql = 'select lot_units, tick_lot_units from markets where market = ?';
  const [row] = await sendForRows<Pick<Stored<'markets'>, 'lot_units' | 'tick_lot_units'>>(q, sql, [market]);
  if (row === undefined) throw new RangeError(`market ${market} is not listed`);
  return { lotUnits: fromColumn(row.lot_units), tickLotUnits: fromColumn(row.tick_lot_units) };
}

/**
 * The legs that parts add up to: one per maker and price, in whole units. Throws LedgerInvariantError `fill_parts` for parts that belong to
 * no leg.
 */
function impliedLegs(grid: Grid, parts: readonly Stored<'order_fills'>[]): Leg[] {
  return [...groupBy(parts, (part) => part.leg_no)].map(([legNo, own], i): Leg => {
    const { fill_seq: fillSeq, maker, price_ticks } = own[0]!;
    if (legNo !== i) noLeg(fillSeq, legNo);
    if (own.some((part) => part.maker !== maker || part.price_ticks !== price_ticks)) noLeg(fillSeq, legNo);
    const orders = own.map((part) => ({ oid: part.oid, baseUnits: fromColumn(part.base_units) }));
    const baseUnits = orders.reduce((sum, order) => sum + order.baseUnits, 0n);
    const priceTicks = fromColumn(price_ticks);
    return { maker, priceTicks, baseUnits, quoteUnits: quoteUnitsFloor(grid, priceTicks, baseUnits), orders };
  });
}

function noLeg(fillSeq: number, legNo: number): never {
  throw new LedgerInvariantError(
    'fill_parts',
    `the parts of fill ${fillSeq} that name leg ${legNo} are of no such leg`,
  );
}

function toLeg(leg: Stored<'fill_legs'>, parts: readonly Stored<'order_fills'>[]): Leg {
  return {
    maker: leg.maker,
    priceTicks: fromColumn(leg.price_ticks),
    baseUnits: fromColumn(leg.base_units),
    quoteUnits: fromColumn(leg.quote_units),
    orders: parts
      .filter((part) => part.leg_no === leg.leg_no)
      .map((part) => ({ oid: part.oid, baseUnits: fromColumn(part.base_units) })),
  };
}

function explained(
  row: Stored<'fills'>,
  legs: readonly Leg[],
  parts: readonly Stored<'order_fills'>[],
): AttributedFill {
  return {
    fill: toChainFill(row),
    decomposition: {
      legs: [...legs],
      residualUnits: fromColumn(row.residual_units),
      roundingUnits: fromColumn(row.rounding_units),
      compressionResidualUnits: fromColumn(row.compression_residual_units),
      operatorGainUnits: fromColumn(row.operator_gain_units),
      missingBaseUnits: fromColumn(row.missing_base_units),
    },
    orderFills: parts.map((part) => {
      const leg = legs[part.leg_no] ?? noLeg(row.fill_seq, part.leg_no);
      return {
        oid: part.oid,
        maker: leg.maker,
        market: row.market,
        side: row.side,
        priceTicks: leg.priceTicks,
        baseUnits: fromColumn(part.base_units),
        tid: part.tid,
        cloid: part.cloid,
      };
    }),
  };
}
