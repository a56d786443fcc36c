/** Pages of fills, newest first, each found by an index, however long the history is. */
import type { Address, ChainFill, Hex } from '../../core/types.js';
import { checkLimit, fromColumn } from '../db/columns.js';
import { sendForRows, type Binding } from '../db/dialects.js';
import { toChainFill } from '../chain/fills.js';
import { toUserFill, type UserFill, type UserFillRow } from '../views/reads.js';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

export interface FillPage {
  market: number;
  /** Only fills with a lower number; all when left out. */
  before?: number | undefined;
  limit: number;
  /** Only fills that an order of this maker had a part in. */
  maker?: Address | undefined;
  /** Only fills that this address sent the swap of. Not together with a maker. */
  taker?: Address | undefined;
}

/** The newest fills of a market that match, newest first. */
export async function fillsPage(q: Queryable, page: FillPage): Promise<ChainFill[]> {
  const { market, maker, taker } = page;
  const before = page.before ?? Number.MAX_SAFE_INTEGER;
  const limit = checkLimit(page.limit);
  const newest = 'order by fill_seq desc limit ?';
  let rows: Stored<'fills'>[];
  if (maker !== undefined) {
    const own = `select distinct fill_seq from order_fills where maker = ? and market = ? and fill_seq < ? ${newest}`;
    const sql = `select * from fills where market = ? and fill_seq in (${own}) order by fill_seq desc`;
    rows = await sendForRows<Stored<'fills'>>(q, sql, [market, maker, market, before, limit]);
  } else if (taker !== undefined) {
    const sql = `select * from fills where taker = ? and market = ? and fill_seq < ? ${newest}`;
    rows = await sendForRows<Stored<'fills'>>(q, sql, [taker, market, before, limit]);
  } else {
    rows = await sendForRows<Stored<'fills'>>(q, `select * from fills where market = ? and fill_seq < ? ${newest}`, [
      market,
      before,
      limit,
    ]);
  }
  return rows.map(toChainFill);
}

/** Position of a part in a maker's list of fills. */
export interface PartCursor {
  timestampMs: number;
  market: number;
  fillSeq: number;
  partNo: number;
}

export interface MakerFill extends UserFill, PartCursor {
  taker: Address;
}

/** The newest order fills of a maker before one of them, newest first; of one market when one is given. */
export async function makerFillsPage(
  q: Queryable,
  page: { maker: Address; market?: number | undefined; before?: PartCursor | undefined; limit: number },
): Promise<MakerFill[]> {
  const bindings: Binding[] = [page.maker];
  let where = 'part.maker = ?';
  if (page.market !== undefined) {
    where += ' and part.market = ?';
    bindings.push(page.market);
  }
  if (page.before !== undefined && page.before.market === page.market) {
    // Numbers of fills are the order of a market, and an index holds them in it: a page costs the same however far back it is.
    const { fillSeq, partNo } = page.before;
    where += ' and part.fill_seq <= ? and (part.fill_seq < ? or part.part_no < ?)';
    bindings.push(fillSeq, fillSeq, partNo);
  } else if (page.before !== undefined) {
    const { timestampMs, market, fillSeq, partNo } = page.before;
    where +=
      ' and part.timestamp_ms <= ? and (part.timestamp_ms < ? or part.market < ? or ' +
      '(part.market = ? and (part.fill_seq < ? or (part.fill_seq = ? and part.part_no < ?))))';
    bindings.push(timestampMs, timestampMs, market, market, fillSeq, fillSeq, partNo);
  }
  const order =
    page.market === undefined
      ? 'part.timestamp_ms desc, part.market desc, part.fill_seq desc, part.part_no desc'
      : 'part.fill_seq desc, part.part_no desc';
  // What the fills say is read of the page alone, not of all parts of one time.
  const own = `select part.* from order_fills as part where ${where} order by ${order} limit ?`;
  const sql =
    `select part.*, fill.tx_hash, fill.block_number, fill.taker from (${own}) as part ` +
    `join fills as fill on fill.market = part.market and fill.fill_seq = part.fill_seq order by ${order}`;
  type Row = UserFillRow & { part_no: number; taker: Address };
  const rows = await sendForRows<Row>(q, sql, [...bindings, checkLimit(page.limit)]);
  return rows.map((row) => ({ ...toUserFill(row), partNo: row.part_no, taker: row.taker }));
}

/** Position of a swap on the chain. */
export interface SwapCursor {
  blockNumber: number;
  logIndex: number;
}

/** A swap of a taker: one that it sent itself, or a signed order of it that was filled by whatever route. */
export type TakerSwap = SwapCursor &
  (
    | { kind: 'direct'; fill: ChainFill; timestampMs: number }
    | {
        kind: 'signed';
        tokenIn: Address;
        tokenOut: Address;
        amountInUnits: bigint;
        amountOutUnits: bigint;
        feeUnits: bigint;
        recipient: Address;
        txHash: Hex;
        /** Null when the block is no longer kept. */
        timestampMs: number | null;
      }
  );

interface SettledRow {
  token_in: Address;
  token_out: Address;
  amount_in_units: string;
  amount_out_units: string;
  fee_units: string;
  recipient: Address;
  tx_hash: Hex;
  block_number: number;
  log_index: number;
  timestamp_sec: number | null;
}

/** The newest swaps of a taker before a place on the chain, newest first. */
export async function takerSwapsPage(
  q: Queryable,
  page: { taker: Address; before?: SwapCursor | undefined; limit: number },
): Promise<TakerSwap[]> {
  const limit = checkLimit(page.limit);
  const { blockNumber, logIndex } = page.before ?? { blockNumber: Number.MAX_SAFE_INTEGER, logIndex: 0 };
  const place = [blockNumber, blockNumber, logIndex, limit];
  const older = (of: string): string =>
    `${of}.block_number <= ? and (${of}.block_number < ? or ${of}.log_index < ?) order by ${of}.block_number desc, ${of}.log_index desc limit ?`;
  const fills = await sendForRows<Stored<'fills'>>(q, `select * from fills where taker = ? and ${older('fills')}`, [
    page.taker,
    ...place,
  ]);
  const orders = await sendForRows<SettledRow>(
    q,
    'select settled.*, blocks.timestamp_sec from settled_orders as settled left join blocks on blocks.number = settled.block_number ' +
      `where settled.owner = ? and ${older('settled')}`,
    [page.taker, ...place],
  );
  const swaps: TakerSwap[] = [
    ...fills.map(toChainFill).map((fill) => ({
      ...{ kind: 'direct' as const, fill, timestampMs: fill.timestampMs },
      ...{ blockNumber: fill.blockNumber, logIndex: fill.logIndex },
    })),
    ...orders.map((row) => ({
      kind: 'signed' as const,
      tokenIn: row.token_in,
      tokenOut: row.token_out,
      amountInUnits: fromColumn(row.amount_in_units),
      amountOutUnits: fromColumn(row.amount_out_units),
      feeUnits: fromColumn(row.fee_units),
      recipient: row.recipient,
      txHash: row.tx_hash,
      timestampMs: row.timestamp_sec === null ? null : row.timestamp_sec * 1_000,
      blockNumber: row.block_number,
      logIndex: row.log_index,
    })),
  ];
  return swaps.sort((a, b) => b.blockNumber - a.blockNumber || b.logIndex - a.logIndex).slice(0, limit);
}
