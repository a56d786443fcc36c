/**
 * One market place in memory, driven by the steps of a strategy: gateway, poster, settler and watcher by their own functions, contracts as
 * chain.ts has them. Nothing in it is random.
 */
import { absBig, ceilDiv, maxBig, minBig } from '../../core/amounts.js';
import { costOf, depthUnits, remaining, type TradeMode } from '../../core/curve/walk.js';
import type { PostRecord } from '../../core/curve/post.js';
import { isArmedWithin } from '../../core/cut.js';
import { worstPayments } from '../../core/exposure.js';
import { lotsToSize, SUBTICKS_PER_TICK, ticksToPrice } from '../../core/market.js';
import { snapshotSide } from '../../core/snapshot.js';
import type { Address, Hex, OrderLogRow, Segment, Side } from '../../core/types.js';
import type { WireOrder } from '../../core/wire/types.js';
import { partialOf } from '../../keepers/poster/gas.js';
import { prepareDue, type Due } from '../../keepers/poster/prepare.js';
import type { PosterView } from '../../keepers/poster/view.js';
import { planSettlements } from '../../keepers/settler/plan.js';
import type { Follower } from '../../ledger/follower.js';
import type { BalanceRow, GenerationRow } from '../../ledger/types.js';
import { SPOT_ASSET_BASE } from '../../server/orders/limits.js';
import {
  BLOCK_SEC,
  createWorldChain,
  sideOf,
  type SettlementCall,
  type SwapCall,
  type WorldChain,
  type WorldEvent,
} from './chain.js';
import { costliest } from './costliest.js';
import { createWorldGateway, type WorldGateway } from './gateway.js';
import { createWorldLedger, type WorldLedger } from './ledger.js';
import {
  addressOf,
  COLLUDING_MAKERS,
  COLLUDING_TAKERS,
  HONEST_MAKERS,
  HONEST_TAKER,
  type CarryRule,
  type Setting,
} from './setting.js';
import type { Amount, Ladder, Step } from './steps.js';

export interface World {
  readonly setting: Setting;
  readonly chain: WorldChain;
  readonly ledger: WorldLedger;
  readonly gateway: WorldGateway;
  /** Whatever would have halted the ledger or stopped the poster. */
  readonly faults: readonly string[];
  /** How often each situation came up. */
  readonly seen: ReadonlyMap<string, number>;
  step(step: Step): void;
  /** Ends the block and scans, so that everything that happened is booked. */
  finish(): void;
}

/** Short enough that curves are touched and expire within a strategy. */
const CURVE_TTL_SEC = 12;
const TOUCH_BEFORE_SEC = 6;
const BATCH_MAX = 50;
const HONEST_LIMIT_BPS = 100n;
/** What is built on a live curve must land before it dies. */
const AMEND_MARGIN_SEC = 3;
const HASH: Hex = `0x${'ab'.repeat(32)}`;

/** A strategy begins in a book of two honest makers, posted a block ago. */
export const HONEST_LADDERS: readonly Ladder[] = [
  { levels: 8, awayBps: 2, awayTicks: 1, spanBps: 60, gapPermille: 1_200, size: 1_000, sizePermille: 1_150 },
  { levels: 6, awayBps: 3, awayTicks: 1, spanBps: 90, gapPermille: 1_000, size: 2_000, sizePermille: 1_000 },
];

/** Prices and lots of a ladder; those of a bid that would not be positive are left out. */
export function ordersOf(
  setting: Setting,
  market: number,
  side: Side,
  ladder: Ladder,
  availableUnits: (token: Address) => bigint = () => 0n,
): { priceTicks: bigint; sizeLots: bigint }[] {
  const mid = setting.midTicks[market]!;
  const usual = setting.sizeLots[market]!;
  const reach: bigint[] = [0n];
  let gap = 1_000_000n;
  for (let i = 1; i < ladder.levels; i++) {
    reach.push(reach[i - 1]! + gap);
    gap = maxBig(1n, (gap * BigInt(ladder.gapPermille)) / 1_000n);
  }
  const last = maxBig(1n, reach.at(-1)!);
  const away = (mid * BigInt(ladder.awayBps)) / 10_000n + BigInt(ladder.awayTicks);
  const span = (mid * BigInt(ladder.spanBps)) / 10_000n;
  const listed = setting.markets[market]!;
  const { base, quote, lotUnits, tickLotUnits } = listed;
  const minUnits = setting.minOrderUnits(listed);
  const allLots =
    side === 'ask'
      ? availableUnits(base.address) / lotUnits
      : availableUnits(quote.address) / (maxBig(mid - away, 1n) * tickLotUnits);
  /** In billionths of a lot. */
  const sizes: Record<string, bigint> = {
    '-1': (allLots * 1_000_000_000n) / BigInt(ladder.levels),
    '0': ceilDiv(minUnits, maxBig(mid - away - span, 1n) * tickLotUnits) * 1_000_000_000n,
  };
  let size = sizes[ladder.size] ?? usual * BigInt(ladder.size) * 1_000_000n;
  return reach.flatMap((reached) => {
    const offset = away + (span * reached) / last;
    const priceTicks = side === 'ask' ? mid + offset : mid - offset;
    const sizeLots = maxBig(1n, size / 1_000_000_000n);
    if (ladder.size >= 0) size = (size * BigInt(ladder.sizePermille)) / 1_000n;
    return priceTicks > 0n ? [{ priceTicks, sizeLots }] : [];
  });
}

/** What happened, in the order in which it did, as far as it can be done again on the contracts. */
export type WorldAct =
  | { kind: 'row'; row: OrderLogRow }
  | { kind: 'post' }
  | { kind: 'land' }
  | { kind: 'swap'; call: SwapCall }
  | { kind: 'block' };

/** `onAct` is told of everything from the first order on. */
export function createWorld(
  setting: Setting,
  carryRule: CarryRule,
  onAct: (act: WorldAct) => void = () => undefined,
): World {
  const { markets } = setting;
  const tokens = [...setting.unitValue.keys()];
  const seen = new Map<string, number>();
  const faults: string[] = [];
  const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
  const fault = (what: string): void => void faults.push(what);
  const chain = createWorldChain(setting, carryRule, count);
  const ledger = createWorldLedger(setting, carryRule, fault, count);
  const makers = [...COLLUDING_MAKERS, ...HONEST_MAKERS].map(addressOf);
  const operator = {
    approved: new Set(makers),
    suspended: new Set<Address>(),
    delisted: new Set<number>(),
    halted: null,
    operatorHalt: null,
    lastSeq: 0,
  };
  /** A second before the block that is being made. */
  const nowMs = (): number => (chain.timeSec() - 1) * 1_000;
  const gateway = createWorldGateway({
    markets,
    minOrderUnits: setting.minOrderUnits,
    operator: () => operator,
    nowMs,
    count,
    onRow: (row) => onAct({ kind: 'row', row }),
  });
  let generation = 0;
  let cutGeneration = 0;
  let head: GenerationRow | null = null;
  /** Events that no scan has seen: of blocks before this one, and all of them. */
  let mined: WorldEvent[] = [];
  let pool: PostRecord[][] = [];
  let queue: SettlementCall[] = [];

  const colludingMaker = (index: number): Address => addressOf(COLLUDING_MAKERS[index % COLLUDING_MAKERS.length]!);
  const colludingTaker = (index: number): Address => addressOf(COLLUDING_TAKERS[index % COLLUDING_TAKERS.length]!);
  const tokenAt = (index: number): Address => tokens[index % tokens.length]!;

  /* ORDERS */

  const availableTo = (maker: Address, token: Address): bigint =>
    maxBig(ledger.rowOf(maker, token) - ledger.reservedOf(maker, token) - gateway.book.exposureOf(maker, token), 0n);

  const wireOrders = (maker: Address, market: number, side: Side, ladder: Ladder): WireOrder[] =>
    ordersOf(setting, market, side, ladder, (token) => availableTo(maker, token)).map(({ priceTicks, sizeLots }) => ({
      a: SPOT_ASSET_BASE + market,
      b: side === 'bid',
      p: ticksToPrice(markets[market]!, priceTicks),
      s: lotsToSize(markets[market]!, sizeLots),
      r: false,
      t: { limit: { tif: 'Gtc' } },
    }));

  function cancelWhere(maker: Address, market: number, side: Side | null): void {
    const orders = gateway.book
      .openOrders(maker)
      .filter((one) => one.market === market && (side ?? one.side) === one.side);
    if (orders.length === 0) return;
    gateway.submit(maker, {
      type: 'cancel',
      cancels: orders.map(({ oid }) => ({ a: SPOT_ASSET_BASE + market, o: oid })),
    });
  }

  function quote(maker: Address, market: number, sides: readonly Side[], ladder: Ladder): void {
    const orders = sides.flatMap((side) => wireOrders(maker, market, side, ladder));
    if (orders.length > 0) gateway.submit(maker, { type: 'order', orders, grouping: 'na' });
  }

  function modify({ maker: index, pick, ladder }: Extract<Step, { kind: 'modify' }>): void {
    const maker = colludingMaker(index);
    const own = gateway.book.openOrders(maker);
    const order = own[pick % Math.max(1, own.length)];
    if (order === undefined) return;
    const [next] = wireOrders(maker, order.market, order.side, {
      ...ladder,
      levels: 1,
      size: Math.max(0, ladder.size),
    });
    if (next !== undefined) gateway.submit(maker, { type: 'modify', oid: order.oid, order: next });
  }

  function cancelOne(maker: Address, pick: number): void {
    const own = gateway.book.openOrders(maker);
    const order = own[pick % Math.max(1, own.length)];
    if (order !== undefined)
      gateway.submit(maker, { type: 'cancel', cancels: [{ a: SPOT_ASSET_BASE + order.market, o: order.oid }] });
  }

  /* POSTER */

  function viewOf(at: GenerationRow): PosterView {
    const timeMs = nowMs();
    const armed = gateway.book.armed();
    const near = [...armed].filter(([, armedMs]) => isArmedWithin(armedMs, timeMs)).map(([maker]) => maker);
    return {
      cut: { orderSeq: gateway.lastOrderSeq(), generation, timeMs },
      head: at,
      operator,
      excluded: new Set([...operator.suspended, ...near]),
      armed: (maker) => armed.get(maker) ?? null,
      triggeredSeq: () => 0,
      shortTokens: new Set(),
      markets: markets.map((market) => {
        const last = ledger.last(market.index);
        const landedSeq = ledger.landedSeq(market.index);
        if (last === undefined) return { market, last: null, landedSeq, older: [] };
        const { publication, snapshot } = last;
        const { seq, deadlineSec, blockNumber } = publication;
        return {
          market,
          landedSeq,
          older: ledger.executable(market.index, at.blockTimestampMs / 1_000),
          last: { seq, snapshot, deadlineSec, blockNumber, signed: true, landed: landedSeq === seq, publication },
        };
      }),
      availableUnits: (maker, token) => maxBig(ledger.rowOf(maker, token) - ledger.reservedOf(maker, token), 0n),
    };
  }

  /** A full post as a partial one over the live curve, where the chain would take it. */
  function amended(due: Due, view: PosterView): Due {
    const last = view.markets[due.market.index]?.last;
    const { record, publication } = due;
    if (record.kind !== 'full' || !last?.landed || last.deadlineSec - chain.timeSec() < AMEND_MARGIN_SEC) return due;
    const partial = partialOf(record, last.publication);
    return { ...due, record: partial, publication: { ...publication, kind: 'partial', baseSeq: partial.baseSeq } };
  }

  function prepared(due: Due, txKey: string): PostRecord {
    const { publication, snapshot, record } = due;
    ledger.prepared({ publication: { ...publication, txKey }, snapshot });
    if (publication.trims.length > 0) count('trimmed');
    if (publication.excluded.length > 0) count('maker left out');
    if (due.leftOut.some(({ lots }) => lots > 0n)) count('depth left out');
    return record;
  }

  function post(amend: boolean): void {
    if (head === null || cutGeneration === generation) return;
    cutGeneration = generation;
    const view = viewOf(head);
    if (view.markets.some(({ older }) => older.length > 1)) count('several executable curves');
    const follower = { book: gateway.book, progress: ledger.progress } as Follower;
    const { due, crossing } = prepareDue(view, follower, {
      curveTtlSec: CURVE_TTL_SEC,
      maxTtlSec: new Map(),
      touchBeforeSec: TOUCH_BEFORE_SEC,
      // Every change is posted at once, so that no waiting hides one.
      small: { quoteUnits: () => 0n, intervalMs: 0 },
      knots: setting.knots,
      preparedMs: nowMs(),
    });
    if (crossing.some(({ orders }) => orders > 0)) count('crossing left out');
    if (due.length === 0) return;
    onAct({ kind: 'post' });
    const txKey = `post:${generation}`;
    const records = due.map((one) => prepared(amend ? amended(one, view) : one, txKey));
    pool.push(records);
    if (pool.length > 1) count('post replaced before it landed');
  }

  function land(pick: number): void {
    const records = pool[pick % Math.max(1, pool.length)];
    if (records === undefined) return;
    if (pool.length > 1 && pick % pool.length < pool.length - 1) count('older post landed');
    onAct({ kind: 'land' });
    if (!chain.post(records)) count('post reverted');
    // They all have the same nonce.
    pool = [];
  }

  /* SETTLER */

  function settle(later: boolean): void {
    if (head === null || queue.length > 0) return;
    const atSec = head.blockTimestampMs / 1_000;
    const exposed = markets.map((market) => ({
      market,
      older: ledger.executable(market.index, atSec),
      candidate: null,
    }));
    const worst = worstPayments(exposed);
    const waiting = [...ledger.claims()]
      .filter(([, , { pendingSinceBlock }]) => pendingSinceBlock !== null)
      .map(([maker, token, claim]) => ({ maker, token, ...claim, balanceUnits: ledger.rowOf(maker, token) }));
    const planned = planSettlements({
      funded: waiting.filter(({ balanceUnits }) => balanceUnits !== 0n),
      unfunded: waiting.filter(({ balanceUnits }) => balanceUnits === 0n),
      worstUnits: ({ maker, token }) => worst.get(maker)?.get(token) ?? 0n,
      batchMax: BATCH_MAX,
      emptyBudget: BATCH_MAX,
    });
    const cutBlock = head.toBlock;
    queue = planned.map(({ maker, token, amountUnits, basis }) => ({ maker, token, amountUnits, basis, cutBlock }));
    if (waiting.length > planned.length) count('withdrawal waits');
    if (!later) settled();
  }

  function settled(): void {
    for (const call of queue.splice(0)) chain.settle(call);
  }

  /* TAKERS */

  const segmentsOf = (market: number, side: Side): readonly Segment[] =>
    side === 'ask' ? chain.markets[market]!.asks : chain.markets[market]!.bids;
  const takenOf = (market: number, side: Side): bigint =>
    side === 'ask' ? chain.consumed(market).askUnits : chain.consumed(market).bidUnits;

  /** Base units that a taker means by an amount. */
  function baseUnits(market: number, side: Side, amount: Amount): bigint {
    const left = chain.depthLeft(market, side);
    const segments = segmentsOf(market, side);
    const taken = takenOf(market, side);
    switch (amount.kind) {
      case 'permille':
        return (left * BigInt(amount.of)) / 1_000n;
      case 'units':
        return BigInt(amount.units);
      case 'knot': {
        const end = depthUnits(segments.slice(0, 1 + (amount.index % Math.max(1, segments.length))));
        return (end > taken ? end - taken : end) + BigInt(amount.more);
      }
      case 'order': {
        const live = ledger.curve(market, chain.markets[market]!.seq);
        const orders = live === undefined ? [] : snapshotSide(live.snapshot, side);
        const order = orders[amount.index % Math.max(1, orders.length)];
        return (order === undefined ? 0n : order.sizeLots * markets[market]!.lotUnits) + BigInt(amount.more);
      }
      case 'worst': {
        const state = ledger.peek(unscanned(), market, chain.markets[market]!.seq, side);
        return state === null || left === 0n ? 0n : costliest(side, remaining(segments, taken), state).units;
      }
    }
  }

  function swap(taker: Address, market: number, mode: TradeMode, amount: Amount): void {
    const side = sideOf(mode);
    const fixesBase = mode === 'buyExactOut' || mode === 'sellExactIn';
    const wanted = baseUnits(market, side, amount);
    if (wanted <= 0n) return;
    if (amount.kind === 'worst' || fixesBase) {
      const left = chain.depthLeft(market, side);
      take(taker, market, side === 'ask' ? 'buyExactOut' : 'sellExactIn', minBig(wanted, left));
      return;
    }
    const { lotUnits, tickLotUnits } = markets[market]!;
    const [first] = remaining(segmentsOf(market, side), takenOf(market, side));
    const quoteUnits = (wanted * (first?.subticks ?? 0n) * tickLotUnits) / (lotUnits * SUBTICKS_PER_TICK);
    take(taker, market, mode, amount.kind === 'units' ? wanted : quoteUnits);
  }

  function take(taker: Address, market: number, mode: TradeMode, amountUnits: bigint): void {
    const call = { taker, market, mode, amountUnits };
    if (chain.swap(call) === null) return count('swap reverted');
    onAct({ kind: 'swap', call });
    if (mode === 'buyExactIn' || mode === 'sellExactOut') count('swap that fixes quote');
  }

  /** Only near the fair price: whoever pays more does so of its own will. */
  function honestTake(market: number, side: Side, permille: number): void {
    const units = (chain.depthLeft(market, side) * BigInt(permille)) / 1_000n;
    const cost = costOf(remaining(segmentsOf(market, side), takenOf(market, side)), units);
    const fair = units * setting.midTicks[market]! * SUBTICKS_PER_TICK;
    if (cost === null || absBig(cost - fair) * 10_000n > fair * HONEST_LIMIT_BPS)
      return count('honest taker stays away');
    take(addressOf(HONEST_TAKER), market, side === 'ask' ? 'buyExactOut' : 'sellExactIn', units);
  }

  /** Events of this block are not out before it ends, so they are read when they are needed. */
  function unscanned(): WorldEvent[] {
    return [...mined, ...chain.soFar()];
  }

  /* CHAIN */

  function scan(): void {
    if (mined.length === 0 && head !== null && head.toBlock === chain.blockNumber()) return;
    generation += 1;
    const toBlock = chain.blockNumber();
    const timestampMs = chain.headSec() * 1_000;
    const orderFills = ledger.scan(mined, chain.held);
    mined = [];
    head = {
      generation,
      fromBlock: toBlock,
      toBlock,
      blockHash: HASH,
      blockTimestampMs: timestampMs,
      scannedMs: timestampMs,
      observedHead: toBlock,
      observedHeadTimestampMs: timestampMs,
    };
    gateway.follow(orderFills, balances());
  }

  function balances(): BalanceRow[] {
    return makers.flatMap((account) =>
      tokens.map((token) => ({
        account,
        token,
        balanceUnits: ledger.rowOf(account, token),
        reservedUnits: ledger.reservedOf(account, token),
        netCapitalUnits: 0n,
      })),
    );
  }

  function block(sec: number, isScanned: boolean): void {
    mined.push(...chain.mine(sec));
    onAct({ kind: 'block' });
    if (isScanned) scan();
    else count('block not scanned at once');
  }

  function request(maker: Address, token: Address, permille: number): void {
    const units = (maxBig(ledger.rowOf(maker, token), 0n) * BigInt(permille)) / 1_000n;
    chain.requestWithdraw(maker, token, maxBig(units, 1n));
  }

  function act(step: Step): void {
    switch (step.kind) {
      case 'quote': {
        const maker = colludingMaker(step.maker);
        if (step.replace) cancelWhere(maker, step.market, step.side);
        return quote(maker, step.market, [step.side], step.ladder);
      }
      case 'modify':
        return modify(step);
      case 'cancel':
        return step.pick === null
          ? cancelWhere(colludingMaker(step.maker), step.market, step.side)
          : cancelOne(colludingMaker(step.maker), step.pick);
      case 'schedule':
        return gateway.submit(
          colludingMaker(step.maker),
          step.sec === null ? { type: 'scheduleCancel' } : { type: 'scheduleCancel', time: nowMs() + step.sec * 1_000 },
        );
      case 'honestQuote': {
        const maker = addressOf(HONEST_MAKERS[step.maker % HONEST_MAKERS.length]!);
        cancelWhere(maker, step.market, null);
        return quote(maker, step.market, ['ask', 'bid'], step.ladder);
      }
      case 'honestTake':
        return honestTake(step.market, step.side, step.permille);
      case 'post':
        return post(step.amend);
      case 'land':
        return land(step.pick);
      case 'swap':
        return swap(colludingTaker(step.taker), step.market, step.mode, step.amount);
      case 'deposit': {
        const [maker, token] = [colludingMaker(step.maker), tokenAt(step.token)];
        return void chain.deposit(maker, token, (chain.walletOf(maker, token) * BigInt(step.permille)) / 1_000n);
      }
      case 'donate':
        return void chain.donate(colludingTaker(step.taker), tokenAt(step.token), BigInt(step.units));
      case 'request':
        return request(colludingMaker(step.maker), tokenAt(step.token), step.permille);
      case 'settle':
        return settle(step.later);
      case 'settled':
        return settled();
      case 'execute':
        return void chain.executeWithdraw(colludingMaker(step.maker), tokenAt(step.token));
      case 'suspend': {
        const maker = colludingMaker(step.maker);
        if (step.back) operator.suspended.delete(maker);
        else operator.suspended.add(maker);
        return;
      }
      case 'block':
        return block(step.sec, step.scan);
    }
  }

  function step(one: Step): void {
    try {
      act(one);
      count(`step ${one.kind}`);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      faults.push(`${one.kind} failed: ${error.message}`);
    }
  }

  for (const maker of makers)
    for (const token of tokens) chain.deposit(maker, token, setting.endowment.get(token)! / 2n);
  block(BLOCK_SEC, true);
  HONEST_LADDERS.forEach((ladder, maker) => {
    for (const { index } of markets) act({ kind: 'honestQuote', maker, market: index, ladder });
  });
  post(false);
  land(0);
  block(BLOCK_SEC, true);
  seen.clear();

  return {
    setting,
    chain,
    ledger,
    gateway,
    faults,
    seen,
    step,
    finish: () => block(BLOCK_SEC, true),
  };
}
