/** What the platform earned and what it cost, by day. Call each function within `readTx`. */
import { ceilDiv } from '../../core/amounts.js';
import { quoteUnitsCeil, quoteUnitsFloor } from '../../core/market.js';
import type { Address, Market } from '../../core/types.js';
import { candlesBetween } from '../market-data/reads.js';
import { COST_ROLES, NO_MARKET, type CostRole } from '../transactions/costs.js';
import type { Queryable } from '../types.js';
import { marketActivity, type Span } from './reads.js';
import { marketOf, openOf, selectSums, totalOf } from './sums.js';
import { DAY_MS, GAS_DAYS, MARKET_HOURS, type MarketSum } from './tables.js';

/** Wei by who spent it. */
export type GasSpent = Record<CostRole, bigint>;

/** One day of one market. Amounts are units of its tokens. */
export interface OperatorDay {
  openMs: number;
  sums: Record<MarketSum, bigint>;
  gasWei: GasSpent;
  /** The gas in the quote token, rounded up, at the day's last price of the native token; null when no market has such a price. */
  gasUnits: bigint | null;
  /**
   * The operator's gain on fills plus input fees (those in base at the day's last price), less the gas, rounded down; null without
   * `gasUnits`.
   */
  profitUnits: bigint | null;
}

interface OperatorSummary {
  markets: { market: number; days: OperatorDay[] }[];
  /** Gas of all transactions, including those of no market. */
  gasWei: GasSpent;
}

const nothingSpent = (): GasSpent => ({ poster: 0n, settler: 0n, executor: 0n });

/** Summary of these days. `all` are all listed markets: one of them may give the price of the native token. */
export async function operatorSummary(
  q: Queryable,
  wanted: readonly Market[],
  { all, span, nativeToken, nowMs }: { all: readonly Market[]; span: Span; nativeToken: Address; nowMs: number },
): Promise<OperatorSummary> {
  const spent = await selectSums(q, GAS_DAYS, 'day_ms >= ? and day_ms < ?', [span.fromMs, span.toMs]);
  const total = nothingSpent();
  const byDay = new Map<string, GasSpent>();
  for (const row of spent) {
    const role = COST_ROLES.find((one) => one === row.key[0]);
    if (role === undefined) throw new TypeError(`${row.key.join(':')} is of no role`);
    const [market, dayMs] = [marketOf(GAS_DAYS, row), openOf(row)];
    const { fee_wei: feeWei } = totalOf(GAS_DAYS, [row]);
    total[role] += feeWei;
    if (market === NO_MARKET) continue;
    const name = `${market}:${dayMs}`;
    const own = byDay.get(name) ?? nothingSpent();
    byDay.set(name, own);
    own[role] += feeWei;
  }
  const prices = createPrices(q, { span, nowMs });
  const markets: OperatorSummary['markets'] = [];
  for (const market of wanted) {
    const traded = await marketActivity(q, market.index, span, DAY_MS);
    const sumsOf = new Map(traded.map(({ openMs, sums }) => [openMs, sums]));
    const days: OperatorDay[] = [];
    for (let openMs = span.fromMs; openMs < span.toMs; openMs += DAY_MS) {
      const [sums, gasWei] = [sumsOf.get(openMs), byDay.get(`${market.index}:${openMs}`)];
      if (sums === undefined && gasWei === undefined) continue;
      const day = { openMs, sums: sums ?? noSums(), gasWei: gasWei ?? nothingSpent() };
      const gasUnits = await gasUnitsOf(market, day, { all, nativeToken, prices });
      const baseUnits = await baseWorth(market, day, prices);
      const profitUnits =
        gasUnits === null || baseUnits === null
          ? null
          : day.sums.gain_quote + day.sums.input_quote + baseUnits - gasUnits;
      days.push({ ...day, gasUnits, profitUnits });
    }
    markets.push({ market: market.index, days });
  }
  return { markets, gasWei: total };
}

const noSums = (): Record<MarketSum, bigint> => totalOf(MARKET_HOURS, []);

/** Last price of a day, in ticks; without a trade on that day, the last price before it; null before the first trade. */
type Prices = (market: Market, dayMs: number) => Promise<bigint | null>;

function createPrices(q: Queryable, { span, nowMs }: { span: Span; nowMs: number }): Prices {
  const read = new Map<number, Map<number, bigint>>();
  return async ({ index: market }, dayMs) => {
    const known = read.get(market);
    if (known !== undefined) return known.get(dayMs) ?? null;
    const limit = Math.ceil((span.toMs - span.fromMs) / DAY_MS);
    const range = { market, interval: '1d' as const, fromMs: span.fromMs, toMs: span.toMs - 1, nowMs, limit };
    const days = new Map((await candlesBetween(q, range)).map((one) => [one.openMs, one.closeTicks]));
    read.set(market, days);
    return days.get(dayMs) ?? null;
  };
}

async function baseWorth(
  market: Market,
  { openMs, sums }: Pick<OperatorDay, 'openMs' | 'sums'>,
  prices: Prices,
): Promise<bigint | null> {
  if (sums.input_base === 0n) return 0n;
  const ticks = await prices(market, openMs);
  return ticks === null ? null : quoteUnitsFloor(market, ticks, sums.input_base);
}

async function gasUnitsOf(
  market: Market,
  { openMs, gasWei }: Pick<OperatorDay, 'openMs' | 'gasWei'>,
  { all, nativeToken, prices }: { all: readonly Market[]; nativeToken: Address; prices: Prices },
): Promise<bigint | null> {
  const wei = gasWei.poster + gasWei.settler + gasWei.executor;
  if (wei === 0n) return 0n;
  if (market.quote.address === nativeToken) return wei;
  const { address: quote } = market.quote;
  const direct = all.find((one) => one.base.address === nativeToken && one.quote.address === quote);
  if (direct !== undefined) {
    const ticks = await prices(direct, openMs);
    return ticks === null ? null : quoteUnitsCeil(direct, ticks, wei);
  }
  const inverse = all.find((one) => one.base.address === quote && one.quote.address === nativeToken);
  const ticks = inverse === undefined ? null : await prices(inverse, openMs);
  if (inverse === undefined || ticks === null || ticks === 0n) return null;
  return ceilDiv(wei * inverse.lotUnits, ticks * inverse.tickLotUnits);
}

/** The sum over days: gas and profit are null when they are null on any of them. */
export function totalOfDays(days: readonly OperatorDay[]): Omit<OperatorDay, 'openMs'> {
  const add = (a: bigint | null, b: bigint | null): bigint | null => (a === null || b === null ? null : a + b);
  const total: Omit<OperatorDay, 'openMs'> = {
    sums: noSums(),
    gasWei: nothingSpent(),
    gasUnits: 0n,
    profitUnits: 0n,
  };
  for (const day of days) {
    for (const name of MARKET_HOURS.sums) total.sums[name] += day.sums[name];
    for (const role of COST_ROLES) total.gasWei[role] += day.gasWei[role];
    total.gasUnits = add(total.gasUnits, day.gasUnits);
    total.profitUnits = add(total.profitUnits, day.profitUnits);
  }
  return total;
}
