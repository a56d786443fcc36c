/** Rows of fills, legs and order fills. */
import type { Knex } from 'knex';
import type { ChainFill, Decomposition, Leg, Market } from '../../core/types.js';
import type { StartBalances } from './balances.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { allOrFirstError, sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import { fillRef } from './invariants.js';
import type { PartDetails } from '../market-data/projection.js';
import type { AttributedFill, AttributedPart, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** What is known of the parts of fills beside the fills themselves. */
interface KnownOfParts {
  /** Base balances before each part. */
  starts: StartBalances;
  details: ReadonlyMap<AttributedPart, PartDetails>;
}

/** Stores the fills of a generation with their legs and parts. */
export async function insertFills(
  tx: Knex.Transaction,
  generation: number,
  fills: readonly AttributedFill[],
  markets: readonly Market[],
  known: KnownOfParts,
): Promise<void> {
  const rows = fills.map((one) => toFillRow(one, generation));
  const parts = fills.flatMap((one) =>
    toPartRows(one, generation, fillRef(markets[one.fill.market]!, one.fill.fillSeq), known),
  );
  await allOrFirstError([
    insertAll(tx, 'fills', rows),
    insertAll(tx, 'fill_legs', fills.flatMap(toLegRows)),
    insertAll(tx, 'order_fills', parts),
  ]);
}

function toFillRow({ fill, decomposition }: AttributedFill, generation: number): Stored<'fills'> {
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

/** A stored fill with its explanation, exactly as it was committed. */
export async function readAttributedFill(q: Queryable, row: Stored<'fills'>): Promise<AttributedFill> {
  const [fill] = await readAttributedFills(q, row.market, [row]);
  return fill!;
}

/** Stored fills of one market that follow each other, with their explanations, exactly as they were committed. */
export async function readAttributedFills(
  q: Queryable,
  market: number,
  rows: readonly Stored<'fills'>[],
): Promise<AttributedFill[]> {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return [];
  const where = 'where market = ? and fill_seq >= ? and fill_seq <= ? order by fill_seq';
  const span = [market, first.fill_seq, last.fill_seq];
  const legs = await sendForRows<Stored<'fill_legs'>>(q, `select * from fill_legs ${where}, leg_no`, span);
  const parts = await sendForRows<Stored<'order_fills'>>(q, `select * from order_fills ${where}, part_no`, span);
  const legsOf = groupBy(legs, (leg) => leg.fill_seq);
  const partsOf = groupBy(parts, (part) => part.fill_seq);
  return rows.map((row) => explained(row, legsOf.get(row.fill_seq) ?? [], partsOf.get(row.fill_seq) ?? []));
}

function explained(
  row: Stored<'fills'>,
  legs: readonly Stored<'fill_legs'>[],
  parts: readonly Stored<'order_fills'>[],
): AttributedFill {
  return {
    fill: toChainFill(row),
    decomposition: toDecomposition(row, legs, parts),
    orderFills: parts.map((part) => {
      const leg = legs[part.leg_no]!;
      return {
        oid: part.oid,
        maker: leg.maker,
        market: row.market,
        side: row.side,
        priceTicks: fromColumn(leg.price_ticks),
        baseUnits: fromColumn(part.base_units),
        tid: part.tid,
        cloid: part.cloid,
      };
    }),
  };
}

function toDecomposition(
  row: Stored<'fills'>,
  legs: readonly Stored<'fill_legs'>[],
  parts: readonly Stored<'order_fills'>[],
): Decomposition {
  return {
    legs: legs.map((leg): Leg => ({
      maker: leg.maker,
      priceTicks: fromColumn(leg.price_ticks),
      baseUnits: fromColumn(leg.base_units),
      quoteUnits: fromColumn(leg.quote_units),
      orders: parts
        .filter((part) => part.leg_no === leg.leg_no)
        .map((part) => ({ oid: part.oid, baseUnits: fromColumn(part.base_units) })),
    })),
    residualUnits: fromColumn(row.residual_units),
    roundingUnits: fromColumn(row.rounding_units),
    compressionResidualUnits: fromColumn(row.compression_residual_units),
    operatorGainUnits: fromColumn(row.operator_gain_units),
    missingBaseUnits: fromColumn(row.missing_base_units),
  };
}
