import { useEffect, useRef, useSyncExternalStore } from 'react';
import uPlot from 'uplot';
import type { Segment } from '../market-context.js';
import { at, exact, share } from '../numbers.js';
import { onTheme, shownTheme } from '../theme.js';

interface Level {
  px: string;
  sz: string;
}

interface DepthProps {
  sides: { bids: readonly Level[]; asks: readonly Level[] };
  curve: { bids: readonly Segment[]; asks: readonly Segment[] } | null;
  /** What swaps have taken of each side of the curve, in base. */
  taken: { bids: string; asks: string };
  base: string;
  quote: string;
}

const HEIGHT = 320;

/**
 * Cumulative size over price: the book as filled steps on both sides of the middle, the pieces of the curve as lines over them, and under those,
 * shaded up to its size, what has been taken of the curve.
 */
export function DepthChart({ sides, curve, taken, base, quote }: DepthProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = depthData(sides, curve);
  const theme = useSyncExternalStore(onTheme, shownTheme);
  const shade = useRef<Shaded[]>([]);
  shade.current = [
    { steps: [...steps(curve?.bids ?? [])], units: pixels(taken.bids) },
    { steps: [...steps(curve?.asks ?? [])], units: pixels(taken.asks) },
  ];

  useEffect(() => {
    const box = holder.current;
    if (box === null) return undefined;
    const colour = (name: string): string => colourOf(box, name);
    // Between two prices as much is to be had as at the nearer to the middle of them: on its left for asks, on its right for bids.
    const line = (label: string, align: 1 | -1, stroke: string, fill?: string): uPlot.Series => ({
      label,
      stroke: colour(stroke),
      width: fill === undefined ? 3 : 1.5,
      points: { show: false },
      spanGaps: true,
      ...(fill === undefined ? {} : { fill: colour(fill) }),
      paths: uPlot.paths.stepped?.({ align }) ?? (() => null),
    });
    const thin = { stroke: colour('--line'), width: 1 };
    const axis = { stroke: colour('--soft-ink'), grid: thin, ticks: thin };
    const made = new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false } },
        axes: [
          { ...axis, label: `price in ${quote}` },
          { ...axis, label: base },
        ],
        series: [
          { label: quote },
          line('bids', -1, '--buy', '--buy-fill'),
          line('asks', 1, '--sell', '--sell-fill'),
          line('curve', -1, '--curve'),
          line('curve, its asks', 1, '--curve'),
        ],
        legend: { show: true, live: false },
        hooks: { draw: [(drawn) => shade.current.forEach((side) => shadeTaken(drawn, side, colour('--taken')))] },
      },
      data,
      box,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
    // Drawn anew only when its labels or its colours change; data goes in below.
  }, [base, quote, theme]);

  useEffect(() => plot.current?.setData(data), [sides, curve, taken.bids, taken.asks]);

  return (
    <div className="chart" ref={holder} role="img" aria-label={`Depth of the book and the curve, ${base} by price`} />
  );
}

/** A side of the curve from its touch on, each price with all that is to be had up to it, and how much of that is gone. */
interface Shaded {
  steps: (readonly [price: number, total: number])[];
  units: number;
}

/** Fills what lies under the curve up to the size that was taken. */
function shadeTaken(plot: uPlot, { steps, units }: Shaded, colour: string): void {
  if (units === 0) return;
  const { ctx } = plot;
  const bottom = plot.valToPos(0, 'y', true);
  ctx.save();
  ctx.fillStyle = colour;
  steps.forEach(([price, total], i) => {
    const [next] = steps[i + 1] ?? [];
    if (next === undefined) return;
    const [from, to] = [plot.valToPos(price, 'x', true), plot.valToPos(next, 'x', true)];
    const top = plot.valToPos(Math.min(total, units), 'y', true);
    ctx.fillRect(Math.min(from, to), top, Math.abs(to - from), bottom - top);
  });
  ctx.restore();
}

/** A colour of the page as the canvas understands it: what the theme makes of the variable. */
function colourOf(box: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  box.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Digits that stand for one unit of the drawing: prices and sizes become doubles here, for pixels alone. */
const SCALE = 18;
const pixels = (text: string): number => share(at(exact(text), SCALE), 10n ** BigInt(SCALE));

/** Cumulative sizes at each price of any of the four lines; null where a line has no step. */
function depthData(sides: DepthProps['sides'], curve: DepthProps['curve']): uPlot.AlignedData {
  const lines = [
    steps(sides.bids.map(({ px, sz }) => ({ price: px, size: sz }))),
    steps(sides.asks.map(({ px, sz }) => ({ price: px, size: sz }))),
    steps(curve?.bids ?? []),
    steps(curve?.asks ?? []),
  ];
  const prices = [...new Set(lines.flatMap((line) => [...line.keys()]))].sort((a, b) => a - b);
  return [prices, ...lines.map((line) => prices.map((price) => line.get(price) ?? null))];
}

function steps(levels: readonly { price: string; size: string }[]): Map<number, number> {
  const byPrice = new Map<number, number>();
  let total = 0n;
  for (const { price, size } of levels) {
    total += at(exact(size), SCALE);
    byPrice.set(pixels(price), share(total, 10n ** BigInt(SCALE)));
  }
  return byPrice;
}
