import type { Answer } from '../../../sdk/src/index.js';
import { at, exact, share, shown, text } from '../numbers.js';

type Candle = Answer<'/v0/candles/{pair}'>['candles'][number];

const WIDTH = 720;
const HEIGHT = 240;
const LEFT = 130;
const BOTTOM = 34;
const SCALE = 18;

const units = (text: string): bigint => at(exact(text), SCALE);

/** Open, high, low and close of each interval; rising ones are hollow, falling ones filled, so that colour is not needed to read them. */
export function CandleChart({ candles, quote }: { candles: readonly Candle[]; quote: string }) {
  const low =
    candles.reduce(
      (least: bigint | null, { low }) => (least === null || units(low) < least ? units(low) : least),
      null,
    ) ?? 0n;
  const high = candles.reduce((most, one) => (units(one.high) > most ? units(one.high) : most), low);
  const margin = (high - low) / 12n + high / 50_000n + 1n;
  const [bottom, top] = [low - margin, high + margin];
  const slot = (WIDTH - LEFT - 8) / Math.max(candles.length, 30);
  const y = (price: string): number => (HEIGHT - BOTTOM) * (1 - share(units(price) - bottom, top - bottom));
  const last = candles[candles.length - 1];
  const first = candles[0];
  return (
    <svg
      className="picture"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`Candles in ${quote}: ${candles.length} intervals, the last one closes at ${last?.close ?? 'nothing'}`}
    >
      {candles.map((candle, i) => {
        const rises = units(candle.close) >= units(candle.open);
        const x = LEFT + slot * i;
        const [upper, lower] = rises ? [candle.close, candle.open] : [candle.open, candle.close];
        return (
          <g key={candle.open_ms} className={rises ? 'candle rises' : 'candle falls'}>
            <title>
              {new Date(candle.open_ms).toISOString().slice(0, 16).replace('T', ' ')}: open {candle.open}, high{' '}
              {candle.high}, low {candle.low}, close {candle.close}
            </title>
            <line x1={x + slot / 2} x2={x + slot / 2} y1={y(candle.high)} y2={y(candle.low)} />
            <rect x={x + slot * 0.15} width={slot * 0.7} y={y(upper)} height={Math.max(1.5, y(lower) - y(upper))} />
          </g>
        );
      })}
      <text x={LEFT - 6} y="24" textAnchor="end" className="label">
        {shown(text({ digits: top, scale: SCALE }), 2)}
      </text>
      <text x={LEFT - 6} y={HEIGHT - BOTTOM} textAnchor="end" className="label">
        {shown(text({ digits: bottom, scale: SCALE }), 2)}
      </text>
      {first !== undefined && (
        <text x={LEFT} y={HEIGHT - 8} className="label">
          {new Date(first.open_ms).toISOString().slice(5, 16).replace('T', ' ')} UTC
        </text>
      )}
    </svg>
  );
}
