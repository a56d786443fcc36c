import { useId } from 'react';
import { share, shortHex, shown } from '../numbers.js';
import { SCALE } from './fill-geometry.js';
import type { Bar, FillGeometry } from './fill-geometry.js';
import { formatUnits } from '../../../core/amounts.js';

const WIDTH = 720;
const HEIGHT = 300;
const LEFT = 130;
const BOTTOM = 34;

/** Marginal price over cumulative size: each maker's leg under its own price, the pieces of the curve over them. The table beside it has the same numbers. */
export function FillPicture({ geometry, base, quote }: { geometry: FillGeometry; base: string; quote: string }) {
  const id = useId();
  const { from, to, prices } = geometry;
  const margin = (to - from) / 12n + 1n;
  const left = from > margin ? from - margin : 0n;
  const right = to + margin;
  const x = (size: bigint): number => LEFT + share(clamp(size, left, right) - left, right - left) * (WIDTH - LEFT - 8);
  const y = (price: bigint): number =>
    (HEIGHT - BOTTOM) * (1 - share(clamp(price, prices.low, prices.high) - prices.low, prices.high - prices.low));
  const visible = (bar: Bar): boolean => bar.to > left && bar.from < right;
  return (
    <svg className="picture" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-labelledby={`${id}t`}>
      <title id={`${id}t`}>
        Who was paid what: {geometry.legs.length} legs under the curve, price in {quote} over size in {base}
      </title>
      <defs>
        {[0, 1, 2, 3].map((index) => (
          <pattern
            key={index}
            id={`${id}h${index}`}
            width="8"
            height="8"
            patternUnits="userSpaceOnUse"
            patternTransform={`rotate(${index * 45})`}
          >
            <rect width="8" height="8" className={`maker${index}`} />
            <line x1="0" y1="0" x2="0" y2="8" className="hatch" />
          </pattern>
        ))}
        <pattern id={`${id}gain`} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="7" height="7" className="stripe" />
          <line x1="0" y1="0" x2="0" y2="7" className="striped" />
        </pattern>
      </defs>
      {geometry.legs.map((leg, i) => (
        <g key={i}>
          <rect
            x={x(leg.from)}
            width={Math.max(1, x(leg.to) - x(leg.from))}
            y={y(leg.price)}
            height={HEIGHT - BOTTOM - y(leg.price)}
            fill={`url(#${id}h${leg.index % 4})`}
            stroke="var(--ground)"
          >
            <title>
              {shortHex(leg.maker)}: {leg.base} {base} at {leg.priceText} for {leg.quote} {quote}: its own price
            </title>
          </rect>
          {x(leg.to) - x(leg.from) > 26 && (
            <text x={(x(leg.from) + x(leg.to)) / 2} y={HEIGHT - BOTTOM - 10} textAnchor="middle" className="label">
              {i + 1}
              {x(leg.to) - x(leg.from) > 122 && (
                <tspan className="detail">
                  {' '}
                  {shortHex(leg.maker)} · {shown(leg.base, 4)}
                </tspan>
              )}
            </text>
          )}
        </g>
      ))}
      {geometry.gaps.map((gap, i) => (
        <rect
          key={i}
          x={x(gap.from)}
          width={Math.max(1, x(gap.to) - x(gap.from))}
          y={Math.min(y(gap.price), y(gap.curve))}
          height={Math.abs(y(gap.price) - y(gap.curve))}
          className="gap"
          fill={gap.isGain ? `url(#${id}gain)` : 'var(--curve)'}
        >
          <title>
            {formatUnits(gap.to - gap.from, SCALE)} {base} of the curve at {formatUnits(gap.curve, SCALE)}, and of the
            maker at {formatUnits(gap.price, SCALE)}: {gap.isGain ? 'left for the operator' : 'added by the operator'}
          </title>
        </rect>
      ))}
      {geometry.book.filter(visible).map((bar, i, all) => {
        const before = all[i - 1];
        return (
          <g key={i}>
            {before !== undefined && (
              <line x1={x(bar.from)} x2={x(bar.from)} y1={y(before.price)} y2={y(bar.price)} className="step" />
            )}
            <line x1={x(bar.from)} x2={x(bar.to)} y1={y(bar.price)} y2={y(bar.price)} className="step">
              <title>
                The book: {formatUnits(bar.to - bar.from, SCALE)} {base} quoted at {formatUnits(bar.price, SCALE)}
              </title>
            </line>
          </g>
        );
      })}
      {geometry.curve.filter(visible).map((bar, i) => (
        <g key={i}>
          <line x1={x(bar.from)} x2={x(bar.to)} y1={y(bar.price)} y2={y(bar.price)} className="piece">
            <title>
              One piece of the curve: {formatUnits(bar.to - bar.from, SCALE)} {base} at {formatUnits(bar.price, SCALE)},
              the average of the book under it
            </title>
          </line>
          <rect x={x(bar.to) - 3} y={y(bar.price) - 3} width="6" height="6" className="knot" />
        </g>
      ))}
      {[from, to].map((edge) => (
        <line key={edge.toString()} x1={x(edge)} x2={x(edge)} y1="0" y2={HEIGHT - BOTTOM} className="edge" />
      ))}
      <text x={LEFT - 6} y="24" textAnchor="end" className="label">
        {shown(formatUnits(prices.high, SCALE), 2)}
      </text>
      <text x={LEFT - 6} y={HEIGHT - BOTTOM} textAnchor="end" className="label">
        {shown(formatUnits(prices.low, SCALE), 2)}
      </text>
      <text x={x(from)} y={HEIGHT - 12} textAnchor="middle" className="label">
        {shown(formatUnits(from, SCALE), 4)}
      </text>
      <text x={WIDTH - 8} y={HEIGHT - 12} textAnchor="end" className="label">
        {shown(formatUnits(to, SCALE), 4)} {base}
      </text>
    </svg>
  );
}

function clamp(value: bigint, low: bigint, high: bigint): bigint {
  return value < low ? low : value > high ? high : value;
}
