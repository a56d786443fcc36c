/** Points that queries take from the budget of an address, as documented by the venue whose wire this server speaks. */

/** Points of a query before its rows are counted; of all others, unknown ones too, `DEFAULT_WEIGHT`. */
const WEIGHTS: ReadonlyMap<string, number> = new Map([
  ...['l2Book', 'allMids', 'clearinghouseState', 'orderStatus', 'spotClearinghouseState', 'exchangeStatus'].map(
    (type) => [type, 2] as const,
  ),
  ['userRole', 60],
]);

const DEFAULT_WEIGHT = 20;

/** Points more of an answer for which the database was searched, where others of its type come from memory. */
const SEARCH_POINTS = 8;
const searched = new WeakSet<object>();

/** Marks an answer as one for which the database was searched. */
export function afterSearch<T extends object>(answer: T): T {
  searched.add(answer);
  return answer;
}

/** Rows of an answer, or of what a subscription begins with, that cost one point more. */
const ROWS_PER_POINT: ReadonlyMap<string, number> = new Map([
  ...['recentTrades', 'historicalOrders', 'userFills', 'userFillsByTime', 'fundingHistory', 'userFunding'].map(
    (type) => [type, 20] as const,
  ),
  ...['userNonFundingLedgerUpdates', 'twapHistory', 'userTwapSliceFills', 'userHistoricalOrders'].map(
    (type) => [type, 20] as const,
  ),
  ['candleSnapshot', 60],
]);

/** What the body of a query costs before it is answered. */
export function queryWeight(body: unknown): number {
  const type = (body as { type?: unknown } | null | undefined)?.type;
  return (typeof type === 'string' ? WEIGHTS.get(type) : undefined) ?? DEFAULT_WEIGHT;
}

/** What its answer, or what a subscription begins with, costs on top: its rows, in whole points, or the search for it. */
export function answerWeight(body: unknown, answer: unknown): number {
  if (typeof answer === 'object' && answer !== null && searched.has(answer)) return SEARCH_POINTS;
  const type = (body as { type?: unknown } | null | undefined)?.type;
  const rows = typeof type === 'string' ? ROWS_PER_POINT.get(type) : undefined;
  return rows === undefined || !Array.isArray(answer) ? 0 : Math.floor(answer.length / rows);
}
