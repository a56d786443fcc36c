/** The watcher and its ledger: attribution, rows, withdrawals and what is executable, all by core's and the keepers' own functions. */
import {
  attributeFill,
  consumptionMismatchUnits,
  openSide,
  orderFillsOf,
  NOTHING_RAISED,
  type RaisedUnits,
  type SideState,
} from '../../core/attribution.js';
import { afterExecution, afterRequest, afterSettlement, NO_CLAIM, type ClaimState } from '../../core/claim-state.js';
import { addGas, eventGas } from '../../core/settle-gas.js';
import { consumedUnits } from '../../core/curve/walk.js';
import { executablePublication, type ExecutablePublication } from '../../core/exposure.js';
import type { Address, ChainFill, Decomposition, MarketSnapshot, OrderFill, Side } from '../../core/types.js';
import { depositEntries, executionEntries, surplusEntries } from '../../keepers/watcher/derive/postings.js';
import { fillEntries } from '../../ledger/chain/fill-postings.js';
import { dueRaise, namedVolume, raisedBy } from '../../ledger/publications/raises.js';
import { VAULT, type Account, type LedgerEntry, type MarketProgress, type Publication } from '../../ledger/types.js';
import type { WorldEvent } from './calls.js';
import { OPERATOR, type CarryRule, type Setting } from './setting.js';

/** A curve that the poster prepared, with what is known of it. */
interface WorldCurve {
  publication: Publication;
  snapshot: MarketSnapshot;
  /** What the contract raised consumption by when the curve landed; a touch has its base's. */
  raised: RaisedUnits;
}

/** `paidGas` sums up without the claim's own bound. */
interface Known {
  maker: Address;
  token: Address;
  claim: ClaimState;
  requests: Request[];
  paidGas: bigint;
}

interface WorldFill {
  fill: ChainFill;
  decomposition: Decomposition;
  orderFills: OrderFill[];
}

/** Requests of a withdrawal, by the block that has them, each in a transaction of its own. */
interface Request {
  units: bigint;
  paidGas: bigint;
  blockNumber: number;
}

export interface WorldLedger {
  rowOf(account: Account, token: Address): bigint;
  rows(): ReadonlyMap<string, bigint>;
  reservedOf(account: Address, token: Address): bigint;
  claims(): Iterable<readonly [maker: Address, token: Address, claim: ClaimState]>;
  /** What was paid for a claim since its last settlement, summed up without the claim's own bound. */
  paidSince(maker: Address, token: Address): bigint;
  /** Every fill so far, in their order. */
  readonly fills: readonly WorldFill[];
  progress(market: number): MarketProgress;
  landedSeq(market: number): number;
  prepared(curve: Omit<WorldCurve, 'raised'>): void;
  curve(market: number, seq: number): WorldCurve | undefined;
  /** Newest prepared publication of a market. */
  last(market: number): WorldCurve | undefined;
  executable(market: number, atSec: number): ExecutablePublication[];
  /** Books what happened; returns the order fills of the scan. */
  scan(events: readonly WorldEvent[], heldUnits: (token: Address) => bigint): OrderFill[];
  /**
   * What the next fill of a side would be explained by, null for an unknown curve: `events` happened since the last scan, and are forgotten
   * again.
   */
  peek(events: readonly WorldEvent[], market: number, seq: number, side: Side): SideState | null;
}

const key = (account: string, token: Address): string => `${account}:${token}`;

/** `fault` is told whatever would halt the ledger. */
export function createWorldLedger(
  setting: Setting,
  carryRule: CarryRule,
  onFault: (what: string) => void,
  onCount: (what: string) => void,
): WorldLedger {
  let isPeeking = false;
  const fault = (what: string): void => void (isPeeking || onFault(what));
  const count = (what: string): void => void (isPeeking || onCount(what));
  let rows = new Map<string, bigint>();
  const claims = new Map<string, Known>();
  const fills: WorldFill[] = [];
  const curves = setting.markets.map(() => new Map<number, WorldCurve>());
  const lastSeq = setting.markets.map(() => 0);
  let landed = setting.markets.map(() => 0);
  let states = new Map<string, SideState>();

  const rowOf = (account: Account, token: Address): bigint => rows.get(key(account, token)) ?? 0n;
  const post = (entries: readonly LedgerEntry[]): void => {
    for (const { account, token, amountUnits } of entries)
      rows.set(key(account, token), rowOf(account, token) + amountUnits);
  };
  const fillsOf = (market: number, afterFillSeq: number): WorldFill[] =>
    fills.filter(({ fill }) => fill.market === market && fill.fillSeq > afterFillSeq);

  function open(market: number, seq: number, side: Side): SideState | null {
    const curve = curves[market]!.get(seq);
    if (curve === undefined) return null;
    const { snapshot, raised } = curve;
    const past = fillsOf(market, snapshot.fillSeq);
    const late = past.filter(({ fill }) => fill.curveSeq < seq);
    if (late.some(({ fill }) => fill.side === side)) count('late fill');
    const state = openSide(
      setting.markets[market]!,
      snapshot,
      side,
      late.flatMap(({ orderFills }) => orderFills),
      raised[side],
    );
    const own = past.filter(({ fill }) => fill.curveSeq === seq && fill.side === side);
    return own.reduce((before, { fill }) => attributeFill(setting.markets[market]!, before, fill).state, state);
  }

  const stateKey = (market: number, seq: number, side: Side): string => `${market}:${seq}:${side}`;
  const sideState = (market: number, seq: number, side: Side): SideState | null =>
    states.get(stateKey(market, seq, side)) ?? open(market, seq, side);

  function peek(events: readonly WorldEvent[], market: number, seq: number, side: Side): SideState | null {
    const saved = { rows, landed, states, fills: fills.length };
    [rows, landed, states] = [new Map(rows), [...landed], new Map(states)];
    isPeeking = true;
    for (const event of events) {
      if (event.type === 'swap') attribute(event.fill);
      else if (event.type === 'posted') landedCurve(event);
      else if (event.type === 'touched') touchedCurve(event);
    }
    const state = sideState(market, seq, side);
    isPeeking = false;
    ({ rows, landed, states } = saved);
    fills.length = saved.fills;
    return state;
  }

  function attribute(fill: ChainFill): OrderFill[] {
    const market = setting.markets[fill.market]!;
    const curve = curves[fill.market]!.get(fill.curveSeq);
    const state = sideState(fill.market, fill.curveSeq, fill.side);
    if (state === null || curve === undefined) {
      fault('unexplained_curve');
      return [];
    }
    if (consumptionMismatchUnits(state, fill.consumedBeforeUnits) !== 0n) fault('carry_mismatch');
    const attributed = attributeFill(market, state, fill);
    const { decomposition } = attributed;
    if (decomposition.missingBaseUnits !== 0n) fault('missing_depth');
    states.set(stateKey(fill.market, fill.curveSeq, fill.side), attributed.state);
    const orderFills = orderFillsOf(market, fill.side, decomposition);
    fills.push({ fill, decomposition, orderFills });
    post(fillEntries(market, fill, decomposition, OPERATOR));
    if (fill.baseUnits < market.lotUnits) count('dust fill');
    if (decomposition.legs.length > 1) count('several legs');
    return orderFills;
  }

  function landedCurve(post: Extract<WorldEvent, { type: 'posted' }>): void {
    const curve = curves[post.market]!.get(post.seq);
    if (curve === undefined) return fault('unexplained_curve');
    const { publication } = curve;
    const taken = progress(post.market);
    curve.raised = raisedBy(publication, post);
    for (const side of ['ask', 'bid'] as const) {
      const carry = consumedUnits(
        side === 'ask' ? taken.askVolumeUnits : taken.bidVolumeUnits,
        namedVolume(publication, side),
      );
      const due = carryRule === 'none' ? 0n : dueRaise(setting.markets[post.market]!, publication, side, carry);
      if (curve.raised[side] !== due) fault('unexplained_raise');
    }
    landed[post.market] = post.seq;
  }

  function touchedCurve({ market, seq, baseSeq }: Extract<WorldEvent, { type: 'touched' }>): void {
    const [curve, base] = [curves[market]!.get(seq), curves[market]!.get(baseSeq)];
    if (curve === undefined || base === undefined) return fault('unexplained_curve');
    curve.raised = base.raised;
    landed[market] = seq;
  }

  function progress(market: number): MarketProgress {
    const taken = { ask: 0n, bid: 0n };
    let fillSeq = 0;
    for (const { fill } of fills) {
      if (fill.market !== market) continue;
      taken[fill.side] += fill.baseUnits;
      fillSeq = fill.fillSeq;
    }
    return { market, fillSeq, askVolumeUnits: taken.ask, bidVolumeUnits: taken.bid };
  }

  function custody({ event, cutBlock }: Extract<WorldEvent, { type: 'custody' }>): void {
    const { kind, maker, token, amountUnits, blockNumber } = event;
    const known = claims.get(key(maker, token)) ?? { maker, token, claim: NO_CLAIM, requests: [], paidGas: 0n };
    claims.set(key(maker, token), known);
    if (kind === 'deposited') return post(depositEntries('deposit', maker, token, amountUnits));
    if (kind === 'requested') {
      const call = { units: amountUnits, paidGas: eventGas(kind, 1) };
      known.requests.push({ ...call, blockNumber });
      known.paidGas += call.paidGas;
      known.claim = afterRequest(known.claim, call, blockNumber);
    } else if (kind === 'executed') {
      const paidGas = eventGas(kind, 1);
      known.paidGas += paidGas;
      known.claim = afterExecution(known.claim, { units: amountUnits, paidGas });
      post(executionEntries('execution', maker, token, amountUnits));
    } else {
      const later = known.requests.filter((one) => one.blockNumber > cutBlock);
      known.paidGas = later.reduce((sum, one) => sum + one.paidGas, 0n);
      known.claim = afterSettlement(
        known.claim,
        { units: amountUnits, readyAtSec: event.readyAtSec, blockNumber, lost: false },
        {
          units: later.reduce((sum, { units }) => sum + units, 0n),
          sinceBlock: later[0]?.blockNumber ?? null,
          paidGas: later.reduce((sum, { paidGas }) => addGas(sum, paidGas), 0n),
        },
      );
    }
  }

  /** What the vault has too much is nobody's; what it lacks halts. */
  function compareHoldings(heldUnits: (token: Address) => bigint): void {
    for (const token of setting.unitValue.keys()) {
      const surplus = heldUnits(token) + rowOf(VAULT, token);
      if (surplus < 0n) fault('shortfall');
      else if (surplus > 0n) post(surplusEntries('surplus', token, surplus));
    }
    for (const { maker, token, claim } of claims.values()) {
      if (claim.claimUnits > 0n && claim.claimUnits > rowOf(maker, token)) fault('unbacked_claim');
    }
  }

  return {
    rowOf,
    rows: () => rows,
    reservedOf: (account, token) => claims.get(key(account, token))?.claim.outstandingUnits ?? 0n,
    *claims() {
      for (const { maker, token, claim } of claims.values()) yield [maker, token, claim] as const;
    },
    paidSince: (maker, token) => claims.get(key(maker, token))?.paidGas ?? 0n,
    fills,
    progress,
    landedSeq: (market) => landed[market]!,
    prepared(curve) {
      const { market, seq } = curve.publication;
      curves[market]!.set(seq, { ...curve, raised: NOTHING_RAISED });
      lastSeq[market] = seq;
    },
    curve: (market, seq) => curves[market]!.get(seq),
    last: (market) => curves[market]!.get(lastSeq[market]!),
    executable(market, atSec) {
      return [...curves[market]!.values()]
        .filter(({ publication }) => publication.seq >= landed[market]! && publication.deadlineSec > atSec)
        .map(({ publication, snapshot }) =>
          executablePublication(
            setting.markets[market]!,
            publication.seq,
            snapshot,
            fillsOf(market, snapshot.fillSeq).flatMap(({ orderFills }) => orderFills),
          ),
        );
    },
    scan(events, heldUnits) {
      const orderFills: OrderFill[] = [];
      for (const event of events) {
        if (event.type === 'swap') orderFills.push(...attribute(event.fill));
        else if (event.type === 'posted') landedCurve(event);
        else if (event.type === 'touched') touchedCurve(event);
        else custody(event);
      }
      compareHoldings(heldUnits);
      return orderFills;
    },
    peek,
  };
}
