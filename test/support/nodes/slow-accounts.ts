/**
 * Expected numbers of accounts, computed slowly and without the ledger's code: from the read API's fills, decompositions and curves, and from the rows
 * of the order log. Amounts are integers of a token's smallest unit, prices fractions.
 */
import type { Address, Market, Side } from '../../../core/types.js';
import { slowPosition, slowTrades, type SlowFill } from '../api/market-data.js';

type Get = (path: string) => Promise<{ status: number; body: unknown }>;

export interface Heard {
  market: Market;
  fills: HeardFill[];
  /** By number. */
  curves: Map<number, HeardCurve>;
}

interface HeardFill extends SlowFill {
  curveSeq: number;
  blockNumber: number;
  taker: string;
  base: bigint;
  quote: bigint;
  fee: bigint;
  gain: bigint;
}

interface HeardCurve {
  blockNumber: number;
  timeSec: number;
  deadlineSec: number;
  orderSeq: number;
  baseSeq: number;
  /** Best ask and best bid. */
  middle: Fraction | null;
}

interface Fraction {
  over: bigint;
  under: bigint;
}

interface FillBody {
  fill_seq: number;
  curve_seq: number;
  direction: 'buy' | 'sell';
  amount_in: string;
  amount_out: string;
  fee: { amount: string };
  taker: string;
  block_number: number;
  timestamp_ms: number;
}

interface LegBody {
  maker: Address;
  price: string;
  quote_amount: string;
  orders: { oid: number; base_amount: string }[];
}

interface CurveBody {
  base_seq: number;
  deadline_sec: number;
  block_number: number;
  block_timestamp_sec: number;
  prepared: { cut: { order_seq: number }; asks: { price: string }[]; bids: { price: string }[] };
}

/** An exact decimal as a fraction. */
function fractionOf(text: string): Fraction {
  const [whole = '', rest = ''] = text.replace('-', '').split('.');
  const over = BigInt(whole + rest) * (text.startsWith('-') ? -1n : 1n);
  return { over, under: 10n ** BigInt(rest.length) };
}

export function unitsOf(text: string, decimals: number): bigint {
  const { over, under } = fractionOf(text);
  const scaled = over * 10n ** BigInt(decimals);
  if (scaled % under !== 0n) throw new Error(`${text} has too many digits`);
  return scaled / under;
}

/** Asks the read API for everything that ever happened in a market. */
export async function hear(get: Get, market: Market): Promise<Heard> {
  const bodies: FillBody[] = [];
  for (let before = ''; ;) {
    const { body } = await get(`/v0/fills?pair=${market.pair}&limit=1000${before}`);
    const page = body as FillBody[];
    bodies.unshift(...page);
    if (page.length < 1_000) break;
    before = `&before=${page[0]!.fill_seq}`;
  }
  const fills: HeardFill[] = [];
  for (const one of bodies) {
    const { body } = await get(`/v0/fills/${one.fill_seq}/decomposition?pair=${market.pair}`);
    fills.push(fillOf(market, one, body as { legs: LegBody[]; operator_gain: string }));
  }
  const curves = new Map<number, HeardCurve>();
  // Some sequence numbers never landed, but never as many in a row as this.
  for (let seq = 1, missing = 0; missing < 200; seq += 1) {
    const { status, body } = await get(`/v0/curves/${market.pair}/${seq}`);
    missing = status === 200 ? 0 : missing + 1;
    if (status === 200) curves.set(seq, curveOf(body as CurveBody));
  }
  return { market, fills, curves };
}

function fillOf(market: Market, body: FillBody, explained: { legs: LegBody[]; operator_gain: string }): HeardFill {
  const isBuy = body.direction === 'buy';
  const [inDecimals, outDecimals] = isBuy
    ? [market.quote.decimals, market.base.decimals]
    : [market.base.decimals, market.quote.decimals];
  const fee = unitsOf(body.fee.amount, outDecimals);
  const [paid, got] = [unitsOf(body.amount_in, inDecimals), unitsOf(body.amount_out, outDecimals) + fee];
  const tick = fractionOf(market.tickSize);
  return {
    ...{ market: market.index, fillSeq: body.fill_seq, curveSeq: body.curve_seq, side: isBuy ? 'ask' : 'bid' },
    ...{ timeMs: body.timestamp_ms, blockNumber: body.block_number, taker: body.taker, fee },
    base: isBuy ? got : paid,
    quote: isBuy ? paid : got,
    gain: unitsOf(explained.operator_gain, market.quote.decimals),
    legs: explained.legs.map((leg) => {
      const price = fractionOf(leg.price);
      return {
        maker: leg.maker,
        priceTicks: (price.over * tick.under) / (price.under * tick.over),
        quoteUnits: unitsOf(leg.quote_amount, market.quote.decimals),
        orders: leg.orders.map(({ oid, base_amount: base }) => ({
          oid,
          baseUnits: unitsOf(base, market.base.decimals),
        })),
      };
    }),
  };
}

function curveOf(body: CurveBody): HeardCurve {
  const [ask] = body.prepared.asks;
  const [bid] = body.prepared.bids;
  const both = ask && bid && [fractionOf(ask.price), fractionOf(bid.price)];
  return {
    blockNumber: body.block_number,
    timeSec: body.block_timestamp_sec,
    deadlineSec: body.deadline_sec,
    orderSeq: body.prepared.cut.order_seq,
    baseSeq: body.base_seq,
    middle: both
      ? {
          over: both[0]!.over * both[1]!.under + both[1]!.over * both[0]!.under,
          under: 2n * both[0]!.under * both[1]!.under,
        }
      : null,
  };
}

/** Rounded down. */
const floor = (over: bigint, under: bigint): bigint => (over >= 0n ? over / under : -((-over + under - 1n) / under));

/** Quote units that base is worth, rounded down or up. */
function worth(market: Market, base: bigint, price: Fraction, up: boolean): bigint {
  const over = base * price.over * 10n ** BigInt(market.quote.decimals);
  const under = price.under * 10n ** BigInt(market.base.decimals);
  return up ? -floor(-over, under) : floor(over, under);
}

/** A fraction that a decimal says exactly, as that decimal. */
export function exactDecimal({ over, under }: Fraction): string {
  if (over < 0n) return `-${exactDecimal({ over: -over, under })}`;
  let [text, rest] = [`${over / under}.`, over % under];
  for (let digits = 0; rest > 0n; digits += 1) {
    if (digits > 60) throw new Error('no decimal says it exactly');
    text += `${(rest * 10n) / under}`;
    rest = (rest * 10n) % under;
  }
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

/** What a unit of the base of an open position cost, in whole tokens, cut after 12 digits more than a quote unit has; null without a position. */
export function averageCost(market: Market, { open, cost }: { open: bigint; cost: bigint }): string | null {
  if (open === 0n) return null;
  const digits = 10n ** BigInt(market.quote.decimals + 12);
  // Quote units are whole tokens times ten to their decimals, and so are base units.
  const [over, under] = [
    cost * 10n ** BigInt(market.base.decimals) * digits,
    open * 10n ** BigInt(market.quote.decimals),
  ];
  return exactDecimal({ over: over / under, under: digits });
}

/** The middle that stood at a time: of the last curve in a block up to it, unless that was over. */
function middleAt({ curves }: Heard, timeSec: number): Fraction | null {
  let newest: HeardCurve | null = null;
  for (const curve of curves.values()) if (curve.timeSec <= timeSec) newest = curve;
  return newest === null || newest.deadlineSec <= timeSec ? null : newest.middle;
}

/** A row of the order log as it is stored. */
export interface StoredOrderRow {
  order_seq: number;
  maker: string;
  effects: string;
}

interface StoredEffect {
  type: string;
  oid: number;
  market: number;
  side: Side;
  priceTicks: string;
  sizeLots: string;
}

/** A row of the order log with its effects read. */
export interface ParsedRow {
  order_seq: number;
  maker: string;
  effects: (Omit<StoredEffect, 'priceTicks' | 'sizeLots'> & { ticks: bigint; lots: bigint })[];
}

export const parsedRows = (rows: readonly StoredOrderRow[]): ParsedRow[] =>
  rows.map((row) => ({
    ...row,
    effects: (JSON.parse(row.effects) as StoredEffect[]).map(({ priceTicks = '0', sizeLots = '0', ...one }) => ({
      ...{ ...one, ticks: BigInt(priceTicks), lots: BigInt(sizeLots) },
    })),
  }));

/** Orders of a market that were opened and not closed up to a row of the order log, less what some fills took of them. */
export function openAfter(
  { market, fills }: Heard,
  rows: readonly ParsedRow[],
  upTo: { orderSeq: number; isTaken: (fill: HeardFill) => boolean },
) {
  const orders = new Map<number, { maker: string; side: Side; ticks: bigint; units: bigint }>();
  for (const row of rows) {
    if (row.order_seq > upTo.orderSeq) continue;
    for (const effect of row.effects) {
      if (effect.type === 'close') orders.delete(effect.oid);
      else if (effect.market === market.index)
        orders.set(effect.oid, {
          maker: row.maker,
          side: effect.side,
          ticks: effect.ticks,
          units: effect.lots * market.lotUnits,
        });
    }
  }
  for (const fill of fills) {
    if (!upTo.isTaken(fill)) continue;
    for (const leg of fill.legs) {
      for (const { oid, baseUnits } of leg.orders) {
        const order = orders.get(oid);
        if (order !== undefined) order.units -= baseUnits;
      }
    }
  }
  return orders;
}

/** What each maker offered in the book behind a curve, by side: orders up to its cut, less what blocks before it took. */
function offeredBehind(heard: Heard, curve: HeardCurve, rows: readonly ParsedRow[]): Map<string, Record<Side, bigint>> {
  const { market } = heard;
  // A touch has the book of the curve that it prolongs, which may be a touch itself.
  let posted = curve;
  for (let base = heard.curves.get(posted.baseSeq); base !== posted; base = heard.curves.get(posted.baseSeq))
    posted = base!;
  const orders = openAfter(heard, rows, {
    orderSeq: curve.orderSeq,
    isTaken: (fill) => fill.blockNumber < posted.blockNumber,
  });
  const offered = new Map<string, Record<Side, bigint>>();
  for (const { maker, side, units } of orders.values()) {
    const whole = (units / market.lotUnits) * market.lotUnits;
    if (whole <= 0n) continue;
    const own = offered.get(maker) ?? { ask: 0n, bid: 0n };
    own[side] += whole;
    offered.set(maker, own);
  }
  return offered;
}

/** The books behind the curves that were hit, one for each row of fills on one curve, with the first of them. */
export function slowBooks(heard: Heard, rows: readonly ParsedRow[]) {
  return heard.fills
    .filter((fill, i) => fill.curveSeq !== heard.fills[i - 1]?.curveSeq)
    .map((fill) => ({ fill, offered: offeredBehind(heard, heard.curves.get(fill.curveSeq)!, rows) }));
}

/** A maker's numbers over all fills, in units. `headMs` is the time of the newest block. */
export function slowMaker(heard: Heard, books: ReturnType<typeof slowBooks>, maker: string, headMs: number) {
  const { market, fills } = heard;
  const trades = fills.flatMap((fill) => slowTrades(market, fill)).filter((trade) => trade.maker === maker);
  const position = slowPosition(trades);
  const markouts = [1, 10, 60].map((seconds) => {
    const sum = { seconds, amount: 0n, marked: 0n, unmarked: 0n };
    for (const { timeMs, side, base, quote } of trades) {
      if (timeMs + seconds * 1_000 >= headMs) continue;
      const middle = middleAt(heard, timeMs / 1_000 + seconds);
      if (middle === null) sum.unmarked += quote;
      else {
        sum.marked += quote;
        sum.amount +=
          side === 'bid' ? worth(market, base, middle, false) - quote : quote - worth(market, base, middle, true);
      }
    }
    return sum;
  });
  const open = position.bought - position.sold;
  const cost = position.realised - (position.got - position.paid);
  const now = middleAt(heard, headMs / 1_000);
  const shown = books.filter(({ offered }) => offered.has(maker));
  const offeredBy = (of: string): bigint =>
    books.reduce((sum, { offered }) => sum + (offered.get(of)?.ask ?? 0n) + (offered.get(of)?.bid ?? 0n), 0n);
  const everybody = new Set(books.flatMap(({ offered }) => [...offered.keys()]));
  return {
    fills: new Set(fills.filter((fill) => fill.legs.some((leg) => leg.maker === maker)).map(({ fillSeq }) => fillSeq))
      .size,
    parts: trades.length,
    position,
    open,
    cost,
    middle: now,
    unrealised: now === null ? null : worth(market, open, now, false) - cost,
    markouts,
    curves: shown.length,
    offered: offeredBy(maker),
    offeredByAll: [...everybody].reduce((sum, one) => sum + offeredBy(one), 0n),
    filledOfAll: fills.reduce((sum, fill) => sum + fill.base, 0n),
  };
}

/** A taker's numbers over all fills, in units. */
export function slowTaker(heard: Heard, taker: string) {
  const { market, curves } = heard;
  const sum = { fills: 0, bought: [0n, 0n], sold: [0n, 0n], fees: [0n, 0n], slippage: 0n, priced: 0n };
  for (const fill of heard.fills.filter((one) => one.taker === taker)) {
    const buys = fill.side === 'ask';
    sum.fills += 1;
    const side = buys ? sum.bought : sum.sold;
    side[0]! += fill.base;
    side[1]! += fill.quote;
    sum.fees[buys ? 0 : 1]! += fill.fee;
    const { middle } = curves.get(fill.curveSeq)!;
    if (middle === null) continue;
    sum.priced += fill.quote;
    sum.slippage += buys
      ? fill.quote - worth(market, fill.base, middle, false)
      : worth(market, fill.base, middle, true) - fill.quote;
  }
  return sum;
}
