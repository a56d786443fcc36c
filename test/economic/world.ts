/**
 * One market place in memory, driven by the steps of a strategy: gateway, poster, settler and watcher by their own functions, contracts as
 * chain.ts has them. Nothing in it is random.
 */
import { absBig, maxBig, minBig } from '../../core/amounts.js';
import { costOf, remaining, type TradeMode } from '../../core/curve/walk.js';
import { lotsToSize, SUBTICKS_PER_TICK, ticksToPrice } from '../../core/market.js';
import type { Address, Hex, OrderLogRow, Side } from '../../core/types.js';
import type { WireOrder } from '../../core/wire/types.js';
import type { BalanceRow, GenerationRow } from '../../ledger/types.js';
import { SPOT_ASSET_BASE } from '../../server/orders/limits.js';
import type { SwapCall, WorldEvent } from './calls.js';
import { BLOCK_SEC, createWorldChain, sideOf, type WorldChain } from './chain.js';
import { createMeasures } from './amounts.js';
import { createWorldGasless, type WorldGasless } from './gasless.js';
import { createWorldGateway, type WorldGateway } from './gateway.js';
import { HONEST_LADDERS, ordersOf } from './ladder.js';
import { createWorldLedger, type WorldLedger } from './ledger.js';
import { createWorldPoster } from './poster.js';
import {
  addressOf,
  COLLUDING_MAKERS,
  COLLUDING_TAKERS,
  HONEST_MAKERS,
  HONEST_TAKER,
  type CarryRule,
  type Setting,
} from './setting.js';
import { createWorldSettler } from './settler.js';
import type { Amount, Ladder, Step } from './steps.js';

export interface World {
  readonly setting: Setting;
  readonly chain: WorldChain;
  readonly ledger: WorldLedger;
  readonly gateway: WorldGateway;
  readonly gasless: Pick<WorldGasless, 'gas'>;
  /** Whatever would have halted the ledger or stopped the poster. */
  readonly faults: readonly string[];
  /** How often each situation came up. */
  readonly seen: ReadonlyMap<string, number>;
  step(step: Step): void;
  /** Ends the block and scans, so that everything that happened is booked. */
  finish(): void;
}

const HONEST_LIMIT_BPS = 100n;
const HASH: Hex = `0x${'ab'.repeat(32)}`;

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
    reread: new Map(),
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
    onRow: (row) => {
      poster.follow(row);
      onAct({ kind: 'row', row });
    },
  });
  let generation = 0;
  let cutGeneration = 0;
  let head: GenerationRow | null = null;
  /** Events that no scan has seen: of blocks before this one, and all of them. */
  let mined: WorldEvent[] = [];

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

  /* KEEPERS */

  const poster = createWorldPoster({ setting, chain, ledger, gateway, operator, nowMs, count });
  const settler = createWorldSettler({ setting, chain, ledger, nowMs, count, fault });
  const gasless = createWorldGasless(setting, chain, count);

  function post(amend: boolean): void {
    if (head === null || cutGeneration === generation) return;
    cutGeneration = generation;
    if (poster.round(head, generation, amend)) onAct({ kind: 'post' });
  }

  function land(pick: number): void {
    const pool = poster.signed();
    const records = pool[pick % Math.max(1, pool.length)];
    if (records === undefined) return;
    if (pool.length > 1 && pick % pool.length < pool.length - 1) count('older post landed');
    onAct({ kind: 'land' });
    if (!chain.post(records)) count('post reverted');
    poster.used();
  }

  /* TAKERS */

  const { segmentsOf, takenOf, baseUnits } = createMeasures(setting, chain, ledger, unscanned);

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
    gasless.swapped(taker);
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
        if (chain.donate(colludingTaker(step.taker), tokenAt(step.token), BigInt(step.units)))
          gasless.transferred(colludingTaker(step.taker));
        return;
      case 'request':
        return request(colludingMaker(step.maker), tokenAt(step.token), step.permille);
      case 'settle':
        if (head !== null) settler.round(head);
        if (!step.later) settler.land();
        return;
      case 'settled':
        return settler.land();
      case 'sign': {
        const side = sideOf(step.mode);
        const units = baseUnits(step.market, side, step.amount);
        const wanted = minBig(units, chain.depthLeft(step.market, side));
        return wanted > 0n
          ? gasless.sign(colludingTaker(step.taker), step.market, step.mode, wanted, step.slippageBps)
          : undefined;
      }
      case 'executor':
        return gasless.round();
      case 'executed':
        return gasless.land();
      case 'spoil':
        return gasless.spoil(colludingTaker(step.taker));
      case 'transfer':
        return gasless.transfer(
          colludingTaker(step.taker),
          colludingTaker(step.to),
          tokenAt(step.token),
          step.permille,
        );
      case 'pace':
        return poster.pace(step.on);
      case 'floor':
        return poster.floor(tokenAt(step.token), step.on ? '1000000000' : null);
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
    gasless,
    faults,
    seen,
    step,
    finish: () => block(BLOCK_SEC, true),
  };
}
