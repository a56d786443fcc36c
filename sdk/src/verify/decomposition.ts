import { parseUnits } from '../../../core/amounts.js';
import { openSide, attributeFill, orderFillsOf } from '../../../core/attribution.js';
import { priceToTicks, quoteUnitsFloor } from '../../../core/market.js';
import type { Address, Market, OrderFill, Side } from '../../../core/types.js';
import { asDeployment, marketOf } from '../deployment.js';
import type { Deployment } from '../deployment.js';
import { CurvebookError } from '../errors.js';
import type { ReadClient, Schemas } from '../read/client.js';
import { contradictionsOf, isTouch, snapshotOf, type Curve } from './curve.js';
import { addTold, problemsIn, readAs } from './told.js';

type Fill = Schemas['Fill'];
type Decomposition = Schemas['Decomposition'];

const signed = (text: string, decimals: number): bigint =>
  text.startsWith('-') ? -parseUnits(text.slice(1), decimals) : parseUnits(text, decimals);

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

interface Amounts {
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
}

/** Base and quote of a fill on its curve, before the taker's fee. Throws CurvebookError `BAD_CURVE` for amounts that are none. */
export const amountsOf = (market: Market, fill: Fill): Amounts => readAs('BAD_CURVE', () => unitsOf(market, fill));

function unitsOf(market: Market, fill: Fill): Amounts {
  const isBuy = fill.direction === 'buy';
  const [input, output] = isBuy ? [market.quote, market.base] : [market.base, market.quote];
  const inUnits = parseUnits(fill.amount_in, input.decimals);
  const outUnits = parseUnits(fill.amount_out, output.decimals) + parseUnits(fill.fee.amount, output.decimals);
  return isBuy
    ? { side: 'ask', baseUnits: outUnits, quoteUnits: inUnits }
    : { side: 'bid', baseUnits: inUnits, quoteUnits: outUnits };
}

/**
 * Whether a decomposition is of its fill and adds up to it: every leg is worth its price, rounded down; legs and residual are the curve's amounts; the
 * residual is the rounding of the legs and the compression. Empty when it does, else what is wrong. All in integers.
 */
export const reconcile = (deployment: Deployment, fill: Fill, decomposition: Decomposition): string[] =>
  problemsIn((problems) => checkSums(deployment, fill, decomposition, problems));

function checkSums(deployment: Deployment, fill: Fill, decomposition: Decomposition, problems: string[]): void {
  const market = marketOf(deployment, fill.pair);
  const { baseUnits, quoteUnits, side } = unitsOf(market, fill);
  const quote = (text: string): bigint => signed(text, market.quote.decimals);
  const base = (text: string): bigint => parseUnits(text, market.base.decimals);
  const expect = (isSo: boolean, otherwise: string): void => void (isSo || problems.push(otherwise));
  const { legs, residual, rounding, compression_residual, operator_gain } = decomposition;
  const isSame = (['pair', 'fill_seq', 'curve_seq', 'direction'] as const).every(
    (name) => decomposition[name] === fill[name],
  );
  expect(isSame && decomposition.status === 'final', 'it is of another fill, or not final');
  const [input, output] = side === 'ask' ? [market.quote, market.base] : [market.base, market.quote];
  const isDirected = fill.token_in === input.symbol && fill.token_out === output.symbol;
  expect(isDirected && fill.fee.token === output.symbol, `its tokens are not those of a ${fill.direction}`);
  const isFee = (['taker', 'token', 'amount'] as const).every((name) => decomposition.fee[name] === fill.fee[name]);
  expect(isFee, 'the fee is not that of the fill');
  let exact = 0n;
  for (const { maker, price, size, base_amount, quote_amount, orders } of legs) {
    const ticks = priceToTicks(market, price);
    exact += (ticks ?? 0n) * base(base_amount);
    expect(base(size) === base(base_amount), `the size of the leg of ${maker} at ${price} is not ${base_amount}`);
    const worth = ticks === null ? null : quoteUnitsFloor(market, ticks, base(base_amount));
    expect(worth === quote(quote_amount), `the leg of ${maker} at ${price} is not worth ${quote_amount}`);
    const parts = sum(orders.map((order) => base(order.base_amount)));
    expect(parts === base(base_amount), `the orders of ${maker} at ${price} are not ${base_amount}`);
  }
  expect(sum(legs.map((leg) => base(leg.base_amount))) === baseUnits, 'the legs have another base amount');
  const legsQuote = sum(legs.map((leg) => quote(leg.quote_amount)));
  expect(legsQuote + quote(residual) === quoteUnits, 'legs and residual are not the quote amount');
  expect(quote(rounding) === quoteUnitsFloor(market, 1n, exact) - legsQuote, 'the rounding is not that of the legs');
  expect(quote(rounding) + quote(compression_residual) === quote(residual), 'the residual is not its parts');
  const gain = side === 'ask' ? quote(residual) : -quote(residual);
  expect(gain === quote(operator_gain), "the operator's gain is not the residual");
}

/** How many of a market's newest fills are searched for those after a book's snapshot. */
const MAX_FILLS = 256;
/** Touches in a row between two fills of one curve; after a fill, a new book is posted within seconds. */
const MAX_TOUCHES = 64;

/**
 * Computes again which maker was paid what on a fill, from the book behind its curve and the fills since that book's snapshot, and compares it with
 * the server's decomposition. Returns the differences; empty if there are none. The chain numbers a market's fills without gaps, so that none of
 * them can be left out. Throws CurvebookError `NO_BOOK` while the curve can be traded, `TOO_OLD` for fills that are not among the newest 256, and
 * `BAD_CURVE` for a book that is none. Errors of `read` come as they are.
 */
export async function rederive(read: ReadClient, pair: string, fillSeq: number): Promise<string[]> {
  const ofReading = new Set<unknown>();
  const problems: string[] = [];
  try {
    return await derived(noting(read, ofReading), { pair, fillSeq, problems });
  } catch (error) {
    if (error instanceof CurvebookError || ofReading.has(error)) throw error;
    return addTold(problems, error);
  }
}

type Reads = Pick<ReadClient, 'deployment' | 'fills' | 'curve' | 'decomposition'>;

/** The same reads, which note their own errors: all others come of what is done with an answer. */
function noting(read: Reads, errors: Set<unknown>): Reads {
  const noted =
    <A extends unknown[], T>(ask: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        return await ask(...args);
      } catch (error) {
        errors.add(error);
        throw error;
      }
    };
  return {
    deployment: noted(() => read.deployment()),
    fills: noted((pair, limit) => read.fills(pair, limit)),
    curve: noted((pair, seq) => read.curve(pair, seq)),
    decomposition: noted((pair, seq) => read.decomposition(pair, seq)),
  };
}

async function derived(
  read: Reads,
  { pair, fillSeq, problems }: { pair: string; fillSeq: number; problems: string[] },
): Promise<string[]> {
  const deployment = asDeployment(await read.deployment());
  const market = marketOf(deployment, pair);
  const fills = await read.fills(pair, MAX_FILLS);
  const fill = fills.find(({ fill_seq }) => fill_seq === fillSeq);
  if (fill === undefined) throw new CurvebookError('TOO_OLD', `fill ${fillSeq} is not among the newest ${MAX_FILLS}`);
  const curve = await curveOf(read, pair, fill.curve_seq);
  const book = snapshotOf(market, curve);
  const oldest = fills[0]?.fill_seq ?? 0;
  // A shorter list has all fills of the market.
  if (oldest > book.fillSeq + 1 && fills.length >= MAX_FILLS)
    throw new CurvebookError('TOO_OLD', `the book is of fill ${book.fillSeq}, the oldest that is listed is ${oldest}`);
  const wrong = problemsOf(fills, fill, { pair, bookSeq: book.fillSeq, curve });
  if (wrong.length > 0) return wrong;

  const { side } = unitsOf(market, fill);
  const said = await read.decomposition(pair, fillSeq);
  problems.push(...reconcile(deployment, fill, said));
  const since = fills.filter(
    (one) => one.fill_seq > book.fillSeq && one.fill_seq < fillSeq && unitsOf(market, one).side === side,
  );
  const own = await prolongedBy(read, curve, Math.min(...since.map(({ curve_seq }) => curve_seq)), problems);
  const late: OrderFill[] = [];
  for (const one of since.filter(({ curve_seq }) => !own.has(curve_seq))) {
    const explained = await read.decomposition(pair, one.fill_seq);
    for (const problem of reconcile(deployment, one, explained)) problems.push(`fill ${one.fill_seq}: ${problem}`);
    late.push(...partsOf(market, side, explained));
  }
  const raisedUnits = parseUnits(side === 'ask' ? curve.raised_ask : curve.raised_bid, market.base.decimals);
  let state = openSide(market, book, side, late, raisedUnits);
  for (const one of since.filter(({ curve_seq }) => own.has(curve_seq)))
    state = attributeFill(market, state, unitsOf(market, one)).state;
  const { decomposition } = attributeFill(market, state, unitsOf(market, fill));
  const mine = orderFillsOf(market, side, decomposition);
  if (linesOf(mine) !== linesOf(partsOf(market, side, said)))
    problems.push('the orders that the book gives are others');
  if (said.consumed_before === null || state.consumedUnits !== parseUnits(said.consumed_before, market.base.decimals)) {
    problems.push('what was consumed before is another amount');
  }
  return problems;
}

/** What makes it impossible to derive a fill again: with other fills than those of the chain, or another curve's book, nothing would be shown. */
function problemsOf(
  fills: readonly Fill[],
  fill: Fill,
  { pair, bookSeq, curve }: { pair: string; bookSeq: number; curve: Curve },
): string[] {
  const problems = contradictionsOf(curve);
  // What is no number compares with nothing: a fill could be listed, and counted nowhere.
  for (const name of ['fill_seq', 'curve_seq', 'block_number'] as const)
    if (!fills.every((one) => Number.isSafeInteger(one[name]))) problems.push(`a fill has no ${name}`);
  if (curve.block_number > fill.block_number)
    problems.push(
      `curve ${curve.curve_seq} landed in block ${curve.block_number}, after fill ${fill.fill_seq} in ${fill.block_number}`,
    );
  if (fill.fill_seq <= bookSeq)
    return [...problems, `the book is of fill ${bookSeq}, fill ${fill.fill_seq} is no later one`];
  let next = bookSeq + 1;
  for (const one of fills) {
    if (one.fill_seq <= bookSeq || one.fill_seq > fill.fill_seq) continue;
    if (one.pair !== pair) return [...problems, `fill ${one.fill_seq} is of ${one.pair}`];
    if (one.fill_seq > next) return [...problems, `fill ${next} is missing`];
    if (one.fill_seq < next) return [...problems, `fill ${one.fill_seq} is listed twice or out of order`];
    next += 1;
  }
  return problems;
}

/** A curve. Throws CurvebookError `BAD_CURVE` where the answer is about another one. */
async function curveOf(read: Reads, pair: string, seq: number): Promise<Curve> {
  const curve = await read.curve(pair, seq);
  if (curve.pair === pair && curve.curve_seq === seq) return curve;
  throw new CurvebookError('BAD_CURVE', `asked for curve ${seq} of ${pair}, got ${curve.curve_seq} of ${curve.pair}`);
}

/** The number of a curve and of those that it prolongs, as a touch may prolong another one, but for those below the lowest that is asked for. */
async function prolongedBy(
  read: Reads,
  curve: Curve,
  lowest: number,
  problems: string[],
): Promise<ReadonlySet<number>> {
  const seqs = new Set([curve.curve_seq]);
  let touch = curve;
  while (isTouch(touch) && touch.base_seq >= lowest) {
    if (seqs.size > MAX_TOUCHES) {
      problems.push(`curve ${curve.curve_seq} follows on more than ${MAX_TOUCHES} touches`);
      return seqs;
    }
    const base = await curveOf(read, curve.pair, touch.base_seq);
    const contradictions = contradictionsOf(base);
    problems.push(...contradictions);
    if (contentOf(base) !== contentOf(touch))
      problems.push(`curve ${touch.curve_seq} prolongs curve ${base.curve_seq}, which is another`);
    if (contradictions.length > 0) return seqs;
    seqs.add(base.curve_seq);
    touch = base;
  }
  return seqs;
}

/** What a touch leaves as it is. */
function contentOf({ prepared, raised_ask, raised_bid }: Curve): string {
  const { snapshot_hash, ask_words, bid_words } = prepared ?? {};
  return JSON.stringify([snapshot_hash, ask_words, bid_words, raised_ask, raised_bid]);
}

function partsOf(market: Market, side: Side, { legs }: Decomposition): OrderFill[] {
  return legs.flatMap(({ maker, price, orders }) => {
    const priceTicks = priceToTicks(market, price);
    if (priceTicks === null) throw new RangeError(`${price} is between two ticks`);
    return orders.map(({ oid, base_amount }) => ({
      ...{ oid, maker: maker as Address, market: market.index, side, priceTicks },
      baseUnits: parseUnits(base_amount, market.base.decimals),
    }));
  });
}

const linesOf = (parts: readonly OrderFill[]): string =>
  JSON.stringify(parts.map(({ oid, maker, priceTicks, baseUnits }) => [oid, maker, `${priceTicks}`, `${baseUnits}`]));
