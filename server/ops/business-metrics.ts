/** Metrics of markets and their largest makers. Amounts are in whole quote tokens, to six digits. */
import type { Registry } from 'prom-client';
import { BPS, toSafeInt } from '../../core/amounts.js';
import type { MakerFacts, Ratio } from '../../ledger/accounts/business.js';
import type { BusinessSource, MetricSources, PairFacts } from './metric-sources.js';
import { gauge, inTokens, saturated, type Labels } from './gauge.js';

const SCALE = 1_000_000n;

/** A fraction with six digits; null when the whole is zero. */
function ratio({ part, whole }: Ratio, factor = 1n): number | null {
  if (whole === 0n) return null;
  const scaled = (part * factor * SCALE) / whole;
  return saturated(scaled) / toSafeInt(SCALE);
}

const GWEI = 10n ** 9n;

type MarketRow = BusinessSource['markets'][number];

export function businessGauges(registry: Registry, sources: MetricSources): void {
  const perPair = (name: string, help: string, value: (market: MarketRow) => number | null): void =>
    gauge(registry, [name, help, 'pair'], async () => {
      const facts = await sources.business();
      return (facts?.markets ?? []).flatMap((market): [Labels, number][] => {
        const number = value(market);
        return number === null ? [] : [[{ pair: market.pair }, number]];
      });
    });
  perPair('pair_fills_day', 'fills of the last 24 hours', ({ fills }) => saturated(fills));
  perPair('pair_volume_day', 'their quote amount', ({ volumeUnits, quoteDecimals }) =>
    inTokens(volumeUnits, quoteDecimals),
  );
  perPair(
    'pair_residual_day',
    'what they brought the operator, in the quote token',
    ({ residualUnits, quoteDecimals }) => inTokens(residualUnits, quoteDecimals),
  );
  perPair('pair_input_fees_day', 'their input fees in the quote token', ({ inputFeeUnits, quoteDecimals }) =>
    inTokens(inputFeeUnits, quoteDecimals),
  );
  perPair(
    'pair_profit_today',
    'residual and input fees less gas of this day in UTC, in the quote token; absent without a price of gas',
    ({ profitUnits, quoteDecimals }) => (profitUnits === null ? null : inTokens(profitUnits, quoteDecimals)),
  );
  perPair('pair_curve_live', '1 while swaps can execute on a curve, else 0', ({ isLive }) => (isLive ? 1 : 0));
  perPair('pair_idle_seconds', 'since the newest fill, without any since the first curve', ({ idleMs }) =>
    idleMs === null ? null : idleMs / 1_000,
  );
  perPair('pair_spread_bps', 'best ask less best bid of the live curve, in basis points of the middle', ({ spread }) =>
    spread === null ? null : ratio(spread, BPS),
  );
  perPair('pair_top_maker_share', "the largest maker's part of the base filled in 24 hours", ({ makers: [top] }) =>
    top === undefined ? null : ratio(top.fillShare),
  );
  perPair(
    'pair_makers',
    'makers with a fill, or an order behind a curve that was hit, in 24 hours; only the five largest have metrics of their own',
    ({ makerCount }) => makerCount,
  );
  gauge(registry, ['gas_today_gwei', 'what transactions of this day in UTC cost', 'role'], async () =>
    Object.entries((await sources.business())?.gasWei ?? {}).map(([role, wei]) => [{ role }, saturated(wei / GWEI)]),
  );
  makerGauges(registry, sources);
}

function makerGauges(registry: Registry, sources: MetricSources): void {
  const perMaker = (
    name: string,
    help: string,
    value: (maker: MakerFacts, decimals: Pick<MarketRow, 'baseDecimals' | 'quoteDecimals'>) => number | null,
  ): void =>
    gauge(registry, [name, `${help}, of the five largest makers of a pair in 24 hours`, 'pair', 'maker'], async () => {
      const facts = await sources.business();
      return (facts?.markets ?? []).flatMap((market) =>
        market.makers.flatMap((one): [Labels, number][] => {
          const number = value(one, market);
          return number === null ? [] : [[{ pair: market.pair, maker: one.maker }, number]];
        }),
      );
    });
  perMaker('maker_volume', 'quote amount of fills', ({ volumeUnits }, { quoteDecimals }) =>
    inTokens(volumeUnits, quoteDecimals),
  );
  perMaker('maker_realised', 'realised profit in the quote token', ({ realisedUnits }, { quoteDecimals }) =>
    inTokens(realisedUnits, quoteDecimals),
  );
  perMaker(
    'maker_position',
    'open position in the base token, less than zero when short',
    ({ positionUnits }, { baseDecimals }) => inTokens(positionUnits, baseDecimals),
  );
  perMaker(
    'maker_unrealised',
    'profit of closing it at the middle of the live curve, in the quote token',
    ({ unrealisedUnits }, { quoteDecimals }) =>
      unrealisedUnits === null ? null : inTokens(unrealisedUnits, quoteDecimals),
  );
  perMaker('maker_fill_share', 'part of all base filled', ({ fillShare }) => ratio(fillShare));
  perMaker('maker_book_share', 'part of what books behind hit curves offered', ({ bookShare }) => ratio(bookShare));
  perMaker('maker_fill_rate', 'base filled of what these books offered', ({ fillRate }) => ratio(fillRate));
  gauge(
    registry,
    ['maker_markout_bps', 'markout in basis points of the volume that had a middle', 'pair', 'maker', 'seconds'],
    async () => {
      const facts = await sources.business();
      return (facts?.markets ?? []).flatMap(({ pair, makers }) =>
        makers.flatMap(({ maker, markouts }) =>
          markouts.flatMap(({ seconds, ratio: of }): [Labels, number][] => {
            const bps = ratio(of, BPS);
            return bps === null ? [] : [[{ pair, maker, seconds: `${seconds}` }, bps]];
          }),
        ),
      );
    },
  );
}

/** Pairs of maker and taker to which the operator loses money. */
export function pairGauges(registry: Registry, { pairs }: MetricSources): void {
  const labels = ({ maker, taker, token }: PairFacts): Labels => ({ maker, taker, token });
  gauge(
    registry,
    [
      'pair_gain_units',
      'what fills brought the operator, of the pairs that lost it most; 0 without maker and taker, for each token',
      'maker',
      'taker',
      'token',
    ],
    async () => (await pairs()).map((pair) => [labels(pair), saturated(pair.gainUnits)]),
  );
  gauge(
    registry,
    ['pair_losing', '1 for such a pair that loses the operator money systematically', 'maker', 'taker', 'token'],
    async () => (await pairs()).map((pair) => [labels(pair), pair.losing ? 1 : 0]),
  );
}
