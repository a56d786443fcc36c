import { bestRoute, isNoRoute, type NoRoute, type RoutePlan, type RouteQuestion } from '../core/swap/pricing.js';
import { OWN, type Source } from '../core/swap/source.js';
import type { Part } from '../core/swap/split.js';
import type { PermitStyle } from '../core/swap/typed-data.js';
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

/** The approval by signature that a quote asks for, as far as its call can't be made without. */
interface AskedPermit {
  style: PermitStyle;
  /** The token's, of the owner. */
  nonce: bigint;
}

interface StoredRoute {
  /** Gas in the fee for the check of the owner's signature; absent for none. */
  checkGas?: string;
  /** Absent where the pair trades one way only. */
  impactBps?: number;
  /** Absent where none is asked for. */
  permit?: { style: PermitStyle; nonce: string };
  parts: { id: string; in: string; out: string }[];
}

/** What a stored route says beside its parts. */
export interface RouteNotes {
  /** Gas in the fee that pays for the check of the owner's signature. */
  checkGas?: bigint;
  /** How much less it brings than the mid price, before the fee; null where there is none. */
  impactBps?: number | null;
  /** The approval that the order is to bring, for which its fee pays, too; null for none. */
  permit?: AskedPermit | null;
}

/** A route's parts and notes as JSON text. */
export function encodeRoute(
  parts: readonly Part[],
  { checkGas = 0n, impactBps = null, permit = null }: RouteNotes = {},
): string {
  const stored: StoredRoute = {
    ...(checkGas === 0n ? {} : { checkGas: checkGas.toString() }),
    ...(impactBps === null ? {} : { impactBps }),
    ...(permit === null ? {} : { permit: { style: permit.style, nonce: permit.nonce.toString() } }),
    parts: parts.map(({ id, inUnits, outUnits }) => ({ id, in: inUnits.toString(), out: outUnits.toString() })),
  };
  return JSON.stringify(stored);
}

/** The gas that `encodeRoute` was told of. */
export const checkGasIn = (text: string): bigint => BigInt((JSON.parse(text) as StoredRoute).checkGas ?? '0');

/** The impact that `encodeRoute` was told of; null without one. */
export const impactIn = (text: string): number | null => (JSON.parse(text) as StoredRoute).impactBps ?? null;

/** The approval that `encodeRoute` was told of; null without one. */
export function permitIn(text: string): AskedPermit | null {
  const { permit } = JSON.parse(text) as StoredRoute;
  return permit === undefined ? null : { style: permit.style, nonce: BigInt(permit.nonce) };
}

/** Inverse of encodeRoute. */
export function decodeRoute(text: string): Part[] {
  return (JSON.parse(text) as StoredRoute).parts.map((part) => ({
    id: part.id,
    inUnits: BigInt(part.in),
    outUnits: BigInt(part.out),
  }));
}
