import { z } from 'zod';
import { bestRoute, isNoRoute, type NoRoute, type RoutePlan, type RouteQuestion } from '../core/swap/pricing.js';
import { OWN, type Leg, type Source } from '../core/swap/source.js';
import type { Part, SplitKind } from '../core/swap/split.js';
import type { PermitStyle } from '../core/swap/typed-data.js';
import type { Address } from '../core/types.js';
import type { Head } from './eth.js';
import type { MarketData } from './market-data.js';

export type PlanQuestion = Omit<RouteQuestion, 'sources'> & {
  sellToken: Address;
  buyToken: Address;
  /** As for paths. */
  avoids?(token: Address): boolean;
  /** A plan that is not worth it is no route, and its venues are not asked. Default: each is. */
  isWorthAsking?(plan: RoutePlan): boolean;
};

/**
 * The best route at a block, its external parts as their venues quote them. A source whose venue quotes nothing for its part is left out,
 * and the route is planned again.
 */
export async function planRoute(
  data: MarketData,
  question: PlanQuestion,
  head: Head,
  atSec: number,
): Promise<RoutePlan | NoRoute> {
  const direct = await data.sources(question.sellToken, question.buyToken, head, atSec);
  let sources = [...direct, ...(await data.paths(question, head, atSec))];
  for (;;) {
    const plan = bestRoute({ ...question, sources });
    if (isNoRoute(plan)) return plan;
    if (question.isWorthAsking?.(plan) === false) return { problem: 'liquidity' };
    const confirmed = await Promise.all(plan.parts.map((part) => confirm(data, question, part, sources, head)));
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

/** The part with the other side as its venues quote it, leg after leg; our own curve's amounts are exact already. */
async function confirm(
  data: MarketData,
  { kind, sellToken, buyToken }: PlanQuestion,
  part: Part,
  sources: readonly Source[],
  head: Head,
): Promise<Part | null> {
  const source = sources.find(({ id }) => id === part.id)!;
  const legs = source.legs ?? [{ source, sellToken, buyToken }];
  const isSale = kind === 'sell';
  // From the amount that is fixed: the input of the first leg, or the output of the last.
  const amounts = [isSale ? part.inUnits : part.outUnits];
  for (const leg of isSale ? legs : [...legs].reverse()) {
    const units = amounts.at(-1)!;
    const next = await quoted(data, kind, leg, units, head);
    if (next === null) return null;
    amounts.push(next);
  }
  const [inUnits, ...rest] = isSale ? amounts : amounts.reverse();
  const outUnits = rest.pop();
  return { id: part.id, inUnits: inUnits!, outUnits: outUnits!, ...(rest.length === 0 ? {} : { via: rest }) };
}

function quoted(
  data: MarketData,
  kind: SplitKind,
  { source, sellToken, buyToken }: Leg,
  units: bigint,
  head: Head,
): Promise<bigint | null> {
  if (source.id === OWN) return Promise.resolve(kind === 'sell' ? source.outputFor(units) : source.inputFor(units));
  const [inUnits, outUnits] = kind === 'sell' ? [units, 0n] : [0n, units];
  return data.quote({ id: source.id, kind, sellToken, buyToken, inUnits, outUnits }, head);
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

const storedRouteSchema = z.object({
  /** Gas in the fee for the check of the owner's signature; absent for none. */
  checkGas: z.string().optional(),
  /** Absent where the pair trades one way only. */
  impactBps: z.number().optional(),
  /** Absent where none is asked for. */
  permit: z.object({ style: z.enum(['eip2612', 'dai']), nonce: z.string() }).optional(),
  /** `via` of paths only. */
  parts: z.array(z.object({ id: z.string(), in: z.string(), out: z.string(), via: z.array(z.string()).optional() })),
});
type StoredRoute = z.infer<typeof storedRouteSchema>;

const storedRoute = (text: string): StoredRoute => storedRouteSchema.parse(JSON.parse(text));

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
    parts: parts.map(({ id, inUnits, outUnits, via }) => ({
      id,
      in: inUnits.toString(),
      out: outUnits.toString(),
      ...(via === undefined ? {} : { via: via.map(String) }),
    })),
  };
  return JSON.stringify(stored);
}

/** The gas that `encodeRoute` was told of. */
export const checkGasIn = (text: string): bigint => BigInt(storedRoute(text).checkGas ?? '0');

/** The impact that `encodeRoute` was told of; null without one. */
export const impactIn = (text: string): number | null => storedRoute(text).impactBps ?? null;

/** The approval that `encodeRoute` was told of; null without one. */
export function permitIn(text: string): AskedPermit | null {
  const { permit } = storedRoute(text);
  return permit === undefined ? null : { style: permit.style, nonce: BigInt(permit.nonce) };
}

/** Inverse of encodeRoute. */
export function decodeRoute(text: string): Part[] {
  return storedRoute(text).parts.map((part) => ({
    id: part.id,
    inUnits: BigInt(part.in),
    outUnits: BigInt(part.out),
    ...(part.via === undefined ? {} : { via: part.via.map(BigInt) }),
  }));
}
