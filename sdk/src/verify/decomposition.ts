import { parseUnits } from '../../../core/amounts.js';
import { NOTHING_RAISED, openSide, attributeFill, orderFillsOf } from '../../../core/attribution.js';
import { checkCurve } from '../../../core/curve/check.js';
import { decodeSide, wordsHash } from '../../../core/curve/words.js';
import { priceToTicks, quoteUnitsFloor, subticksToPrice, unitsToSize } from '../../../core/market.js';
import { snapshotHash } from '../../../core/snapshot.js';
import type { Address, Market, MarketSnapshot, OrderFill, Side } from '../../../core/types.js';
import { marketOf } from '../deployment.js';
import type { Deployment } from '../deployment.js';
import { CurvebookError } from '../errors.js';
import type { Answer, ReadClient, Schemas } from '../read/client.js';

type Fill = Schemas['Fill'];
type Decomposition = Schemas['Decomposition'];
type Curve = Answer<'/v0/curves/{pair}/{curve_seq}'>;

const signed = (text: string, decimals: number): bigint =>
  text.startsWith('-') ? -parseUnits(text.slice(1), decimals) : parseUnits(text, decimals);

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** Base and quote of a fill on its curve, before the taker's fee. */
export function amountsOf(market: Market, fill: Fill): { side: Side; baseUnits: bigint; quoteUnits: bigint } {
  const isBuy = fill.direction === 'buy';
  const [input, output] = isBuy ? [market.quote, market.base] : [market.base, market.quote];
  const inUnits = parseUnits(fill.amount_in, input.decimals);
  const outUnits = parseUnits(fill.amount_out, output.decimals) + parseUnits(fill.fee.amount, output.decimals);
  return isBuy
    ? { side: 'ask', baseUnits: outUnits, quoteUnits: inUnits }
    : { side: 'bid', baseUnits: inUnits, quoteUnits: outUnits };
}

/**
 * Whether a decomposition adds up to its fill: every leg is worth its price, rounded down; legs and residual are the curve's amounts; the
 * residual is the rounding and the compression. Empty when it does, else what is wrong. All in integers.
 */
export function reconcile(deployment: Deployment, fill: Fill, decomposition: Decomposition): string[] {
  const market = marketOf(deployment, fill.pair);
  const { baseUnits, quoteUnits, side } = amountsOf(market, fill);
  const quote = (text: string): bigint => signed(text, market.quote.decimals);
  const base = (text: string): bigint => parseUnits(text, market.base.decimals);
  const problems: string[] = [];
  const expect = (isSo: boolean, otherwise: string): void => void (isSo || problems.push(otherwise));
  const { legs, residual, rounding, compression_residual, operator_gain } = decomposition;
  const isSame = decomposition.pair === fill.pair && decomposition.fill_seq === fill.fill_seq;
  expect(isSame && decomposition.status === 'final', 'it is of another fill, or not final');
  for (const { maker, price, base_amount, quote_amount, orders } of legs) {
    const ticks = priceToTicks(market, price);
    const worth = ticks === null ? null : quoteUnitsFloor(market, ticks, base(base_amount));
    expect(worth === quote(quote_amount), `the leg of ${maker} at ${price} is not worth ${quote_amount}`);
    const parts = sum(orders.map((order) => base(order.base_amount)));
    expect(parts === base(base_amount), `the orders of ${maker} at ${price} are not ${base_amount}`);
  }
  expect(sum(legs.map((leg) => base(leg.base_amount))) === baseUnits, 'the legs have another base amount');
  const legsQuote = sum(legs.map((leg) => quote(leg.quote_amount)));
  expect(legsQuote + quote(residual) === quoteUnits, 'legs and residual are not the quote amount');
  expect(quote(rounding) + quote(compression_residual) === quote(residual), 'the residual is not its parts');
  const gain = side === 'ask' ? quote(residual) : -quote(residual);
  expect(gain === quote(operator_gain), "the operator's gain is not the residual");
  return problems;
}

/** The book behind an expired curve, compared with the hash that was stored with it. Throws CurvebookError `NO_BOOK` or `BAD_CURVE`. */
export function snapshotOf(market: Market, curve: Curve): MarketSnapshot {
  const { snapshot, prepared } = curve;
  if (snapshot === null || prepared === null) {
    throw new CurvebookError(
      'NO_BOOK',
      `the book of curve ${curve.curve_seq} is shown once it is dead, if a fill hit it`,
    );
  }
  const orders = (list: NonNullable<Curve['snapshot']>['asks']) =>
    list.map(({ oid, maker, ticks, lots }) => ({
      oid,
      maker: maker as Address,
      priceTicks: BigInt(ticks),
      sizeLots: BigInt(lots),
    }));
  const book: MarketSnapshot = {
    market: market.index,
    fillSeq: snapshot.fill_seq,
    askVolumeUnits: parseUnits(snapshot.ask_volume, market.base.decimals),
    bidVolumeUnits: parseUnits(snapshot.bid_volume, market.base.decimals),
    asks: orders(snapshot.asks),
    bids: orders(snapshot.bids),
  };
  if (snapshotHash(book) !== prepared.snapshot_hash)
    throw new CurvebookError('BAD_CURVE', 'the book is not that of its hash');
  return book;
}

/**
 * Checks that a curve is what its words say and, if its book is shown, that it is never better for takers than that book: the words have the hash
 * `words_hash` (compare that with the chain's event), their segments are those listed, and up to the end of each segment the curve costs at least as
 * much as the book. Returns what is wrong; empty if nothing is.
 */
export function verifyCurve(deployment: Deployment, curve: Curve): string[] {
  const market = marketOf(deployment, curve.pair);
  const { prepared } = curve;
  if (prepared === null) return ['it was never prepared'];
  const problems: string[] = [];
  const words = { ask: prepared.ask_words.map(BigInt), bid: prepared.bid_words.map(BigInt) };
  // `words` is the whole curve as it stands on-chain. A touch sends no words, so it has no hash to compare.
  if (prepared.kind !== 'touch' && wordsHash(words.ask, words.bid) !== curve.words_hash)
    problems.push('the words have another hash');
  const decoded = { asks: decodeSide(market, 'ask', words.ask), bids: decodeSide(market, 'bid', words.bid) };
  for (const side of ['asks', 'bids'] as const) {
    const said = decoded[side].map(
      ({ lengthUnits, subticks }) => `${unitsToSize(market, lengthUnits)}@${subticksToPrice(market, subticks)}`,
    );
    const listed = prepared[side].map(({ size, price }) => `${size}@${price}`);
    if (said.join() !== listed.join()) problems.push(`the ${side} are not what the words say`);
  }
  if (curve.snapshot === null) return problems;
  try {
    const posted = { ...decoded, exactAskKnots: prepared.exact_ask_knots, exactBidKnots: prepared.exact_bid_knots };
    for (const { code, side, message } of checkCurve(market, snapshotOf(market, curve), posted)) {
      problems.push(`${side ?? 'curve'} ${code}: ${message}`);
    }
  } catch (error) {
    if (!(error instanceof CurvebookError)) throw error;
    problems.push(error.message);
  }
  return problems;
}

/** How many of a market's newest fills are searched for those after a book's snapshot. */
const MAX_FILLS = 256;

/**
 * Computes again which maker was paid what on a fill, from the book behind its curve and the fills since that book's snapshot, and compares it with
 * the server's decomposition. Returns the differences; empty if there are none. Throws CurvebookError `NO_BOOK` while the curve can be traded, and
 * `TOO_OLD` for fills that are not among the newest 256.
 */
export async function rederive(read: ReadClient, pair: string, fillSeq: number): Promise<string[]> {
  const deployment = await read.deployment();
  const market = marketOf(deployment, pair);
  const fills = await read.fills(pair, MAX_FILLS);
  const fill = fills.find(({ fill_seq }) => fill_seq === fillSeq);
  if (fill === undefined) throw new CurvebookError('TOO_OLD', `fill ${fillSeq} is not among the newest ${MAX_FILLS}`);
  const curve = await rootCurve(read, pair, fill.curve_seq);
  const book = snapshotOf(market, curve);
  if ((fills[0]?.fill_seq ?? 0) > book.fillSeq + 1) {
    throw new CurvebookError(
      'TOO_OLD',
      `the book is of fill ${book.fillSeq}, the oldest that is listed is ${fills[0]?.fill_seq}`,
    );
  }
  const { side } = amountsOf(market, fill);
  const late: OrderFill[] = [];
  const before: Fill[] = [];
  for (const one of fills) {
    if (one.fill_seq <= book.fillSeq || one.fill_seq >= fillSeq || amountsOf(market, one).side !== side) continue;
    const root = await rootCurve(read, pair, one.curve_seq);
    if (root.curve_seq === curve.curve_seq) before.push(one);
    else late.push(...partsOf(market, side, await read.decomposition(pair, one.fill_seq)));
  }
  const raisedUnits = parseUnits(side === 'ask' ? curve.raised_ask : curve.raised_bid, market.base.decimals);
  let state = openSide(market, book, side, late, NOTHING_RAISED[side] + raisedUnits);
  for (const one of before) state = attributeFill(market, state, amountsOf(market, one)).state;
  const said = await read.decomposition(pair, fillSeq);
  const { decomposition } = attributeFill(market, state, amountsOf(market, fill));
  const mine = orderFillsOf(market, side, decomposition);
  const problems = reconcile(deployment, fill, said);
  if (linesOf(mine) !== linesOf(partsOf(market, side, said)))
    problems.push('the orders that the book gives are others');
  if (state.consumedUnits !== parseUnits(said.consumed_before ?? '0', market.base.decimals)) {
    problems.push('what was consumed before is another amount');
  }
  return problems;
}

/** For a touch, the post whose curve it prolongs; else the curve itself. */
async function rootCurve(read: ReadClient, pair: string, seq: number): Promise<Curve> {
  const curve = await read.curve(pair, seq);
  return curve.prepared?.kind === 'touch' ? read.curve(pair, curve.base_seq) : curve;
}

function partsOf(market: Market, side: Side, { legs }: Decomposition): OrderFill[] {
  return legs.flatMap(({ maker, price, orders }) => {
    const priceTicks = priceToTicks(market, price);
    if (priceTicks === null) throw new CurvebookError('BAD_CURVE', `${price} is between two ticks`);
    return orders.map(({ oid, base_amount }) => ({
      ...{ oid, maker: maker as Address, market: market.index, side, priceTicks },
      baseUnits: parseUnits(base_amount, market.base.decimals),
    }));
  });
}

const linesOf = (parts: readonly OrderFill[]): string =>
  parts.map(({ oid, maker, priceTicks, baseUnits }) => `${oid} ${maker} ${priceTicks} ${baseUnits}`).join('\n');
