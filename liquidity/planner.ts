import { bestRoute, isNoRoute, type NoRoute, type RoutePlan, type RouteQuestion } from '../core/swap/pricing.js';
import { OWN, type Source } from '../core/swap/source.js';
import type { Part } from '../core/swap/split.js';
import type { Address } from '../core/types.js';
import type { Head } from './eth.js';
import type { MarketData } from './market-data.js';

type PlanQuestion = Omit<RouteQuestion, 'sources'> & { sellToken: Address; buyToken: Address };

/**
 * The best route at a block, its external parts as their venues quote them. A venue that refuses what its pool promised is left out, and
 * the rest is asked again.
 */
export async function planRoute(
  data: MarketData,
  question: PlanQuestion,
  head: Head,
  atSec: number,
): Promise<RoutePlan | NoRoute> {
  let sources = await data.sources(question.sellToken, question.buyToken, head, atSec);
  for (;;) {
    const plan = bestRoute({ ...question, sources });
    if (isNoRoute(plan)) return plan;
    const confirmed = await Promise.all(plan.parts.map((part) => confirm(data, question, part, head)));
    const refused = confirmed.findIndex((part) => part === null);
    if (refused < 0)
      return withParts(
        plan,
        confirmed.filter((part) => part !== null),
      );
    const { id } = plan.parts[refused]!;
    sources = sources.filter((source: Source) => source.id !== id);
  }
}

/** The part with the other side as the venue quotes it; our own curve's amounts are exact already. */
async function confirm(data: MarketData, question: PlanQuestion, part: Part, head: Head): Promise<Part | null> {
  if (part.id === OWN) return part;
  const { kind, sellToken, buyToken } = question;
  const units = await data.venueOf(part.id).quote({ ...part, kind, sellToken, buyToken }, head);
  if (units === null) return null;
  return kind === 'sell' ? { ...part, outUnits: units } : { ...part, inUnits: units };
}

function withParts(plan: RoutePlan, parts: Part[]): RoutePlan {
  return {
    parts,
    feeUnits: plan.feeUnits,
    inUnits: parts.reduce((sum, part) => sum + part.inUnits, plan.feeUnits),
    outUnits: parts.reduce((sum, part) => sum + part.outUnits, 0n),
  };
}

interface StoredRoute {
  /** Gas in the fee for the check of the owner's signature; absent for none. */
  checkGas?: string;
  /** Absent where the pair trades one way only. */
  impactBps?: number;
  parts: { id: string; in: string; out: string }[];
}

/** What a stored route says beside its parts. */
interface RouteNotes {
  /** Gas in the fee that pays for the check of the owner's signature. */
  checkGas?: bigint;
  /** How much less it brings than the mid price, before the fee; null where there is none. */
  impactBps?: number | null;
}

/** A route's parts and notes as JSON text. */
export function encodeRoute(parts: readonly Part[], { checkGas = 0n, impactBps = null }: RouteNotes = {}): string {
  const stored: StoredRoute = {
    ...(checkGas === 0n ? {} : { checkGas: checkGas.toString() }),
    ...(impactBps === null ? {} : { impactBps }),
    parts: parts.map(({ id, inUnits, outUnits }) => ({ id, in: inUnits.toString(), out: outUnits.toString() })),
  };
  return JSON.stringify(stored);
}

/** The gas that `encodeRoute` was told of. */
export const checkGasIn = (text: string): bigint => BigInt((JSON.parse(text) as StoredRoute).checkGas ?? '0');

/** The impact that `encodeRoute` was told of; null without one. */
export const impactIn = (text: string): number | null => (JSON.parse(text) as StoredRoute).impactBps ?? null;

/** Inverse of encodeRoute. */
export function decodeRoute(text: string): Part[] {
  return (JSON.parse(text) as StoredRoute).parts.map((part) => ({
    id: part.id,
    inUnits: BigInt(part.in),
    outUnits: BigInt(part.out),
  }));
}
