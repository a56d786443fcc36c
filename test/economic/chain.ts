/**
 * The contracts as far as money goes: curves, counters, vault, claims and wallets. The contracts' own tests hold their arithmetic against
 * core's, which this uses; strategies that matter are played on the contracts themselves.
 */
import { minBig } from '../../core/amounts.js';
import { raisedConsumption } from '../../core/curve/carry.js';
import { amendedWords, type FullPost, type PartialPost, type PostRecord } from '../../core/curve/post.js';
import { consumedUnits, depthUnits, trade, type Consumed, type TradeMode } from '../../core/curve/walk.js';
import { decodeSide, VOLUME_MODULUS } from '../../core/curve/words.js';
import type { Address, ChainFill, Hex, Market, Segment, Side } from '../../core/types.js';
import type { CustodyEvent } from '../../ledger/types.js';
import type { ChainMarket, SettlementCall, SwapCall, Swapped, WorldEvent } from './calls.js';
import { addressOf, FEE_PPM, FEE_TAKER, type CarryRule, type Setting } from './setting.js';

const PPM = 1_000_000n;
export const BLOCK_SEC = 2;
const WITHDRAW_DELAY_SEC = 4;

interface Claim {
  units: bigint;
  basis: bigint;
  readyAtSec: number;
}

/** How often something came about on the chain. */
export type Count = (what: string) => void;

/** The chain between two blocks: calls go into the next one, in the order in which they are made. */
export interface WorldChain {
  readonly markets: readonly ChainMarket[];
  blockNumber(): number;
  /** Time of the last block. */
  headSec(): number;
  /** Time of the block that is being made. */
  timeSec(): number;
  walletOf(account: Address, token: Address): bigint;
  held(token: Address): bigint;
  claimOf(maker: Address, token: Address): Readonly<Claim>;
  consumed(market: number): Consumed;
  /** What is left of a side, zero when the curve has expired. */
  depthLeft(market: number, side: Side): bigint;
  /** All or none of the records, but for those out of date. False when the transaction would revert. */
  post(records: readonly PostRecord[]): boolean;
  swap(call: SwapCall): ChainFill | null;
  /** What the swap would take and bring now, null when the market has no such depth or the order's terms are not met. */
  quote(call: SwapCall): Pick<Swapped, 'inUnits' | 'outUnits'> | null;
  /** The same, and the taker has what it takes. */
  simulate(call: SwapCall): Pick<Swapped, 'inUnits' | 'outUnits'> | null;
  /** From one wallet to another; false when there is nothing to move. */
  transfer(from: Address, to: Address, token: Address, units: bigint): boolean;
  deposit(maker: Address, token: Address, units: bigint): boolean;
  donate(from: Address, token: Address, units: bigint): boolean;
  requestWithdraw(maker: Address, token: Address, units: bigint): boolean;
  settle(call: SettlementCall): boolean;
  executeWithdraw(maker: Address, token: Address): boolean;
  /** Events of the block that is being made. */
  soFar(): readonly WorldEvent[];
  /** Ends the block; returns its events. */
  mine(sec?: number): WorldEvent[];
}

const key = (account: Address, token: Address): string => `${account}:${token}`;
/** Takes part in swaps of signed orders. */
const SETTLER: Address = `0x${'e'.repeat(40)}`;
const EMPTY = { askWords: [], bidWords: [], asks: [], bids: [] };
const COUNTERS = { askVolumeUnits: 0n, bidVolumeUnits: 0n, fillSeq: 0 };
const POSTED = { snapAskUnits: 0n, snapBidUnits: 0n, deadlineSec: 0, seq: 0 };

export const sideOf = (mode: TradeMode): Side => (mode.startsWith('buy') ? 'ask' : 'bid');

export function createWorldChain(setting: Setting, carryRule: CarryRule, count: Count): WorldChain {
  let states = setting.markets.map((): ChainMarket => ({ ...EMPTY, ...COUNTERS, ...POSTED }));
  const wallets = new Map<string, bigint>();
  const holdings = new Map<Address, bigint>();
  const claims = new Map<string, Claim>();
  const claimed = new Map<Address, bigint>();
  let events: WorldEvent[] = [];
  let blockNumber = 0;
  let headSec = 1_800_000_000 - BLOCK_SEC;
  let timeSec = 1_800_000_000;
  let logIndex = 0;
  const feeTaker = addressOf(FEE_TAKER);

  const walletOf = (account: Address, token: Address): bigint =>
    wallets.get(key(account, token)) ?? setting.endowment.get(token) ?? 0n;
  const held = (token: Address): bigint => holdings.get(token) ?? 0n;
  const claimOf = (maker: Address, token: Address): Claim =>
    claims.get(key(maker, token)) ?? { units: 0n, basis: 0n, readyAtSec: 0 };
  const free = (token: Address): bigint => {
    const units = held(token) - (claimed.get(token) ?? 0n);
    return units > 0n ? units : 0n;
  };

  /** From a wallet into the vault; a negative amount the other way. */
  function move(account: Address, token: Address, units: bigint): void {
    wallets.set(key(account, token), walletOf(account, token) - units);
    holdings.set(token, held(token) + units);
  }

  function consumed(index: number): Consumed {
    const { askVolumeUnits, bidVolumeUnits, snapAskUnits, snapBidUnits } = states[index]!;
    return {
      askUnits: consumedUnits(askVolumeUnits, snapAskUnits),
      bidUnits: consumedUnits(bidVolumeUnits, snapBidUnits),
    };
  }

  function depthLeft(index: number, side: Side): bigint {
    const state = states[index]!;
    if (timeSec >= state.deadlineSec) return 0n;
    const { askUnits, bidUnits } = consumed(index);
    const left = side === 'ask' ? depthUnits(state.asks) - askUnits : depthUnits(state.bids) - bidUnits;
    return left > 0n ? left : 0n;
  }

  /** The volume that is stored for a side. */
  function storedVolume(
    side: Side,
    volumeUnits: bigint,
    namedUnits: bigint,
    segments: readonly Segment[],
    exactKnots: number,
  ): bigint {
    const carry = consumedUnits(volumeUnits, namedUnits);
    const after = carryRule === 'none' ? carry : raisedConsumption(segments, exactKnots, carry);
    if (carry > 0n) count(`carry ${side}`);
    if (carry > 0n && after === carry && exactKnots > 0 && carryRule === 'raised') count('carry kept');
    if (after > carry) count('raised');
    return (((volumeUnits - after) % VOLUME_MODULUS) + VOLUME_MODULUS) % VOLUME_MODULUS;
  }

  function live(market: Market, before: ChainMarket, record: FullPost | PartialPost): ChainMarket {
    const [askWords, bidWords] =
      record.kind === 'full'
        ? [record.askWords, record.bidWords]
        : [amendedWords(before.askWords, record.askChanges), amendedWords(before.bidWords, record.bidChanges)];
    const [asks, bids] = [decodeSide(market, 'ask', askWords), decodeSide(market, 'bid', bidWords)];
    const { askVolumeUnits, bidVolumeUnits } = before;
    return {
      ...before,
      askWords,
      bidWords,
      asks,
      bids,
      snapAskUnits: storedVolume('ask', askVolumeUnits, record.snapAskUnits, asks, record.exactAskKnots),
      snapBidUnits: storedVolume('bid', bidVolumeUnits, record.snapBidUnits, bids, record.exactBidKnots),
      deadlineSec: record.deadlineSec,
      seq: record.seq,
    };
  }

  function post(records: readonly PostRecord[]): boolean {
    const next = [...states];
    const logs: WorldEvent[] = [];
    for (const record of records) {
      const market = setting.markets.find(({ id }) => id === record.marketId)!;
      const before = next[market.index]!;
      if (record.seq <= before.seq || (record.kind !== 'full' && record.baseSeq !== before.seq)) {
        count('record skipped');
        continue;
      }
      if (record.kind !== 'full' && timeSec >= before.deadlineSec) return false;
      if (record.deadlineSec <= timeSec || record.deadlineSec > timeSec + market.maxTtlSec) return false;
      const { seq } = record;
      if (record.kind === 'touch') {
        next[market.index] = { ...before, seq, deadlineSec: record.deadlineSec };
        logs.push({ type: 'touched', market: market.index, seq, baseSeq: record.baseSeq });
      } else {
        const after = live(market, before, record);
        next[market.index] = after;
        const { snapAskUnits, snapBidUnits } = after;
        logs.push({ type: 'posted', market: market.index, seq, snapAskUnits, snapBidUnits });
      }
      count(record.kind);
    }
    states = next;
    events.push(...logs);
    return true;
  }

  function compute({ taker, market: index, mode, amountUnits, order }: SwapCall): Swapped | null {
    const market = setting.markets[index]!;
    const state = states[index]!;
    if (timeSec >= state.deadlineSec) return null;
    const isCharged = setting.feeMarket === index && taker === feeTaker && order === undefined;
    const ratePpm = isCharged ? FEE_PPM : 0n;
    const exactOut = mode.endsWith('Out');
    const gross =
      exactOut && ratePpm > 0n && amountUnits > 0n ? ((amountUnits - 1n) * PPM) / (PPM - ratePpm) + 1n : amountUnits;
    const result = trade(market, state, consumed(index), mode, gross);
    if (result === null) return null;
    const { baseUnits, quoteUnits } = result;
    const [inUnits, outUnits] = sideOf(mode) === 'ask' ? [quoteUnits, baseUnits] : [baseUnits, quoteUnits];
    const [tokenIn, tokenOut] =
      sideOf(mode) === 'ask'
        ? [market.quote.address, market.base.address]
        : [market.base.address, market.quote.address];
    const feeUnits = exactOut ? gross - amountUnits : (outUnits * ratePpm) / PPM;
    if (order !== undefined && (inUnits > order.mostInUnits || outUnits < order.leastOutUnits)) return null;
    if (outUnits > free(tokenOut)) return null;
    return { inUnits, outUnits, feeUnits, baseUnits, quoteUnits, tokenIn, tokenOut };
  }

  /** Null when the swap would revert. */
  function simulate(call: SwapCall): Swapped | null {
    const swapped = compute(call);
    const hasFunds =
      swapped !== null && walletOf(call.taker, swapped.tokenIn) >= swapped.inUnits + (call.order?.feeUnits ?? 0n);
    return hasFunds ? swapped : null;
  }

  function swap(call: SwapCall): ChainFill | null {
    const swapped = simulate(call);
    if (swapped === null) return null;
    const { market: index, mode, order } = call;
    const { inUnits, outUnits, feeUnits, baseUnits, quoteUnits, tokenIn, tokenOut } = swapped;
    const before = consumed(index);
    const state = states[index]!;
    const side = sideOf(mode);
    const isBuy = side === 'ask';
    const taker = order === undefined ? call.taker : SETTLER;
    move(call.taker, tokenIn, inUnits);
    move(call.taker, tokenOut, -(outUnits - feeUnits));
    if (order !== undefined) {
      move(call.taker, tokenIn, order.feeUnits);
      custody('deposited', order.operator, tokenIn, order.feeUnits);
    }
    const fillSeq = state.fillSeq + 1;
    states = states.map((one, i) =>
      i === index
        ? {
            ...one,
            fillSeq,
            askVolumeUnits: one.askVolumeUnits + (isBuy ? baseUnits : 0n),
            bidVolumeUnits: one.bidVolumeUnits + (isBuy ? 0n : baseUnits),
          }
        : one,
    );
    const txHash: Hex = `0x${fillSeq.toString(16).padStart(64, '0')}`;
    const fill: ChainFill = {
      market: index,
      fillSeq,
      curveSeq: state.seq,
      side,
      baseUnits,
      quoteUnits,
      feeUnits,
      inputFeeUnits: 0n,
      consumedBeforeUnits: isBuy ? before.askUnits : before.bidUnits,
      taker,
      recipient: taker,
      blockNumber: blockNumber + 1,
      blockHash: txHash,
      txHash,
      logIndex: logIndex++,
      timestampMs: timeSec * 1_000,
    };
    events.push({ type: 'swap', fill });
    count('swap');
    if (feeUnits > 0n) count('taker fee');
    return fill;
  }

  function custody(
    kind: CustodyEvent['kind'],
    maker: Address,
    token: Address,
    amountUnits: bigint,
    more: { readyAtSec?: number; cutBlock?: number } = {},
  ): true {
    events.push({
      type: 'custody',
      event: { kind, maker, token, amountUnits, readyAtSec: more.readyAtSec ?? null, blockNumber: blockNumber + 1 },
      cutBlock: more.cutBlock ?? 0,
    });
    count(kind);
    return true;
  }

  function setClaim(maker: Address, token: Address, claim: Claim): void {
    claimed.set(token, (claimed.get(token) ?? 0n) + claim.units - claimOf(maker, token).units);
    claims.set(key(maker, token), claim);
  }

  return {
    get markets() {
      return states;
    },
    blockNumber: () => blockNumber,
    headSec: () => headSec,
    timeSec: () => timeSec,
    walletOf,
    held,
    claimOf,
    consumed,
    depthLeft,
    post,
    swap,
    quote: compute,
    simulate,
    transfer(from, to, token, units) {
      if (units <= 0n || from === to || walletOf(from, token) < units) return false;
      wallets.set(key(from, token), walletOf(from, token) - units);
      wallets.set(key(to, token), walletOf(to, token) + units);
      return true;
    },
    deposit(maker, token, units) {
      if (units <= 0n || walletOf(maker, token) < units) return false;
      move(maker, token, units);
      return custody('deposited', maker, token, units);
    },
    donate(from, token, units) {
      const sent = minBig(units, walletOf(from, token));
      if (sent <= 0n) return false;
      move(from, token, sent);
      count('donated');
      return true;
    },
    requestWithdraw: (maker, token, units) => units > 0n && custody('requested', maker, token, units),
    settle({ maker, token, amountUnits, basis, cutBlock }) {
      const claim = claimOf(maker, token);
      const isRaise = amountUnits > claim.units;
      if (isRaise && (basis !== claim.basis || amountUnits - claim.units > free(token))) {
        count('settlement refused');
        return false;
      }
      const readyAtSec = isRaise ? timeSec + WITHDRAW_DELAY_SEC : claim.readyAtSec;
      if (amountUnits !== claim.units)
        setClaim(maker, token, { units: amountUnits, basis: claim.basis + 1n, readyAtSec });
      return custody('settled', maker, token, amountUnits, { readyAtSec, cutBlock });
    },
    executeWithdraw(maker, token) {
      const claim = claimOf(maker, token);
      if (claim.units === 0n || timeSec < claim.readyAtSec || held(token) < claim.units) return false;
      move(maker, token, -claim.units);
      setClaim(maker, token, { units: 0n, basis: claim.basis + 1n, readyAtSec: 0 });
      return custody('executed', maker, token, claim.units);
    },
    soFar: () => events,
    mine(sec = BLOCK_SEC) {
      blockNumber += 1;
      headSec = timeSec;
      timeSec += sec;
      logIndex = 0;
      const mined = events;
      events = [];
      return mined;
    },
  };
}
