import {
  attributeFill,
  consumptionMismatchUnits,
  NO_GAINS,
  NOTHING_RAISED,
  openSide,
  orderFillsOf,
  type RaisedUnits,
  type SideGains,
  type SideState,
} from '../../../core/attribution.js';
import type { Book } from '../../../core/book.js';
import { createBook } from '../../../core/book/create-book.js';
import { buildCurve } from '../../../core/curve/build.js';
import { raisedConsumption } from '../../../core/curve/carry.js';
import { consumedUnits, depthUnits, trade, type Consumed, type TradeMode } from '../../../core/curve/walk.js';
import { executablePublication, trimToInventory, worstPayments, type ExposureMarket } from '../../../core/exposure.js';
import { snapshotHash, snapshotOf, snapshotSide } from '../../../core/snapshot.js';
import type {
  Address,
  Decomposition,
  Hex,
  Market,
  MarketSnapshot,
  OrderEffect,
  OrderFill,
  OrderLogRow,
  Segment,
  Side,
  Trim,
} from '../../../core/types.js';

/** Most publications of a market that may be executable while another is prepared. */
const MAX_OLDER = 3;

export interface WorldPublication {
  market: number;
  seq: number;
  cut: { orderSeq: number; generation: number };
  trims: Trim[];
  snapshotHash: Hex;
  snapshot: MarketSnapshot;
  asks: Segment[];
  bids: Segment[];
  exactAskKnots: number;
  exactBidKnots: number;
  /** The post that a touch goes back to; its own number otherwise. */
  postedSeq: number;
  /** What its landing added to the consumption of each side; a touch has what its post raised. */
  raised: RaisedUnits;
}

export interface WorldFill {
  market: number;
  fillSeq: number;
  curveSeq: number;
  side: Side;
  baseUnits: bigint;
  quoteUnits: bigint;
  consumedBeforeUnits: bigint;
  /** Set when a scan has seen it. */
  generation: number;
}

interface AttributedWorldFill {
  fill: WorldFill;
  decomposition: Decomposition;
  orderFills: OrderFill[];
}

/** What the chain knows of a market, and when a scan last looked. */
interface ChainMarket {
  askVolumeUnits: bigint;
  bidVolumeUnits: bigint;
  fillSeq: number;
  liveSeq: number;
  expired: Set<number>;
  scanned: { fillSeq: number; askVolumeUnits: bigint; bidVolumeUnits: bigint; liveSeq: number; expired: Set<number> };
}

export type WorldStep =
  | { kind: 'open'; maker: number; market: number; side: Side; away: bigint; sizeLots: bigint }
  | { kind: 'requote'; maker: number; market: number; side: Side; levels: { away: bigint; sizeLots: bigint }[] }
  | { kind: 'cancel'; pick: number }
  | { kind: 'publish'; mask: number }
  | { kind: 'land'; market: number; pick: number }
  /** Prolongs the live curve, so that what was prepared before and has not landed never will. */
  | { kind: 'touch'; market: number }
  | { kind: 'expire'; market: number; pick: number }
  | { kind: 'swap'; market: number; mode: TradeMode; permille: bigint }
  /** Takes the live curve up to the end of its first `orders` orders, all of it if there are fewer. */
  | { kind: 'take'; market: number; side: Side; orders: number }
  /** Takes so many base units of the live curve, or what is left of it. */
  | { kind: 'takeUnits'; market: number; side: Side; units: bigint }
  | { kind: 'scan' }
  | { kind: 'withdraw'; maker: number; base: boolean; permille: bigint };

/** A simple model of a market: order log, ledger, poster and chain, without databases, processes or transactions. */
export interface World {
  step(step: WorldStep): void;
  rows: OrderLogRow[];
  publications: WorldPublication[];
  attributed: AttributedWorldFill[];
  balances: Map<string, bigint>;
  /** How often each situation came up, so that a test can check that it tested something. */
  seen: { late: number; trimmed: number; older: number; withdrawn: number; raised: number };
}

interface WorldOptions {
  /** Whether landing curves follow the carry rule. */
  raises?: boolean;
  /** What each maker has of each token at the beginning. */
  baseUnits?: bigint;
  quoteUnits?: bigint;
}

const MID_TICKS = 100n;

/** The operator's total gain from the fills of each side of each curve, those of its touches included. */
export function gainsByCurve({ publications, attributed }: World): (SideGains & { side: Side; curve: string })[] {
  const curves = new Map<string, SideGains & { side: Side; curve: string }>();
  const posted = new Map(publications.map(({ market, seq, postedSeq }) => [`${market}:${seq}`, postedSeq]));
  for (const { fill, decomposition } of attributed) {
    const curve = `${fill.market}:${posted.get(`${fill.market}:${fill.curveSeq}`)}:${fill.side}`;
    const { gainUnits, legs } = curves.get(curve) ?? NO_GAINS;
    curves.set(curve, {
      curve,
      side: fill.side,
      gainUnits: gainUnits + decomposition.operatorGainUnits,
      legs: legs + decomposition.legs.length,
    });
  }
  return [...curves.values()];
}

export const createWorld = (
  markets: readonly Market[],
  makers: readonly Address[],
  check: (ok: boolean, what: string) => void,
  { raises = true, baseUnits = 400n, quoteUnits = 4_000n }: WorldOptions = {},
): World => {
  const book: Book = createBook(markets);
  const rows: OrderLogRow[] = [];
  const publications: WorldPublication[] = [];
  const pending: WorldFill[] = [];
  const attributed: AttributedWorldFill[] = [];
  const balances = new Map<string, bigint>();
  const reserved = new Map<string, bigint>();
  const states = new Map<string, SideState>();
  const seen = { late: 0, trimmed: 0, older: 0, withdrawn: 0, raised: 0 };
  let generation = 0;
  const chain = markets.map((): ChainMarket => {
    const zero = { askVolumeUnits: 0n, bidVolumeUnits: 0n, fillSeq: 0, liveSeq: 0 };
    return { ...zero, expired: new Set(), scanned: { ...zero, expired: new Set() } };
  });
  const key = (maker: Address, token: Address): string => `${maker}:${token}`;
  const balanceOf = (maker: Address, token: Address): bigint => balances.get(key(maker, token)) ?? 0n;
  for (const maker of makers) {
    for (const { base, quote } of markets) {
      balances.set(key(maker, base.address), baseUnits);
      balances.set(key(maker, quote.address), quoteUnits);
    }
  }

  const appendRow = (maker: Address, effects: OrderEffect[]): void => {
    const row = {
      orderSeq: rows.length + 1,
      timeMs: rows.length,
      maker,
      signer: maker,
      nonce: rows.length,
      kind: 'order',
      effects,
    };
    rows.push(row);
    book.apply(row);
  };

  const openEffect = (
    maker: Address,
    market: number,
    side: Side,
    away: bigint,
    sizeLots: bigint,
    oid: number,
  ): OrderEffect[] => {
    const opposite = book.bestTicks(market, side === 'ask' ? 'bid' : 'ask');
    const priceTicks = side === 'ask' ? MID_TICKS + away : MID_TICKS - away;
    const crosses = opposite !== null && (side === 'ask' ? priceTicks <= opposite : priceTicks >= opposite);
    return crosses ? [] : [{ type: 'open', oid, market, side, priceTicks, sizeLots, tif: 'Alo', cloid: null }];
  };

  const requote = (step: Extract<WorldStep, { kind: 'requote' }>): void => {
    const maker = makers[step.maker]!;
    const own = book.openOrders(maker).filter((order) => order.market === step.market && order.side === step.side);
    const closes = own.map(({ oid }): OrderEffect => ({ type: 'close', oid, reason: 'canceled' }));
    let oid = book.lastOid();
    const opens = step.levels.flatMap(({ away, sizeLots }) => {
      const effects = openEffect(maker, step.market, step.side, away, sizeLots, oid + 1);
      oid += effects.length;
      return effects;
    });
    appendRow(maker, [...closes, ...opens]);
  };

  /** What the poster takes for executable: by the last scan, not by the chain. */
  const executable = (market: Market): WorldPublication[] => {
    const { scanned } = chain[market.index]!;
    return publications.filter(
      ({ market: index, seq }) => index === market.index && seq >= scanned.liveSeq && !scanned.expired.has(seq),
    );
  };

  const exposureOf = (market: Market, candidate: MarketSnapshot | null): ExposureMarket => ({
    market,
    candidate,
    older: executable(market).map(({ seq, snapshot }) => {
      const since = attributed.filter(({ fill }) => fill.market === market.index && fill.fillSeq > snapshot.fillSeq);
      return executablePublication(
        market,
        seq,
        snapshot,
        since.flatMap((one) => one.orderFills),
      );
    }),
  });

  const publish = (mask: number): void => {
    const chosen = markets.filter(
      (market) => (mask >> market.index) % 2 === 1 && executable(market).length <= MAX_OLDER,
    );
    const cut = { orderSeq: rows.length, generation };
    const exposures = markets.map((market) =>
      exposureOf(market, chosen.includes(market) ? snapshotOf(book, market, chain[market.index]!.scanned) : null),
    );
    const available = (maker: Address, token: Address): bigint =>
      balanceOf(maker, token) - (reserved.get(key(maker, token)) ?? 0n);
    for (const { market, trims, snapshot } of trimToInventory(exposures, available)) {
      if (snapshot === null) continue;
      const seq = publications.filter((one) => one.market === market.index).length + 1;
      const again = snapshotOf(book, market, chain[market.index]!.scanned, trims);
      check(snapshotHash(again) === snapshotHash(snapshot), 'trims reproduce the snapshot');
      const { asks, bids, exactAskKnots, exactBidKnots } = buildCurve(market, snapshot, { maxKnots: 7 });
      publications.push({
        market: market.index,
        seq,
        cut,
        trims,
        snapshotHash: snapshotHash(snapshot),
        snapshot,
        asks,
        bids,
        exactAskKnots,
        exactBidKnots,
        postedSeq: seq,
        raised: NOTHING_RAISED,
      });
      if (trims.length > 0) seen.trimmed += 1;
      seen.older = Math.max(seen.older, exposures[market.index]!.older.length);
    }
  };

  const pickPublication = (market: number, pick: number): WorldPublication | undefined => {
    const { liveSeq, expired } = chain[market]!;
    const ahead = publications.filter((one) => one.market === market && one.seq > liveSeq && !expired.has(one.seq));
    return ahead[pick % Math.max(1, ahead.length)];
  };

  /** The contract raises what was taken since the cut to the end of a segment. */
  const land = (publication: WorldPublication): void => {
    const { market, snapshot, asks, bids, exactAskKnots, exactBidKnots } = publication;
    const on = chain[market]!;
    on.liveSeq = publication.seq;
    if (!raises) return;
    const raise = (segments: readonly Segment[], exact: number, taken: bigint): bigint =>
      raisedConsumption(segments, exact, taken) - taken;
    publication.raised = {
      ask: raise(asks, exactAskKnots, consumedUnits(on.askVolumeUnits, snapshot.askVolumeUnits)),
      bid: raise(bids, exactBidKnots, consumedUnits(on.bidVolumeUnits, snapshot.bidVolumeUnits)),
    };
    if (publication.raised.ask + publication.raised.bid > 0n) seen.raised += 1;
  };

  const touch = (index: number): void => {
    const met = meet(index);
    if (met === null) return;
    const seq = publications.filter((one) => one.market === index).length + 1;
    publications.push({ ...met.live, seq, cut: met.live.cut });
    chain[index]!.liveSeq = seq;
  };

  /** The curve that a taker meets now, and what of it is taken already. */
  const meet = (index: number): { live: WorldPublication; consumed: Consumed } | null => {
    const on = chain[index]!;
    const live = publications.find((one) => one.market === index && one.seq === on.liveSeq);
    if (live === undefined || on.expired.has(live.seq)) return null;
    const { snapshot, raised } = live;
    const askUnits = consumedUnits(on.askVolumeUnits, snapshot.askVolumeUnits - raised.ask);
    return {
      live,
      consumed: { askUnits, bidUnits: consumedUnits(on.bidVolumeUnits, snapshot.bidVolumeUnits - raised.bid) },
    };
  };

  const take = ({ market: index, side, orders }: Extract<WorldStep, { kind: 'take' }>): void => {
    const met = meet(index);
    if (met === null) return;
    const { live, consumed } = met;
    const first = snapshotSide(live.snapshot, side).slice(0, orders);
    const before = side === 'ask' ? consumed.askUnits : consumed.bidUnits;
    const units = first.reduce((sum, { sizeLots }) => sum + sizeLots * markets[index]!.lotUnits, -before);
    const depth = depthUnits(side === 'ask' ? live.asks : live.bids) - before;
    fill(index, side === 'ask' ? 'buyExactOut' : 'sellExactIn', units < depth ? units : depth);
  };

  const takeUnits = ({ market: index, side, units }: Extract<WorldStep, { kind: 'takeUnits' }>): void => {
    const met = meet(index);
    if (met === null) return;
    const left =
      side === 'ask'
        ? depthUnits(met.live.asks) - met.consumed.askUnits
        : depthUnits(met.live.bids) - met.consumed.bidUnits;
    fill(index, side === 'ask' ? 'buyExactOut' : 'sellExactIn', units < left ? units : left);
  };

  const swap = ({ market: index, mode, permille }: Extract<WorldStep, { kind: 'swap' }>): void => {
    const market = markets[index]!;
    const met = meet(index);
    if (met === null) return;
    const { live, consumed } = met;
    const side: Side = mode.startsWith('buy') ? 'ask' : 'bid';
    const segments = side === 'ask' ? live.asks : live.bids;
    const before = side === 'ask' ? consumed.askUnits : consumed.bidUnits;
    const left = segments.reduce((sum, { lengthUnits }) => sum + lengthUnits, 0n) - before;
    if (left <= 0n) return;
    const fixesBase = mode === 'buyExactOut' || mode === 'sellExactIn';
    const whole = fixesBase
      ? left
      : (left * (segments[0]?.subticks ?? 0n) * market.tickLotUnits) / (market.lotUnits * 256n);
    fill(index, mode, (whole * permille + 999n) / 1000n);
  };

  const fill = (index: number, mode: TradeMode, amountUnits: bigint): void => {
    const on = chain[index]!;
    const { live, consumed } = meet(index)!;
    const result = trade(markets[index]!, live, consumed, mode, amountUnits);
    if (result === null) return;
    const side: Side = mode.startsWith('buy') ? 'ask' : 'bid';
    on.fillSeq += 1;
    if (side === 'ask') on.askVolumeUnits += result.baseUnits;
    else on.bidVolumeUnits += result.baseUnits;
    pending.push({
      market: index,
      fillSeq: on.fillSeq,
      curveSeq: live.seq,
      side,
      ...result,
      consumedBeforeUnits: side === 'ask' ? consumed.askUnits : consumed.bidUnits,
      generation: 0,
    });
  };

  const stateOf = (market: Market, fill: WorldFill): SideState => {
    const name = `${fill.market}:${fill.curveSeq}:${fill.side}`;
    const known = states.get(name);
    if (known !== undefined) return known;
    const { snapshot, raised } = publications.find((one) => one.market === fill.market && one.seq === fill.curveSeq)!;
    const late = attributed.filter(
      (one) =>
        one.fill.market === fill.market && one.fill.fillSeq > snapshot.fillSeq && one.fill.curveSeq < fill.curveSeq,
    );
    if (late.some((one) => one.fill.side === fill.side)) seen.late += 1;
    return openSide(
      market,
      snapshot,
      fill.side,
      late.flatMap((one) => one.orderFills),
      raised[fill.side],
    );
  };

  const pay = (maker: Address, token: Address, units: bigint): void => {
    const balance = balanceOf(maker, token) + units;
    balances.set(key(maker, token), balance);
    check(balance >= 0n, `balance of ${maker} in ${token} is ${balance}`);
  };

  const attribute = (fill: WorldFill): void => {
    const market = markets[fill.market]!;
    const state = stateOf(market, fill);
    check(
      consumptionMismatchUnits(state, fill.consumedBeforeUnits) === 0n,
      'late fills add up to the consumption before',
    );
    const result = attributeFill(market, state, fill);
    check(result.decomposition.missingBaseUnits === 0n, 'orders explain the whole depth');
    states.set(`${fill.market}:${fill.curveSeq}:${fill.side}`, result.state);
    const orderFills = orderFillsOf(market, fill.side, result.decomposition);
    attributed.push({ fill: { ...fill, generation }, decomposition: result.decomposition, orderFills });
    const sign = fill.side === 'ask' ? 1n : -1n;
    for (const leg of result.decomposition.legs) {
      pay(leg.maker, market.base.address, -sign * leg.baseUnits);
      pay(leg.maker, market.quote.address, sign * leg.quoteUnits);
    }
    book.applyFills(orderFills);
  };

  const scan = (): void => {
    generation += 1;
    for (const fill of pending.splice(0)) attribute(fill);
    for (const on of chain) {
      const { askVolumeUnits, bidVolumeUnits, fillSeq, liveSeq } = on;
      on.scanned = { askVolumeUnits, bidVolumeUnits, fillSeq, liveSeq, expired: new Set(on.expired) };
    }
  };

  /** Reserves at once; pays out as soon as nothing that is executable could need it. */
  const withdraw = ({ maker: index, base, permille }: Extract<WorldStep, { kind: 'withdraw' }>): void => {
    const maker = makers[index]!;
    const token = base ? markets[0]!.base.address : markets[0]!.quote.address;
    const name = key(maker, token);
    const claim = reserved.get(name) ?? 0n;
    if (claim === 0n) {
      reserved.set(name, (balanceOf(maker, token) * permille) / 1000n);
      return;
    }
    const worst =
      worstPayments(markets.map((market) => exposureOf(market, null)))
        .get(maker)
        ?.get(token) ?? 0n;
    if (worst > balanceOf(maker, token) - claim) return;
    pay(maker, token, -claim);
    reserved.delete(name);
    seen.withdrawn += 1;
  };

  const step = (one: WorldStep): void => {
    if (one.kind === 'open') {
      const maker = makers[one.maker]!;
      appendRow(maker, openEffect(maker, one.market, one.side, one.away, one.sizeLots, book.lastOid() + 1));
    } else if (one.kind === 'requote') requote(one);
    else if (one.kind === 'cancel') {
      const oid = 1 + (one.pick % Math.max(1, book.lastOid()));
      appendRow(book.order(oid)?.maker ?? makers[0]!, [{ type: 'close', oid, reason: 'canceled' }]);
    } else if (one.kind === 'publish') publish(one.mask);
    else if (one.kind === 'land') {
      const publication = pickPublication(one.market, one.pick);
      if (publication !== undefined) land(publication);
    } else if (one.kind === 'touch') touch(one.market);
    else if (one.kind === 'takeUnits') takeUnits(one);
    else if (one.kind === 'expire') {
      const mine = publications.filter(({ market }) => market === one.market);
      const publication = mine[one.pick % Math.max(1, mine.length)];
      if (publication !== undefined) chain[one.market]!.expired.add(publication.seq);
    } else if (one.kind === 'swap') swap(one);
    else if (one.kind === 'take') take(one);
    else if (one.kind === 'scan') scan();
    else withdraw(one);
  };

  return { step, rows, publications, attributed, balances, seen };
};
