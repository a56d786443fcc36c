/** The transactions by which an order may be filled: over the route that was quoted, the best present one, or one around what fails. */
import { grossUnits } from '../../core/swap/partner.js';
import { tokensBetween, venuesIn } from '../../core/swap/paths.js';
import { isBetter, isNoRoute, withBurden } from '../../core/swap/pricing.js';
import type { Part } from '../../core/swap/split.js';
import type { WayOf } from '../../core/swap/trust.js';
import type { Address } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { planSent, type SentQuestion } from '../../liquidity/checked-plan.js';
import type { Head } from '../../liquidity/eth.js';
import { decodeRoute } from '../../liquidity/planner.js';
import { createCover, type Filling, type Tried, type Trusted } from './covered.js';
import type { ExecutorDeps } from './deps.js';
import type { Economics } from './economics.js';
import { TOKEN_QUARANTINED, type Refusal } from './refusals.js';
import type { Risk } from './risk.js';
import { simulate } from './simulate.js';
import { orderCalldata } from './transaction.js';

/** Most single venues that are tried for an order whose risk is covered over no other route. */
const MOST_SINGLES = 3;
/** Most routes that are planned around the tokens in between of one that fails: without these, and then without any. */
const MOST_DETOURS = 2;

interface Fillings {
  /**
   * Transactions that would fill the order, the better one first: only the quoted route's while it brings what was quoted, otherwise also
   * that of the best present route, or of one around the tokens at which routes fail. Without any, the reason why the quoted route fails, or the
   * present one where the quoted one passes a token in quarantine.
   */
  transactionsOf(one: PendingOrder, risk: Risk, head: Head): Promise<{ fillings: Filling[]; refusal: Refusal | null }>;
  /**
   * Those of an order's transactions whose risk is covered, as they are or checked; if none is, the order over the best single venue whose risk is,
   * which can burn less than one over several. Without any, the reason.
   */
  trustedOf(one: PendingOrder, fillings: readonly Filling[], risk: Risk, head: Head): Promise<Trusted[] | Refusal>;
}

type Deps = Pick<
  ExecutorDeps,
  'rpc' | 'outbox' | 'settler' | 'marketData' | 'quarantined' | 'toleranceBps' | 'maxGas' | 'nowMs'
>;

export function createFillings(deps: Deps, economics: Pick<Economics, 'burdenOf'>): Fillings {
  const { rpc, outbox, marketData } = deps;
  const coveredOf = createCover(deps);

  async function transactionsOf(
    one: PendingOrder,
    risk: Risk,
    head: Head,
  ): Promise<{ fillings: Filling[]; refusal: Refusal | null }> {
    const { quote } = one;
    const quoted = decodeRoute(quote.route);
    const isHeld = quoted.some(({ id }) => tokensBetween(id).some((token) => deps.quarantined?.().has(token)));
    const first: Tried = isHeld
      ? { ok: false, refusal: { ...TOKEN_QUARANTINED, isFinal: false }, parts: quoted }
      : await simulateParts(one, quoted);
    const alone = first.ok ? { fillings: [first], refusal: null } : { fillings: [], refusal: first.refusal };
    if (first.ok && delivers(quote, first)) return alone;
    const burdenOf = await economics.burdenOf(quote, head);
    const planned = (avoids?: (token: Address) => boolean): Promise<Part[] | null> =>
      replan(quote, head, burdenOf, risk.way, avoids);
    const parts = await planned();
    if (parts === null) return alone;
    // For a purchase, success also depends on the parts' cost if the owner has no more than they cost.
    const isSame = isSameRoute(parts, quoted) && (first.ok || quote.kind === 'sell');
    const second = isSame ? first : await simulateParts(one, parts);
    if (!first.ok) {
      const filling = second.ok ? second : await detour(one, [first, second], planned);
      if (filling !== null) return { fillings: [filling], refusal: null };
      return isHeld && !second.ok ? { fillings: [], refusal: second.refusal } : alone;
    }
    if (isSame || !second.ok) return alone;
    const { kind, feeUnits } = quote;
    const burden = burdenOf(idsOf(parts));
    const isSecondBetter = isBetter(kind, withBurden(kind, { ...second, feeUnits }, burden), { ...first, feeUnits });
    return { fillings: isSecondBetter ? [second, first] : [first, second], refusal: null };
  }

  /**
   * A route that fulfils the order around the tokens that failed ones pass, or null: such a token may refuse its transfers or take a fee of them, which no
   * venue's quote shows, so that the best route would stay the same one.
   */
  async function detour(
    one: PendingOrder,
    failed: readonly Tried[],
    planned: (avoids: (token: Address) => boolean) => Promise<Part[] | null>,
  ): Promise<Filling | null> {
    let passed = new Set(failed.flatMap(failedOver));
    for (let detours = 1; detours <= MOST_DETOURS && passed.size > 0; detours++) {
      const avoided = passed;
      const parts = await planned((token) => detours === MOST_DETOURS || avoided.has(token));
      if (parts === null) return null;
      const tried = await simulateParts(one, parts);
      if (tried.ok) return tried;
      passed = new Set(failedOver(tried));
    }
    return null;
  }

  async function simulateParts(one: PendingOrder, parts: readonly Part[]): Promise<Tried> {
    const run = async (pull: 'whole' | 'exact'): Promise<Tried> => {
      const data = await orderCalldata(one, parts, deps.settler, marketData.venueOf, pull);
      return { ...(await simulate(rpc, outbox.signer, deps.settler, data, 2n * deps.maxGas)), parts };
    };
    const whole = await run('whole');
    if (whole.ok || whole.refusal.code !== 'INSUFFICIENT_FUNDS' || one.quote.kind === 'sell') return whole;
    const exact = await run('exact');
    return exact.ok ? exact : whole;
  }

  async function trustedOf(
    one: PendingOrder,
    fillings: readonly Filling[],
    risk: Risk,
    head: Head,
  ): Promise<Trusted[] | Refusal> {
    let trusted = await coveredOf(one, fillings, risk, head);
    if (!('code' in trusted)) return trusted;
    const refused = new Set(fillings.map(({ parts }) => idsOf(parts).join()));
    const way: WayOf = (ids, checks) =>
      venuesIn(ids) === 1 && !refused.has(ids.join()) ? risk.way(ids, checks) : null;
    const burdenOf = await economics.burdenOf(one.quote, head);
    for (let tries = 0; tries < MOST_SINGLES && 'code' in trusted; tries++) {
      const parts = await replan(one.quote, head, burdenOf, way);
      if (parts === null) break;
      refused.add(idsOf(parts).join());
      const single = await simulateParts(one, parts);
      if (single.ok) trusted = await coveredOf(one, [single], risk, head);
    }
    return trusted;
  }

  /** The best route now that is sent that way, with the quoted fee; costs beyond those of the quoted route count against it. */
  async function replan(
    quote: SwapQuote,
    head: Head,
    burdenOf: (ids: readonly string[]) => bigint,
    way: WayOf,
    avoids: (token: Address) => boolean = () => false,
  ): Promise<Part[] | null> {
    const question: SentQuestion = {
      ...{ way, avoids },
      kind: quote.kind,
      sellToken: quote.sellToken,
      buyToken: quote.buyToken,
      amountUnits: quote.kind === 'sell' ? quote.sellUnits : grossUnits(quote.buyUnits, quote),
      preference: quote.preference,
      toleranceBps: deps.toleranceBps,
      feeOf: () => quote.feeUnits,
      burdenOf,
      boundOf: () => (quote.kind === 'sell' ? grossUnits(quote.minBuyUnits, quote) : quote.sellUnits - quote.feeUnits),
    };
    const plan = await planSent(marketData, question, head, Math.floor(deps.nowMs() / 1_000));
    return isNoRoute(plan) ? null : plan.parts;
  }

  return { transactionsOf, trustedOf };
}

function delivers(quote: SwapQuote, { inUnits, outUnits }: { inUnits: bigint; outUnits: bigint }): boolean {
  return quote.kind === 'sell' ? outUnits >= quote.buyUnits : inUnits <= quote.expectedSellUnits;
}

/** The tokens in between of a route that fails by itself, neither for its owner nor because the market has moved. */
function failedOver(tried: Tried): Address[] {
  if (tried.ok || !(tried.refusal.isInCall === true || tried.refusal.code === 'REVERTED')) return [];
  return tried.parts.flatMap(({ id }) => tokensBetween(id));
}

const idsOf = (parts: readonly Part[]): string[] => parts.map(({ id }) => id);
/** Routes of one part are equal if their source is, whatever the amount. */
function isSameRoute(a: readonly Part[], b: readonly Part[]): boolean {
  return a.length === 1 && b.length === 1 && a[0]?.id === b[0]?.id;
}
