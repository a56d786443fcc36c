import { createContext, use } from 'react';
import type { Schemas } from '../../sdk/src/index.js';
import type { DataOf } from '../../sdk/src/stream.js';
import type { Loadable } from './loadable.js';

export type Deployment = Schemas['Deployment'];
export type Market = Deployment['markets'][number];
export type Fill = Schemas['Fill'];
export type Decomposition = Schemas['Decomposition'];
export type PostedCurve = Schemas['PostedCurve'];
export type Segment = Schemas['CurveSegment'];
export type Status = Schemas['Status'];
export type CurveState = Status['curves'][number];
export type Book = DataOf<{ type: 'l2Book'; coin: string }>;

/** What every page knows: the deployment, the market that is looked at, and what its tokens are called. */
interface Shown {
  deployment: Deployment;
  market: Market;
  base: string;
  quote: string;
  status: Loadable<Status>;
}

export const ShownContext = createContext<Shown | null>(null);

export function useShown(): Shown {
  const shown = use(ShownContext);
  if (shown === null) throw new Error('no market around this component');
  return shown;
}

/** What the API calls a token in amounts: pairs are named by the same words. */
export function symbolOf(deployment: Deployment, address: string): string {
  return deployment.tokens.find((token) => token.address === address)?.symbol ?? address;
}

/** Assets of spot markets count from here on the wire. */
const SPOT_ASSET_BASE = 10_000;

/** What the stream calls the market. */
export function coinOf(market: Market): string {
  return `@${market.asset - SPOT_ASSET_BASE}`;
}

/** The newest fills first, each once: a subscription begins with a list, and goes on with new ones. */
export function newestFills(
  state: readonly Fill[] | null,
  data: { isSnapshot?: true; fills: readonly Fill[] },
): readonly Fill[] {
  const bySeq = new Map((data.isSnapshot === true ? [] : (state ?? [])).map((fill) => [fill.fill_seq, fill]));
  for (const fill of data.fills) bySeq.set(fill.fill_seq, fill);
  return [...bySeq.values()].sort((a, b) => b.fill_seq - a.fill_seq).slice(0, 100);
}

/** Base and quote amounts of a fill, whichever side it took. */
export function amountsOf(fill: Fill): { base: string; quote: string } {
  return fill.direction === 'buy'
    ? { base: fill.amount_out, quote: fill.amount_in }
    : { base: fill.amount_in, quote: fill.amount_out };
}
