/** The contracts of the chain double: what they do with a call. */
import { Interface, type TransactionDescription } from 'ethers';
import { toSafeInt } from '../../../core/amounts.js';
import { decodePost, type PostRecord, type WordChanges } from '../../../core/curve/post.js';
import { consumedUnits, trade, type TradeMode } from '../../../core/curve/walk.js';
import { decodeSide, wordsHash, wordsUsed } from '../../../core/curve/words.js';
import type { Address, Hex, Market, Segment } from '../../../core/types.js';
import { CurveBook__factory, Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';

export interface DoubleWorld {
  chainId: number;
  owner: Address;
  poster: Address;
  settler: Address;
  custodian: Address;
  curveBook: Address;
  entrypoint: Address;
  tokens: readonly { address: Address; symbol: string; decimals: number }[];
  markets: readonly Market[];
  withdrawDelaySec: number;
  /** Parts per million of a taker's gross output. */
  feesPpm: ReadonlyMap<Address, bigint>;
  /** What everybody's wallet has of each token at the beginning. */
  wallets: readonly Address[];
  grantUnits: bigint;
  /** How many values other contracts log in each block; they fill the block's bloom filter. */
  strangers?: number;
  /** Signed orders can be filled. */
  orders?: DoubleOrders;
}

/** The settler of signed orders, and Permit2 as far as it needs it. */
export interface DoubleOrders {
  settler: Address;
  permit2: Address;
  /** Whose errors they revert with. */
  abis: readonly Interface[];
  /** Carries a call out; what it answers. */
  fill(machine: Machine, data: Hex): Hex;
  /** What Permit2 says when it is asked; undefined for anything else. */
  permit2Answer(state: DoubleState, data: Hex): Hex | undefined;
}

interface Claim {
  amount: bigint;
  basis: bigint;
  readyAtSec: bigint;
}

interface MarketState {
  cumAsk: bigint;
  cumBid: bigint;
  fillSeq: number;
  seq: number;
  deadlineSec: number;
  snapAsk: bigint;
  snapBid: bigint;
  askWords: bigint[];
  bidWords: bigint[];
}

export interface DoubleState {
  /** By `token:holder`. */
  balances: Map<string, bigint>;
  /** By `maker:token`. */
  claims: Map<string, Claim>;
  /** By token. */
  totalClaims: Map<string, bigint>;
  markets: MarketState[];
  nonces: Map<Address, number>;
  /** Of signed orders, by `owner:nonce`. */
  usedOrders: Set<string>;
}

export interface DoubleLog {
  address: Address;
  topics: Hex[];
  data: Hex;
}

interface Call {
  from: Address;
  to: Address;
  data: Hex;
}

interface At {
  timestampSec: number;
  hashOf(height: number): Hex | undefined;
}

const MARKET: MarketState = {
  cumAsk: 0n,
  cumBid: 0n,
  fillSeq: 0,
  seq: 0,
  deadlineSec: 0,
  snapAsk: 0n,
  snapBid: 0n,
  askWords: [],
  bidWords: [],
};
const CUSTODIAN = new Interface(Custodian__factory.abi);
const CURVE_BOOK = new Interface(CurveBook__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const TOKEN = new Interface([
  'function transfer(address to, uint256 amount) returns (bool)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);
const PPM = 1_000_000n;

/** A call reverts. */
class Revert extends Error {}
export function require(holds: boolean, why: string): asserts holds {
  if (!holds) throw new Revert(why);
}

export function newState(world: DoubleWorld): DoubleState {
  const balances = new Map<string, bigint>();
  for (const { address } of world.tokens) {
    for (const wallet of world.wallets) balances.set(`${address}:${wallet}`, world.grantUnits);
  }
  const markets = world.markets.map(() => ({ ...MARKET }));
  return { balances, claims: new Map(), totalClaims: new Map(), markets, nonces: new Map(), usedOrders: new Set() };
}

export function cloneState(state: DoubleState): DoubleState {
  return {
    balances: new Map(state.balances),
    claims: new Map(state.claims),
    totalClaims: new Map(state.totalClaims),
    markets: state.markets.map((market) => ({ ...market })),
    nonces: new Map(state.nonces),
    usedOrders: new Set(state.usedOrders),
  };
}

/** Listings, as the deployment leaves them behind. */
export function listings(world: Pick<DoubleWorld, 'curveBook' | 'markets'>): DoubleLog[] {
  return world.markets.map(({ id, base, quote, index, lotUnits, tickLotUnits, maxTtlSec }) =>
    event(CURVE_BOOK, world.curveBook, 'MarketListed', [
      id,
      base.address,
      quote.address,
      index,
      lotUnits,
      tickLotUnits,
      maxTtlSec,
    ]),
  );
}

/** What a call would end with on `state`, which stays as it is: a result, or the data of an error, with its arguments left empty. */
export function outcomeOf(
  world: DoubleWorld,
  state: DoubleState,
  at: At,
  call: Call,
): { result: Hex } | { refusal: Hex } {
  let reason = '';
  let result: Hex = '0x';
  const refuse = (why: string): void => void (reason = why);
  const keep = (answer: Hex): void => void (result = answer);
  if (execute(world, cloneState(state), at, call, refuse, keep) !== null) return { result };
  for (const abi of [CURVE_BOOK, CUSTODIAN, ENTRYPOINT, ...(world.orders?.abis ?? [])]) {
    const error = abi.getError(reason);
    if (error === null) continue;
    const empty = error.inputs.map(({ type }) => {
      if (type === 'address') return world.owner;
      return type.startsWith('bytes') ? `0x${'00'.repeat(toSafeInt(BigInt(type.slice(5))))}` : 0;
    });
    return { refusal: abi.encodeErrorResult(error, empty) as Hex };
  }
  return { refusal: '0x' };
}

/** Carries a call out on `state`. Returns its events, or null when it reverts; the state is then of no use. */
export function execute(
  world: DoubleWorld,
  state: DoubleState,
  at: At,
  call: Call,
  onRevert: (reason: string) => void = () => undefined,
  onResult: (result: Hex) => void = () => undefined,
): DoubleLog[] | null {
  const logs: DoubleLog[] = [];
  const machine = { world, state, at, from: call.from, logs };
  try {
    if (call.to === world.custodian) custodian(machine, call.data);
    else if (call.to === world.curveBook) curveBook(machine, call.data);
    else if (call.to === world.entrypoint) entrypoint(machine, call.data);
    else if (world.orders?.settler === call.to) onResult(world.orders.fill(machine, call.data));
    else if (world.tokens.some(({ address }) => address === call.to)) token(machine, call.to, call.data);
    return logs;
  } catch (error) {
    if (error instanceof Revert) {
      onRevert(error.message);
      return null;
    }
    throw error;
  }
}

interface Machine {
  world: DoubleWorld;
  state: DoubleState;
  at: At;
  from: Address;
  logs: DoubleLog[];
}

/** Encoded when somebody reads it: of a call that is only tried out nobody does. */
export function event(abi: Interface, address: Address, name: string, values: unknown[]): DoubleLog {
  let encoded: { topics: Hex[]; data: Hex } | undefined;
  const encode = () => (encoded ??= abi.encodeEventLog(name, values) as { topics: Hex[]; data: Hex });
  return {
    address,
    get topics() {
      return encode().topics;
    },
    get data() {
      return encode().data;
    },
  };
}

/** Decoded calls, by the interface that decoded them: a transaction is simulated, sent and mined, and views are called many times. */
const decoded = new WeakMap<Interface, Map<string, TransactionDescription | null>>();
const MAX_DECODED = 2_000;

/** Null when the contract has no such function. */
export function parsed(abi: Interface, data: string): TransactionDescription | null {
  let known = decoded.get(abi);
  if (known === undefined) decoded.set(abi, (known = new Map()));
  let call = known.get(data);
  if (call === undefined) {
    if (known.size >= MAX_DECODED) known.clear();
    known.set(data, (call = abi.parseTransaction({ data })));
  }
  return call;
}

export function parse(abi: Interface, data: Hex): { name: string; args: unknown[] } {
  const call = parsed(abi, data);
  require(call !== null, 'no such function');
  return { name: call.name, args: [...call.args] as unknown[] };
}

export const lower = (address: unknown): Address => String(address).toLowerCase() as Address;

function move({ state, logs }: Machine, tokenAddress: Address, from: Address, to: Address, units: bigint): void {
  const [source, target] = [`${tokenAddress}:${from}`, `${tokenAddress}:${to}`];
  const has = state.balances.get(source) ?? 0n;
  require(has >= units, 'balance');
  state.balances.set(source, has - units);
  state.balances.set(target, (state.balances.get(target) ?? 0n) + units);
  logs.push(event(TOKEN, tokenAddress, 'Transfer', [from, to, units]));
}

function token(machine: Machine, address: Address, data: Hex): void {
  const { name, args } = parse(TOKEN, data);
  if (name === 'transfer') move(machine, address, machine.from, lower(args[0]), args[1] as bigint);
}

const available = ({ state, world }: Pick<Machine, 'state' | 'world'>, tokenAddress: Address): bigint => {
  const held = state.balances.get(`${tokenAddress}:${world.custodian}`) ?? 0n;
  const claimed = state.totalClaims.get(tokenAddress) ?? 0n;
  return held > claimed ? held - claimed : 0n;
};

function custodian(machine: Machine, data: Hex): void {
  const { name, args } = parse(CUSTODIAN, data);
  const { state, world, at, from, logs } = machine;
  const emit = (what: string, values: unknown[]) => logs.push(event(CUSTODIAN, world.custodian, what, values));
  if (name === 'deposit') {
    const [tokenAddress, units] = [lower(args[0]), args[1] as bigint];
    require(units > 0n, 'ZeroAmount');
    move(machine, tokenAddress, from, world.custodian, units);
    emit('Deposited', [from, tokenAddress, units]);
  } else if (name === 'requestWithdraw') {
    require((args[1] as bigint) > 0n, 'ZeroAmount');
    emit('WithdrawRequested', [from, args[0], args[1]]);
  } else if (name === 'executeWithdraw') {
    const tokenAddress = lower(args[0]);
    const claim = state.claims.get(`${from}:${tokenAddress}`);
    require(claim !== undefined && claim.amount > 0n, 'NoClaim');
    require(BigInt(at.timestampSec) >= claim.readyAtSec, 'ClaimNotReady');
    state.claims.set(`${from}:${tokenAddress}`, { amount: 0n, basis: claim.basis + 1n, readyAtSec: 0n });
    state.totalClaims.set(tokenAddress, (state.totalClaims.get(tokenAddress) ?? 0n) - claim.amount);
    move(machine, tokenAddress, world.custodian, from, claim.amount);
    emit('WithdrawExecuted', [from, tokenAddress, claim.amount]);
  } else if (name === 'settleWithdrawBatch') {
    require(from === world.settler, 'NotPoster');
    for (const one of args[0] as [string, string, bigint, bigint][]) settleOne(machine, one, emit);
  } else throw new Error(`the chain double knows no ${name}`);
}

function settleOne(
  machine: Machine,
  [maker, tokenText, amount, basis]: [string, string, bigint, bigint],
  emit: (name: string, values: unknown[]) => void,
): void {
  const { state, at, world } = machine;
  const tokenAddress = lower(tokenText);
  const key = `${lower(maker)}:${tokenAddress}`;
  const claim = state.claims.get(key) ?? { amount: 0n, basis: 0n, readyAtSec: 0n };
  if (amount > claim.amount) {
    const refusal =
      basis !== claim.basis
        ? 'StaleBasis'
        : amount - claim.amount > available(machine, tokenAddress)
          ? 'InsufficientLiquidity'
          : null;
    if (refusal !== null) {
      return emit('SettlementSkipped', [maker, tokenAddress, amount, basis, CUSTODIAN.getError(refusal)!.selector]);
    }
  }
  let next = claim;
  if (amount !== claim.amount) {
    const readyAtSec = amount > claim.amount ? BigInt(at.timestampSec + world.withdrawDelaySec) : claim.readyAtSec;
    next = { amount, basis: claim.basis + 1n, readyAtSec: amount === 0n ? 0n : readyAtSec };
    state.claims.set(key, next);
    const total = (state.totalClaims.get(tokenAddress) ?? 0n) + amount - claim.amount;
    state.totalClaims.set(tokenAddress, total);
  }
  emit('WithdrawSettled', [maker, tokenAddress, amount, basis, next.readyAtSec]);
}

/** What the curve book and the custodian say when they are asked; undefined for anything else. */
export function viewAnswer(world: DoubleWorld, state: DoubleState, to: string, data: string): Hex | undefined {
  if (to === world.curveBook) return bookAnswer(world, state, data);
  return to === world.custodian ? custodianAnswer(world, state, data) : undefined;
}

function bookAnswer(world: DoubleWorld, state: DoubleState, data: string): Hex | undefined {
  const call = parsed(CURVE_BOOK, data);
  if (call?.name === 'isPoster') {
    return CURVE_BOOK.encodeFunctionResult('isPoster', [lower(call.args[0]) === world.poster]) as Hex;
  }
  const market = world.markets.find(({ id }) => id === call?.args[0]);
  if (call === null || market === undefined) return undefined;
  const { base, quote, index, lotUnits, tickLotUnits, maxTtlSec } = market;
  const live = state.markets[index]!;
  if (call.name === 'curveWords') {
    return CURVE_BOOK.encodeFunctionResult('curveWords', [live.askWords, live.bidWords]) as Hex;
  }
  if (call.name !== 'marketState') return undefined;
  const listing = [base.address, quote.address, index, lotUnits, tickLotUnits, maxTtlSec];
  const { cumAsk, cumBid, fillSeq, snapAsk, snapBid, deadlineSec, seq } = live;
  const answer = [...listing, cumAsk, cumBid, fillSeq, snapAsk, snapBid, deadlineSec, seq, false];
  return CURVE_BOOK.encodeFunctionResult('marketState', [answer]) as Hex;
}

function custodianAnswer(world: DoubleWorld, state: DoubleState, data: string): Hex | undefined {
  const call = parsed(CUSTODIAN, data);
  if (call?.name === 'availableLiquidity') {
    const units = available({ state, world }, lower(call.args[0]));
    return CUSTODIAN.encodeFunctionResult('availableLiquidity', [units]) as Hex;
  }
  if (call?.name === 'isPoster') {
    return CUSTODIAN.encodeFunctionResult('isPoster', [lower(call.args[0]) === world.settler]) as Hex;
  }
  if (call?.name !== 'claim' && call?.name !== 'claimBasis') return undefined;
  const claim = state.claims.get(`${lower(call?.args[0])}:${lower(call?.args[1])}`);
  if (call?.name === 'claim')
    return CUSTODIAN.encodeFunctionResult('claim', [claim?.amount ?? 0n, claim?.readyAtSec ?? 0n]) as Hex;
  return call?.name === 'claimBasis'
    ? (CUSTODIAN.encodeFunctionResult('claimBasis', [claim?.basis ?? 0n]) as Hex)
    : undefined;
}

function curveBook({ world, state, at, from, logs }: Machine, data: Hex): void {
  const { name, args } = parse(CURVE_BOOK, data);
  require(from === world.poster, 'NotPoster');
  const { block, records } = decodePost(args[0] as Hex);
  require(at.hashOf(block.number)?.slice(0, 26) === block.hash, 'OrphanedBlock');
  require(name === 'postBatch' || records.length === 1, 'MalformedPost');
  for (const record of records) {
    const index = world.markets.findIndex(({ id }) => id === record.marketId);
    const live = state.markets[index]!;
    const emit = (what: string, values: unknown[]) => logs.push(event(CURVE_BOOK, world.curveBook, what, values));
    const stale = record.seq <= live.seq || (record.kind !== 'full' && record.baseSeq !== live.seq);
    if (stale) {
      require(name === 'postBatch', 'StaleSeq');
      emit('PostSkipped', [record.marketId, record.seq, live.seq]);
      continue;
    }
    require(record.kind === 'full' || at.timestampSec < live.deadlineSec, 'CurveExpired');
    const ttlSec = record.deadlineSec - at.timestampSec;
    require(ttlSec >= 1 && ttlSec <= 60, 'DeadlineOutOfRange');
    goLive(world.markets[index]!, live, record, emit);
  }
}

function goLive(
  market: Market,
  live: MarketState,
  record: PostRecord,
  emit: (name: string, values: unknown[]) => void,
): void {
  const { marketId, seq, deadlineSec } = record;
  if (record.kind === 'touch') {
    emit('CurveTouched', [marketId, seq, live.seq, deadlineSec]);
    Object.assign(live, { seq, deadlineSec });
    return;
  }
  const askWords = record.kind === 'full' ? [...record.askWords] : amended(live.askWords, record.askChanges);
  const bidWords = record.kind === 'full' ? [...record.bidWords] : amended(live.bidWords, record.bidChanges);
  const asks = decodeSide(market, 'ask', askWords);
  const snapAsk = entered(asks, record.exactAskKnots, live.cumAsk, record.snapAskUnits);
  const bids = decodeSide(market, 'bid', bidWords);
  const snapBid = entered(bids, record.exactBidKnots, live.cumBid, record.snapBidUnits);
  Object.assign(live, { seq, deadlineSec, snapAsk, snapBid, askWords, bidWords });
  emit('CurvePosted', [marketId, seq, deadlineSec, snapAsk, snapBid, wordsHash(askWords, bidWords)]);
}

/** The volume that consumption counts from after the raise: what was taken since the cut ends where a segment ends, except within exact ones. */
function entered(segments: readonly Segment[], exact: number, cum: bigint, named: bigint): bigint {
  const taken = consumedUnits(cum, named);
  let end = 0n;
  const at = segments.findIndex(({ lengthUnits }) => (end += lengthUnits) >= taken);
  const stays = taken === 0n || at === -1 || at < exact;
  return BigInt.asUintN(92, stays ? named : cum - end);
}

function amended(before: readonly bigint[], changes: WordChanges): bigint[] {
  const first = changes[0] ?? before[0] ?? 0n;
  return Array.from({ length: wordsUsed(first) }, (_, i) => changes[i] ?? before[i]!);
}

function entrypoint(machine: Machine, data: Hex): void {
  const { name, args } = parse(ENTRYPOINT, data);
  const [tokenIn, tokenOut, amount, limit] = [lower(args[0]), lower(args[1]), args[2] as bigint, args[3] as bigint];
  const ratePpm = machine.world.feesPpm.get(machine.from) ?? 0n;
  const exactOut = name === 'swapExactOutput';
  const taker = machine.from;
  swapOnCurve(machine, { taker, recipient: lower(args[4]), tokenIn, tokenOut, exactOut, amount, limit, ratePpm });
}

interface CurveSwap {
  taker: Address;
  recipient: Address;
  tokenIn: Address;
  tokenOut: Address;
  exactOut: boolean;
  amount: bigint;
  limit: bigint;
  ratePpm: bigint;
  /** The operator's fee, on top of what the curve takes. */
  inputFee?: bigint;
}

/** A swap against the curve, paid by the taker. What the curve took, and what the recipient got. */
export function swapOnCurve(machine: Machine, swap: CurveSwap): { inUnits: bigint; outUnits: bigint } {
  const { world, state, at, logs } = machine;
  const { taker, recipient, tokenIn, tokenOut, exactOut, amount, limit, ratePpm, inputFee = 0n } = swap;
  const index = world.markets.findIndex(({ base, quote }) =>
    [base.address, quote.address].every((one) => one === tokenIn || one === tokenOut),
  );
  require(index >= 0, 'UnknownMarket');
  const [market, live] = [world.markets[index]!, state.markets[index]!];
  require(at.timestampSec < live.deadlineSec, 'CurveExpired');
  const isBuy = tokenOut === market.base.address;
  const gross = exactOut && ratePpm > 0n && amount > 0n ? ((amount - 1n) * PPM) / (PPM - ratePpm) + 1n : amount;
  const mode: TradeMode = isBuy ? (exactOut ? 'buyExactOut' : 'buyExactIn') : exactOut ? 'sellExactOut' : 'sellExactIn';
  const consumed = {
    askUnits: consumedUnits(live.cumAsk, live.snapAsk),
    bidUnits: consumedUnits(live.cumBid, live.snapBid),
  };
  const sides = { asks: decodeSide(market, 'ask', live.askWords), bids: decodeSide(market, 'bid', live.bidWords) };
  const result = trade(market, sides, consumed, mode, gross);
  require(result !== null, 'InsufficientDepth');
  const { baseUnits, quoteUnits } = result;
  live.fillSeq += 1;
  if (isBuy) live.cumAsk += baseUnits;
  else live.cumBid += baseUnits;
  const [inUnits, grossOut] = isBuy ? [quoteUnits, baseUnits] : [baseUnits, quoteUnits];
  const fee = exactOut ? grossOut - amount : (grossOut * ratePpm) / PPM;
  const outUnits = grossOut - fee;
  if (exactOut) require(inUnits <= limit, 'ExcessiveInput');
  else require(outUnits >= limit, 'InsufficientOutput');
  move(machine, tokenIn, taker, world.custodian, inUnits + inputFee);
  require(grossOut <= available(machine, tokenOut), 'InsufficientLiquidity');
  move(machine, tokenOut, world.custodian, recipient, outUnits);
  logs.push(
    event(ENTRYPOINT, world.entrypoint, 'Swap', [
      market.id,
      taker,
      recipient,
      live.fillSeq,
      live.seq,
      isBuy,
      baseUnits,
      quoteUnits,
      fee,
      inputFee,
      isBuy ? consumed.askUnits : consumed.bidUnits,
    ]),
  );
  return { inUnits, outUnits };
}
